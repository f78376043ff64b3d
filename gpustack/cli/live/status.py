"""gpustack rollout status: how far each policy is, why each node waits that does, and what to do about it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ...model import docs
from ...reconciler.core.record import Operation
from ...reconciler.core.view import View
from ..common import counted
from ..text import Code, picked
from . import cover, plan
from .reading import Look


def data(look: Look) -> dict[str, Any]:
    """The status for --format json."""
    return {
        **look.head,
        "policies": [_policy(look, policy) for policy in sorted(look.known.policies, key=lambda each: each.name)],
        "withoutPolicy": [
            {"node": view.name, "waits": _waits(look, view)} for view in look.outlook.views if view.policy is None
        ],
        "notCovered": [gap.data for gap in cover.gaps(look)],
    }


def _policy(look: Look, policy: Any) -> dict[str, Any]:
    """How far POLICY is."""
    from ...api import keys

    status = look.outlook.statuses[policy.uid]
    views = [view for view in look.outlook.views if view.policy is policy]
    switch = status.breaker
    return {
        "name": policy.name,
        "pools": policy.spec.pools,
        **picked(status, "nodes current operating quarantined"),
        "paused": policy.annotations.get(keys.PAUSED),
        "hold": policy.annotations.get(keys.HOLD),
        "breaker": {"open": switch.open, "message": switch.message or None, "since": _time(switch.since)},
        "conditions": [picked(each, "type status reason message") for each in status.conditions],
        "operations": [_operation(look, view, view.operation) for view in views if view.operation],
        "waiting": [
            {"node": view.name, "waits": waits}
            for view in views
            if view.operation is None and (waits := _waits(look, view))
        ],
    }


def _operation(look: Look, view: View, operation: Operation) -> dict[str, Any]:
    """An open operation; what to do, where it is in quarantine."""
    texts = [text for _, text in look.waits.get(view.name, [])]
    stuck = operation.phase == "Quarantine"
    return {
        "node": view.name,
        "operation": operation.kind,
        "target": str(operation.target),
        "phase": operation.phase,
        "step": operation.step or None,
        "since": _time(operation.since),
        "deadline": _time(operation.deadline),
        "attempt": operation.attempt,
        "nextAttempt": _time(operation.notBefore),
        "cordoned": operation.cordon,
        "why": texts or [operation.reason],
        "todo": _todo(view.name, operation) if stuck else [],
    }


def _todo(node: str, operation: Operation) -> list[str]:
    """How a node leaves quarantine."""
    what = "mend what the reason names; where all is well then, the node comes back by itself"
    again = f"gpustack rollout retry {node}   # try again now"
    return [what, again, f"{docs('reconciler.md#quarantine')} has more"] if operation.acts else []


def _waits(look: Look, view: View) -> list[dict[str, str]]:
    return [{"reason": kind, "message": text} for kind, text in look.waits.get(view.name, [])]


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def lines(told: dict[str, Any]) -> Iterator[str]:
    """The status as a person reads it."""
    yield from plan.head(told)
    for policy in told["policies"]:
        yield from _policy_lines(policy)
    if told["withoutPolicy"]:
        yield f"no NodePolicy of its own: {counted(len(told['withoutPolicy']), 'node')}"
    for (reason, message), nodes in _waiting(told["withoutPolicy"]):
        yield f"  {plan.some(nodes)}: {reason}: {message}"
    for gap in told["notCovered"]:
        yield f"nothing is rendered for {counted(len(gap['nodes']), 'node')}: {', '.join(gap['nodes'])}"
        yield from (f"  {text}" for text in gap["lacks"])
        if gap["lines"]:
            yield "  lines of the cluster's policy that would cover them:"
            yield from (Code(f"    {text}") for text in gap["lines"])


def _policy_lines(policy: dict[str, Any]) -> Iterator[str]:
    counts = f"{policy['current']} as wanted, {policy['operating']} worked on, {policy['quarantined']} in quarantine"
    yield f"{policy['name']}: {counted(policy['nodes'], 'node')}: {counts}"
    for word, why in (("paused", policy["paused"]), ("held", policy["hold"])):
        if why is not None:
            yield f"  {word}: {why or 'no reason given'}"
    if policy["breaker"]["open"]:
        yield f"  the breaker is open: {policy['breaker']['message']}"
        yield Code(f"    gpustack rollout reset-breaker {policy['name']}   # once the reason is known")
    for condition in policy["conditions"]:
        if condition["type"] == "Stalled" and condition["status"] == "True":
            yield f"  stalled: {condition['message']}"
    for each in policy["operations"]:
        step = f" ({each['step']})" if each["step"] and each["step"] != each["operation"] else ""
        where = f"{each['phase']}{step} since {each['since']}, attempt {each['attempt']}"
        yield f"  {each['node']}: {plan.aim(each)}: {where}"
        yield from (f"    {text}" for text in each["why"] if text)
        yield from (f"    do: {text}" for text in each["todo"])
    for (reason, message), nodes in _waiting(policy["waiting"]):
        yield f"  {plan.some(nodes)}: waits ({reason}): {message}"


def _waiting(waiting: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The reasons of nodes that wait, each with its nodes."""
    return plan.folded((each["node"], (wait["reason"], wait["message"])) for each in waiting for wait in each["waits"])
