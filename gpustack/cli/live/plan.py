"""gpustack rollout plan: which nodes have their turn when, what is moved, what stands against it, and the arithmetic of
the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...model import few
from ..common import counted
from . import estimates
from .reading import Look

if TYPE_CHECKING:
    from ...reconciler.core.admission import Candidate
    from ...reconciler.core.budget import Share

SHOWN = 8
"""How many pods or nodes a line of text names; JSON has all."""


def data(look: Look) -> dict[str, Any]:
    """The plan for --format json."""
    waits, shares = look.waits, budgets(look)
    order = [_turn(look, candidate, waits.get(candidate.view.name, [])) for candidate in look.outlook.order]
    due = {candidate.view.name for candidate in look.outlook.order}
    return {
        **look.head,
        "budgets": [_budget(share) for share in shares],
        "estimates": estimates.data(look, shares),
        "order": order,
        "underWay": [
            {
                "node": view.name,
                "operation": view.operation.kind,
                "target": str(view.operation.target),
                "phase": view.operation.phase,
                "why": [text for _, text in waits.get(view.name, [])],
            }
            for view in look.outlook.views
            if view.operation is not None and view.name not in due
        ],
        "waits": [
            {"node": wait.node, "policy": wait.policy or None, "reason": wait.kind, "message": wait.message}
            for wait in look.outlook.decision.waits
        ],
        "actions": actions(look),
    }


def actions(look: Look) -> list[str]:
    """Everything that a pass would do now, in words."""
    from ...reconciler.core.actions import Decision
    from ...reconciler.shell.report import describe

    return list(describe(Decision(tuple(look.actions))))


def budgets(look: Look) -> list[Share]:
    """The limits as they are before anything begins."""
    from ...reconciler.core.budget import Budget

    return Budget(look.outlook.views, look.known.policies, look.known.admitting).shares


def _budget(share: Share) -> dict[str, Any]:
    from ...reconciler.core.budget import NO_LIMIT

    parallel = None if share.parallel == NO_LIMIT else share.parallel
    return {
        "of": share.name,
        "underWay": share.busy,
        "maxParallel": parallel,
        "unavailable": len(share.down),
        "maxUnavailable": share.limit,
        "left": left(share),
    }


def left(share: Share) -> int:
    """How many more nodes may be taken."""
    return max(min(share.parallel - share.busy, share.limit - len(share.down)), 0)


def _turn(look: Look, candidate: Candidate, waits: list[tuple[str, str]]) -> dict[str, Any]:
    """What happens on a node that has something due."""
    from ...reconciler.core import pods
    from ...reconciler.core.view import uses_of

    view, what = candidate.view, candidate.due
    listed = look.known.pods.get(view.name)
    moves = what.restart_only or what.install or what.target.health == "cordon"
    using = [] if moves or listed is None else pods.to_evict(listed, uses_of(look.known, view))
    check = look.known.prechecks.get(view.name)
    selector = candidate.policy.spec.upgrade.waitForCompletion.podSelector
    waits_for_nobody = what.install or what.health
    awaited = [] if waits_for_nobody else pods.awaited(listed or (), selector, uses_of(look.known, view))
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
    for (reason, message), nodes in folded((wait["node"], (wait["reason"], wait["message"])) for wait in rest):
        yield f"  {some(nodes)}: {reason}: {message}"
    yield "nothing was changed"


def folded(whys: Iterable[tuple[str, tuple[str, str]]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Each reason and message once, with the nodes that wait for it."""
    waiting: dict[tuple[str, str], list[str]] = {}
    for node, why in whys:
        waiting.setdefault(why, []).append(node)
    yield from waiting.items()


def head(told: dict[str, Any]) -> Iterator[str]:
    """Who leads, whether all is paused, and what is not known."""
    if told["leader"]:
        yield f"{told['leader']} leads in namespace {told['namespace']}"
    if told["paused"]:
        yield f"the fleet is paused: {told['paused']}"
    for note in told["notes"]:
        yield f"note: {note}"


def aim(operation: dict[str, Any]) -> str:
    """What is done, and to what end where there is one beyond it: an installation without a driver has none."""
    target = operation["target"]
    return f"{operation['operation']}" + ("" if target == "-" else f" to {target}")


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
    for wait in turn["waits"]:
        yield f"     waits ({wait['reason']}): {wait['message']}"
    for key, what in (("waitsFor", "waits first for"), ("evicts", "evicts")):
        if pods := [pod for each in turns for pod in each[key]]:
            yield f"     {what} {counted(len(pods), 'pod')}: {some(pods)}"
    if not turn["podsKnown"]:
        yield f"     pods there were not read: {'its turn is' if len(turns) == 1 else 'their turns are'} far away"
    told = {wait["message"] for wait in turn["waits"]}
    blockers = [blocker for each in turns for blocker in each["blockers"] if blocker not in told]
    for blocker in blockers[:SHOWN]:
        yield f"     blocked: {blocker}"
    if len(blockers) > SHOWN:
        yield f"     blocked: {len(blockers) - SHOWN} more"


def some(names: Iterable[str]) -> str:
    """NAMES in a line, as many as somebody reads; JSON has all."""
    return few(list(names), SHOWN)
