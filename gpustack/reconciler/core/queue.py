"""Who comes next: what a pass has found on each node, and which of its candidates may begin now.

Gates and budget are asked in order; whoever may not begin gets the reason.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Any

from ...api.node_policy import Breaker, Soak
from . import evictions
from .actions import Action, Tell, Wait, Why
from .admission import Candidate, gate
from .budget import Budget, zone_of
from .health import Faults
from .images import PATIENCE, awaited, image_trouble, pulls
from .layouts import unread
from .rollout import Pioneers
from .snapshot import Kept, Snapshot
from .view import View, views_of

OPEN, AT_ONCE = 1500, 300
"""Operations that the Lease has room for, and announcements: an object's annotations may be 256 KiB."""
SET_BACK = "set back"


@dataclass(frozen=True)
class Looked:
    """What a pass has found on one node. `again` is the number of seconds after which to look again."""

    actions: Sequence[Action] = ()
    tells: Sequence[Tell] = ()
    waits: Sequence[Why] = ()
    candidate: Candidate | None = None
    taken_over: bool = False
    """Whether it is taken over from the operator: it counts before anybody else begins."""
    current: bool = False
    """Whether it is as its policy says."""
    uncovered: bool = False
    """Whether no driver DaemonSet would run on it."""
    lost: Sequence[str] = ()
    """UIDs of the policies that it belonged to, where none matches it any more."""
    again: float = 300.0


@dataclass(frozen=True)
class Pass:
    """What a pass has found so far: on each of its nodes, in their order."""

    known: Snapshot
    kept: Kept
    breakers: Mapping[str, Breaker]
    looked: Sequence[Looked]
    soaks: Mapping[str, Soak]

    @cached_property
    def views(self) -> Sequence[View]:
        """The nodes."""
        return views_of(self.kept)


@dataclass(frozen=True)
class Queue:
    """The candidates in the order in which they have their turn, those that begin now, and why the others don't."""

    order: Sequence[Candidate] = ()
    begin: Sequence[Candidate] = ()
    waits: Sequence[Wait] = ()
    tells: Sequence[Tell] = ()


def waits_of(view: View, whys: Iterable[Why]) -> Iterator[Wait]:
    """Why nothing happens on the node of VIEW."""
    return (Wait(view.name, view.policy.name if view.policy else "", kind, message) for kind, message in whys)


def queue(so_far: Pass, trials: int = 0) -> Queue:
    """Which of the candidates may begin now; the others say why not. With TRIALS it is asked which evictions to try:
    candidates that nothing but a trial can stop, at most so many."""
    known = so_far.known
    stuck = {view.node.uid for view in so_far.views if _stuck(known, view)}
    budget = Budget(so_far.views, known.policies, known.admitting, stuck)
    for view, looked in zip(so_far.views, so_far.looked, strict=True):
        if looked.taken_over:
            budget.take(view)
    pioneers, faults = Pioneers.of(known, so_far.views), Faults(known, so_far.views)
    taken: list[Candidate] = []
    waits: list[Wait] = []
    order: list[Candidate] = []
    tells: list[Tell] = []
    for candidate in _in_turn(known, budget, so_far.looked):
        order.append(candidate)
        view, what = candidate.view, candidate.due
        # A driver that has failed serves nobody: it is not kept for images.
        acts = () if candidate.again else what.acts
        pulling, late = awaited(known, view, candidate.policy, acts, what.target.revision)
        why = _gates(so_far, candidate)
        tells += [] if why else late
        why = why or pulling or _full(known, len(taken))
        if what.install:
            if why is None and not budget.installs(view):
                why = ("parallel", "enough new nodes are being set up")
        elif why := why or faults.refuses(view, what.acts) or budget.refuses(view) or _first(pioneers, candidate):
            known.seen.still(view.node.uid, evictions.BUDGET, known.now)
        else:
            why = _blocked(known, candidate, trials)
            if why is None and trials and len(taken) >= trials:
                why = ("checking", "its turn comes")
            if why is None:
                budget.take(view)
                pioneers.take(view, what.target)
                faults.take(view, what.target)
        if why is not None:
            waits += waits_of(view, [why])
        elif not (trials and what.install):
            taken.append(candidate)
    return Queue(order, taken, waits, tells)


def _full(known: Snapshot, taken: int) -> Why | None:
    """Why the Lease has no room for one more, where so many were TAKEN in this pass."""
    if len(known.ledger or ()) + taken >= OPEN:
        return "parallel", f"{OPEN} operations are open, and the Lease has no room for more"
    if taken >= AT_ONCE:
        return "parallel", f"{AT_ONCE} nodes are begun in this pass, and the others in the next ones"
    return None


def _first(pioneers: Pioneers, candidate: Candidate) -> Why | None:
    """Whether another node is to show first that it works. A restart that installs nothing anew has nothing to show."""
    if candidate.due.restart_only or not candidate.policy.spec.upgrade.firstAlone:
        return None
    text = pioneers.refuse(candidate.view, candidate.due.target)
    return ("first", text) if text else None


def _gates(so_far: Pass, candidate: Candidate) -> Why | None:
    """Why the operation may not begin now, whatever the budget."""
    known, what = so_far.known, candidate.due
    if refused := known.refused.get(candidate.view.node.uid):
        return "refused", refused
    switch = so_far.breakers[candidate.policy.uid]
    if why := gate(known, candidate, switch.message if switch.open and not (what.install or what.health) else ""):
        return why
    if text := unread(known, candidate.view, what.target.mig):
        return "layout", text
    if not (what.install or what.health) and uncounted(known, candidate):
        return "checking", "it is counted how many pods use its GPUs: the least used go first"
    if text := soaking(so_far.soaks, candidate):
        return "soak", text
    brings = not what.install and {"driver", "repair"} & set(what.acts)
    if brings and (text := image_trouble(known, what.target.revision)):
        return "image", text
    if candidate.view.operation is None and (announced := known.admitting.get(candidate.view.node.uid)):
        return "admitting", announced.trouble or "its admission is under way"
    return None


def soaking(soak: Mapping[str, Soak], candidate: Candidate) -> str:
    """Why the operation of CANDIDATE has to wait; "" where it need not."""
    said = soak.get(candidate.policy.uid)
    what = candidate.due
    if said is None or what.install or what.health or "repair" in what.acts or candidate.again is not None:
        return ""
    return f"{said.after} was done a while ago and soaks until {said.until:%Y-%m-%dT%H:%M:%SZ}"


def _stuck(known: Snapshot, view: View) -> bool:
    """Whether a node hasn't got on for an hour for a reason of its own: it stays unavailable, its slot is another's."""
    operation = view.operation
    if operation is None or view.admitted is None or known.now - view.admitted < PATIENCE:
        return False
    return view.node.uid in known.setbacks or any(map(pulls, known.driver_pods.get(view.name, ())))


def _in_turn(known: Snapshot, budget: Budget, looked: Iterable[Looked]) -> Iterator[Candidate]:
    """The candidates in their order. Of those whose turn is the same, the next is one of the zone in which the fewest
    nodes are out of service, those that were taken meanwhile included."""
    keyed = [(*_order(known, each.candidate), each.candidate) for each in looked if each.candidate is not None]
    for _, same in groupby(sorted(keyed, key=lambda each: each[:2]), key=lambda each: each[0]):
        zones: dict[str, deque[tuple[tuple[int, str], Candidate]]] = {}
        for _, least, candidate in same:
            zones.setdefault(zone_of(candidate.view), deque()).append((least, candidate))
        heap = [(budget.down(zone), line[0][0], zone) for zone, line in zones.items()]
        heapify(heap)
        while heap:
            zone = heappop(heap)[2]
            yield zones[zone].popleft()[1]
            if zones[zone]:
                heappush(heap, (budget.down(zone), zones[zone][0][0], zone))


def _order(known: Snapshot, candidate: Candidate) -> tuple[tuple[Any, ...], tuple[int, str]]:
    """Last those that could not be changed or emptied when they had their turn, and those that have failed; broken
    nodes first, then as the policy orders them; and within a zone by what runs there as far as it is known, then by
    name. A node that fails, or asks to be tried again, takes nobody's turn."""
    view, upgrade = candidate.view, candidate.policy.spec.upgrade
    setbacks = _set_back(known, view)
    asked = [(each.values, view.labels.get(each.label, "")) for each in upgrade.order or ()]
    ranks = [values.index(value) if value in values else len(values) for values, value in asked]
    used = known.used.get(view.node.uid, sys.maxsize) if upgrade.leastUsed else 0
    failed, whole = candidate.again is not None, not {"repair", "health"} & set(candidate.due.acts)
    return (setbacks, failed, whole, ranks), (used, view.name)


def _set_back(known: Snapshot, view: View) -> int:
    """How often in a row the node could not be changed, or emptied: for an hour also where another leader saw that."""
    uid = view.node.uid
    tries, first = known.setbacks.get(uid, 0), known.seen.first.get((uid, SET_BACK))
    lately = tries > 0 or (first is not None and known.now - first < PATIENCE)
    known.seen.since(uid, SET_BACK, known.now, holds=lately)
    return tries or int(lately)


def uncounted(known: Snapshot, candidate: Candidate) -> bool:
    """Whether the order of the candidates depends on how many pods use a GPU of the node, and nobody has counted."""
    return bool(candidate.policy.spec.upgrade.leastUsed) and candidate.view.node.uid not in known.used


def _blocked(known: Snapshot, candidate: Candidate, trials: int) -> Why | None:
    """What stands against evicting the pods that use the GPUs. A restart that installs nothing anew evicts nobody, and
    a node with a fault is cordoned though its pods can't be evicted."""
    if candidate.due.restart_only or candidate.due.health:
        return None
    check = known.prechecks.get(candidate.view.name)
    if check is None:
        evictions.held_up(known, candidate.view)  # whose trial had no turn in this pass is held up on
        return None if trials else ("checking", "it is being tried whether its pods can be evicted")
    if text := evictions.blocked(known, candidate.view, candidate.policy):
        return "blocked", text
    return ("checking", check.unknown) if check.unknown else None
