"""Who comes next: what a pass has found so far, and which of its candidates may begin now.

Gates and budget are asked in order; whoever may not begin gets the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...api.node_policy import Breaker, Status
from . import status
from .actions import Action, Tell, Wait
from .admission import Candidate, gate
from .budget import Budget
from .images import image_trouble
from .pioneer import Pioneers
from .snapshot import Snapshot
from .view import View


@dataclass
class Pass:
    """What a pass has found so far."""

    known: Snapshot
    views: list[View]
    breakers: Mapping[str, Breaker]
    actions: list[Action] = field(default_factory=list)
    tells: list[Tell] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    taken_over: list[View] = field(default_factory=list)
    """Nodes that this pass takes over from the operator: they count before anybody else begins."""
    tallies: dict[str, status.Tally] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    again: float = 300.0

    def wait(self, view: View, kind: str, message: str) -> None:
        """Say why nothing happens on the node."""
        wait = Wait(view.name, view.policy.name if view.policy else "", kind, message)
        self.waits.append(wait)
        if view.policy:
            self.tallies[view.policy.uid].waits.append(wait)


def admissible(found: Pass, trials: int = 0) -> list[Candidate]:
    """The candidates that may begin now, in order; the others say why not.

    With TRIALS it is asked which evictions to try: candidates that nothing but a trial can stop, at most so many.
    """
    known = found.known
    budget = Budget(found.views, known.policies, known.admitting)
    for view in found.taken_over:
        budget.take(view)
    pioneers = Pioneers.of(known, found.views)
    taken: list[Candidate] = []
    found.candidates.sort(key=lambda each: _order(known, budget, each))
    for candidate in found.candidates:
        view = candidate.view
        why = _gates(found, candidate)
        if why is None and view.node.uid in known.admitting and view.operation is None:
            why = ("admitting", known.admitting[view.node.uid].trouble or "its admission is under way")
        if why is None and candidate.due.install:
            why = None if budget.installs(view) else ("parallel", "enough new nodes are being set up")
        elif why is None:
            why = budget.refuses(view) or _first(pioneers, candidate) or _blocked(known, candidate, trials)
            if why is None and trials and len(taken) >= trials:
                why = ("checking", "its turn comes")
            if why is None:
                budget.take(view)
                pioneers.take(view, candidate.due.target)
        if why is None:
            if not (trials and candidate.due.install):
                taken.append(candidate)
        else:
            found.wait(view, *why)
    return taken


def _first(pioneers: Pioneers, candidate: Candidate) -> tuple[str, str] | None:
    """Whether another node is to show first that it works. A restart that installs nothing anew has nothing to show."""
    if candidate.due.restart_only or not candidate.policy.spec.upgrade.firstAlone:
        return None
    text = pioneers.refuse(candidate.view, candidate.due.target)
    return ("first", text) if text else None


def _gates(found: Pass, candidate: Candidate) -> tuple[str, str] | None:
    """Why the operation may not begin now, whatever the budget."""
    known, what = found.known, candidate.due
    if refused := known.refused.get(candidate.view.node.uid):
        return "refused", refused
    switch = found.breakers[candidate.policy.uid]
    if why := gate(known, candidate, switch.message if switch.open and not what.install else ""):
        return why
    if (
        not what.install
        and {"driver", "repair"} & set(what.acts)
        and (text := image_trouble(known, what.target.revision))
    ):
        return "image", f"the driver's image can't be pulled elsewhere: {text}"
    return None


def _order(known: Snapshot, budget: Budget, candidate: Candidate) -> tuple[int, bool, int, str]:
    """Last those that could not be changed when they had their turn; broken nodes first, then where the fewest are out
    of service, then by name."""
    view = candidate.view
    setbacks = known.setbacks.get(view.node.uid, 0)
    return setbacks, "repair" not in candidate.due.acts, budget.down_nearby(view), view.name


def _blocked(known: Snapshot, candidate: Candidate, trials: int) -> tuple[str, str] | None:
    """What stands against evicting the pods that use the GPUs. A restart that installs nothing anew evicts nobody."""
    if candidate.due.restart_only:
        return None
    check = known.prechecks.get(candidate.view.name)
    if check is None:
        return None if trials else ("checking", "it is being tried whether its pods can be evicted")
    if check.blockers:
        return "blocked", check.blockers[0]
    return ("checking", check.unknown) if check.unknown else None
