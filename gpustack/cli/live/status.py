"""gpustack rollout status: how far each policy is, why each node waits that does, and what to do about it."""

from collections.abc import Iterator
from typing import Any

from ...api import keys
from ...model import docs, grouped
from ...reconciler.core.record import Operation
from ...reconciler.core.view import View
from ..common import counted, moment
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
        "notCovered": [picked(gap, "policy=near nodes lacks lines") for gap in cover.gaps(look)],
    }


def _policy(look: Look, policy: Any) -> dict[str, Any]:
    """How far POLICY is."""
    status = look.outlook.statuses[policy.uid]
    views = [view for view in look.outlook.views if view.policy is policy]
    switch, idle = status.breaker, [(view, _waits(look, view)) for view in views if view.operation is None]
    since = switch.since and moment(switch.since)
    return {
        **picked(policy, "name pools=spec.pools"),
        **picked(status, "nodes current operating quarantined"),
        "paused": policy.annotations.get(keys.PAUSED),
        "hold": policy.annotations.get(keys.HOLD),
        "breaker": {"open": switch.open, "message": switch.message or None, "since": since},
        "conditions": [picked(each, "type status reason message") for each in status.conditions],
        "operations": [_operation(look, view, view.operation) for view in views if view.operation],
        "waiting": [{"node": view.name, "waits": waits} for view, waits in idle if waits],
    }


def _operation(look: Look, view: View, operation: Operation) -> dict[str, Any]:
    """An open operation; what to do, where it is in quarantine."""
    told = picked(operation, "operation=kind target phase step since deadline attempt nextAttempt=notBefore")
    told |= {"target": str(operation.target), "step": operation.step or None}
    told |= {key: moment(told[key]) for key in ("since", "deadline", "nextAttempt") if told[key]}
    todo = [
        "mend what the reason names; where all is well then, the node comes back by itself",
        f"gpustack rollout retry {view.name}   # try again now",
        f"{docs('reconciler.md#quarantine')} has more",
    ]
    return {
        "node": view.name,
        **told,
        "cordoned": operation.cordon,
        "why": [each["message"] for each in _waits(look, view)] or [operation.reason],
        "todo": todo if operation.phase == "Quarantine" and operation.acts else [],
    }


def _waits(look: Look, view: View) -> list[dict[str, str]]:
    return [{"reason": kind, "message": text} for kind, text in look.waits.get(view.name, [])]


def lines(told: dict[str, Any]) -> Iterator[str]:
    """The status as a person reads it."""
    yield from plan.head(told)
    for policy in told["policies"]:
        yield from _policy_lines(policy)
    if told["withoutPolicy"]:
        yield f"no NodePolicy of its own: {counted(len(told['withoutPolicy']), 'node')}"
    yield from _waiting(told["withoutPolicy"], "{}: {}: {}")
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
    yield from _waiting(policy["waiting"], "{}: waits ({}): {}")


def _waiting(waiting: list[dict[str, Any]], how: str) -> Iterator[str]:
    """HOW nodes that wait are told: them, the reason and the message, each of those once."""
    whys = (((wait["reason"], wait["message"]), each["node"]) for each in waiting for wait in each["waits"])
    yield from (f"  {how.format(plan.some(nodes), *why)}" for why, nodes in grouped(whys).items())
