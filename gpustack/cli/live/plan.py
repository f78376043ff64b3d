"""gpustack rollout plan: which nodes have their turn when, what is moved, what stands against it, and the arithmetic of
the budgets."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ...model import few, grouped
from ...reconciler.core import pods
from ...reconciler.core.actions import Decision
from ...reconciler.core.admission import Candidate
from ...reconciler.core.budget import NO_LIMIT, Budget, Share
from ...reconciler.core.view import uses_of
from ...reconciler.shell.report import describe
from ..common import counted
from ..text import picked
from . import estimates
from .reading import Look

SHOWN = 8
"""How many pods or nodes a line of text names; JSON has all."""


def data(look: Look) -> dict[str, Any]:
    """The plan for --format json: the limits before anything begins, turns, and in words all that a pass would do."""
    waits, outlook = look.waits, look.outlook
    shares = Budget(outlook.views, look.known.policies, look.known.admitting).shares
    order = [_turn(look, candidate, waits.get(candidate.view.name, [])) for candidate in outlook.order]
    due = {candidate.view.name for candidate in outlook.order}
    return {
        **look.head,
        "budgets": [_budget(share) for share in shares],
        "estimates": estimates.data(look, shares),
        "order": order,
        "underWay": [
            {
                **picked(view, "node=name operation=operation.kind target=operation.target phase=operation.phase"),
                "target": str(view.operation.target),
                "why": [text for _, text in waits.get(view.name, [])],
            }
            for view in outlook.views
            if view.operation is not None and view.name not in due
        ],
        "waits": [
            {**picked(wait, "node policy reason=kind message"), "policy": wait.policy or None}
            for wait in outlook.decision.waits
        ],
        "actions": list(describe(Decision(tuple(look.actions)))),
    }


def _budget(share: Share) -> dict[str, Any]:
    parallel, down = None if share.parallel == NO_LIMIT else share.parallel, len(share.down)
    left = max(min(share.parallel - share.busy, share.limit - down), 0)  # how many more nodes may be taken
    said = {"of": share.name, "underWay": share.busy, "maxParallel": parallel, "unavailable": down}
    return {**said, "maxUnavailable": share.limit, "left": left}


def _turn(look: Look, candidate: Candidate, waits: list[tuple[str, str]]) -> dict[str, Any]:
    """What happens on a node that has something due."""
    view, what = candidate.view, candidate.due
    listed, check = look.known.pods.get(view.name), look.known.prechecks.get(view.name)
    uses, selector = uses_of(look.known, view), candidate.policy.spec.upgrade.waitForCompletion.podSelector
    moves = what.restart_only or what.install or what.target.health == "cordon"
    using = [] if moves or listed is None else pods.to_evict(listed, uses)
    awaited = [] if what.install or what.health else pods.awaited(listed or (), selector, uses)
    return {
        "node": view.name,
        "policy": candidate.policy.name,
        "operation": "+".join(what.acts),
        "target": str(what.target),
        "restartOnly": what.restart_only,
        "begins": view.name in look.outlook.begins,
        "waits": [{"reason": kind, "message": text} for kind, text in waits],
        "podsKnown": listed is not None or moves,
        "evicts": [pod.key for pod in using],
        "waitsFor": [pod.key for pod in awaited],
        "blockers": list(check.blockers) if check and not moves else [],
    }


def lines(told: dict[str, Any]) -> Iterator[str]:
    """The plan as a person reads it."""
    yield from head(told)
    yield "budgets"
    for each in told["budgets"]:
        parallel = "" if each["maxParallel"] is None else f"{each['underWay']} of {each['maxParallel']} operations, "
        down = f"{each['unavailable']} of {each['maxUnavailable']} unavailable nodes"
        yield f"  {each['of']}: {parallel}{down}: {counted(each['left'], 'more node')} may go"
    if told["estimates"]:
        yield "time, by deadlines and windows"
    for each in told["estimates"]:
        yield f"  {estimates.line(each)}"
    now = [turn for turn in told["order"] if turn["begins"]]
    later = [turn for turn in told["order"] if not turn["begins"]]
    yield "begins now" if now else "nothing begins now"
    yield from turns_lines(1, now)
    if later:
        yield "later, in this order"
    yield from turns_lines(len(now) + 1, later)
    if told["underWay"]:
        yield "under way"
    for each in told["underWay"]:
        why = f": {'; '.join(each['why'])}" if each["why"] else ""
        yield f"  {each['node']}: {aim(each)}, {each['phase']}{why}"
    known = {turn["node"] for turn in (*told["order"], *told["underWay"])}
    rest = [wait for wait in told["waits"] if wait["node"] not in known]
    if rest:
        yield "nothing to do, for a reason"
    for (reason, message), nodes in grouped(((wait["reason"], wait["message"]), wait["node"]) for wait in rest).items():
        yield f"  {some(nodes)}: {reason}: {message}"
    yield "nothing was changed"


def head(told: dict[str, Any]) -> Iterator[str]:
    """Who leads, whether all is paused, and what is not known."""
    if told["leader"]:
        yield f"{told['leader']} leads in namespace {told['namespace']}"
    if told["paused"]:
        yield f"the fleet is paused: {told['paused']}"
    yield from (f"note: {note}" for note in told["notes"])


def aim(operation: dict[str, Any]) -> str:
    """What is done, and to what end where there is one beyond it: an installation without a driver has none."""
    target = operation["target"]
    return f"{operation['operation']}{'' if target == '-' else f' to {target}'}"


def turns_lines(first: int, turns: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Nodes that have their turn, the FIRST of them by that number; neighbours with one aim and reason are one line."""
    for _, same in groupby(turns, key=_alike):
        group = list(same)
        yield from turn_lines(first, group)
        first += len(group)


def _alike(turn: dict[str, Any]) -> tuple[Any, ...]:
    waits = tuple(wait["message"] for wait in turn["waits"])
    return turn["policy"], aim(turn), turn["restartOnly"], turn["podsKnown"], waits


def turn_lines(number: int, turns: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Nodes that have their turn for the same reason."""
    turn, last = turns[0], number + len(turns) - 1
    how = ", restarts the driver and moves nobody" if turn["restartOnly"] else ""
    numbers = f"{number}" if last == number else f"{number}-{last}"
    yield f"  {numbers}. {some(each['node'] for each in turns)} ({turn['policy']}): {aim(turn)}{how}"
    yield from (f"     waits ({wait['reason']}): {wait['message']}" for wait in turn["waits"])
    for key, what in (("waitsFor", "waits first for"), ("evicts", "evicts")):
        if named := [pod for each in turns for pod in each[key]]:
            yield f"     {what} {counted(len(named), 'pod')}: {some(named)}"
    if not turn["podsKnown"]:
        yield f"     pods there were not read: {'its turn is' if len(turns) == 1 else 'their turns are'} far away"
    told = {wait["message"] for wait in turn["waits"]}
    blockers = [blocker for each in turns for blocker in each["blockers"] if blocker not in told]
    yield from (f"     blocked: {blocker}" for blocker in blockers[:SHOWN])
    if len(blockers) > SHOWN:
        yield f"     blocked: {len(blockers) - SHOWN} more"


def some(names: Iterable[str]) -> str:
    """NAMES in a line, as many as somebody reads; JSON has all."""
    return few(list(names), SHOWN)
