"""gpustack rollout plan: which nodes have their turn when, what is moved, what stands against it, and the arithmetic of
the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..common import counted
from .reading import Look

if TYPE_CHECKING:
    from ...reconciler.core.admission import Candidate
    from ...reconciler.core.budget import Share

SHOWN = 8
"""How many pods or nodes a line of text names; JSON has all."""


def data(look: Look) -> dict[str, Any]:
    """The plan for --format json."""
    waits = look.waits
    order = [_turn(look, candidate, waits.get(candidate.view.name, [])) for candidate in look.outlook.order]
    due = {candidate.view.name for candidate in look.outlook.order}
    return {
        "namespace": look.namespace,
        "leader": look.leader or None,
        "paused": look.known.paused or None,
        "notes": list(look.notes),
        "budgets": [_budget(share) for share in budgets(look)],
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
    moves = what.restart_only or what.install
    using = [] if moves or listed is None else pods.to_evict(listed, uses_of(look.known, view))
    check = look.known.prechecks.get(view.name)
    selector = candidate.policy.spec.upgrade.waitForCompletion.podSelector
    awaited = pods.awaited(listed or (), selector) if not what.install else []
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


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The plan as a person reads it."""
    yield from head(found)
    yield "budgets"
    for each in found["budgets"]:
        yield f"  {budget_text(each)}"
    now = [turn for turn in found["order"] if turn["begins"]]
    later = [turn for turn in found["order"] if not turn["begins"]]
    yield "begins now" if now else "nothing begins now"
    for number, turn in enumerate(now, 1):
        yield from turn_lines(number, turn)
    if later:
        yield "later, in this order"
    for number, turn in enumerate(later, len(now) + 1):
        yield from turn_lines(number, turn)
    if found["underWay"]:
        yield "under way"
    for each in found["underWay"]:
        why = f": {'; '.join(each['why'])}" if each["why"] else ""
        yield f"  {each['node']}: {aim(each)}, {each['phase']}{why}"
    known = {turn["node"] for turn in (*found["order"], *found["underWay"])}
    rest = [wait for wait in found["waits"] if wait["node"] not in known]
    if rest:
        yield "nothing to do, for a reason"
    for wait in rest:
        yield f"  {wait['node']}: {wait['reason']}: {wait['message']}"
    yield "nothing was changed"


def head(found: dict[str, Any]) -> Iterator[str]:
    """Who leads, whether all is paused, and what is not known."""
    if found["leader"]:
        yield f"{found['leader']} leads in namespace {found['namespace']}"
    if found["paused"]:
        yield f"the fleet is paused: {found['paused']}"
    for note in found["notes"]:
        yield f"note: {note}"


def budget_text(each: dict[str, Any]) -> str:
    """The arithmetic of a limit."""
    parallel = "" if each["maxParallel"] is None else f"{each['underWay']} of {each['maxParallel']} operations, "
    down = f"{each['unavailable']} of {each['maxUnavailable']} unavailable nodes"
    return f"{each['of']}: {parallel}{down}: {counted(each['left'], 'more node')} may go"


def aim(operation: dict[str, Any]) -> str:
    """What is done, and to what end where there is one beyond it: an installation without a driver has none."""
    target = operation["target"]
    return f"{operation['operation']}" + ("" if target == "-" else f" to {target}")


def turn_lines(number: int, turn: dict[str, Any]) -> Iterator[str]:
    """A node that has its turn."""
    how = ", restarts the driver and moves nobody" if turn["restartOnly"] else ""
    yield f"  {number}. {turn['node']} ({turn['policy']}): {aim(turn)}{how}"
    for wait in turn["waits"]:
        yield f"     waits ({wait['reason']}): {wait['message']}"
    if turn["waitsFor"]:
        yield f"     waits first for {pods_text(turn['waitsFor'])}"
    if turn["evicts"]:
        yield f"     evicts {pods_text(turn['evicts'])}"
    if not turn["podsKnown"]:
        yield "     its pods were not read: its turn is far away"
    told = {wait["message"] for wait in turn["waits"]}
    for blocker in turn["blockers"]:
        if blocker not in told:
            yield f"     blocked: {blocker}"


def pods_text(names: Iterable[str]) -> str:
    """How many pods, and the first of them."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{counted(len(names), 'pod')}: {', '.join(names[:SHOWN])}{more}"
