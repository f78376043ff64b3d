"""What people tell the reconciler: pause, hold, retry, close the breaker.

Each is one annotation or label that no render contains, so that GitOps does not take it back (reconciler.md A15), and
each says what it changed.
"""

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ...api import keys
from ...api.objects import Node
from ...reconciler.core.record import Last, Memory, Operation, Unreadable, read
from ...reconciler.shell.cluster import LEASES, NODES, POLICIES, Cluster, Selection
from ...reconciler.shell.lease import NAME
from ..common import clock
from ..refusals import refusal
from . import connect, reading


@dataclass
class Done:
    """What was changed on one object; `changed` is False where it was so already."""

    object: str
    changed: bool
    what: str
    before: dict[str, str] = field(default_factory=dict)
    """What was removed, where that is worth keeping."""


Deed = Callable[[Cluster, argparse.Namespace], Awaitable[list[Done]]]


def stamp() -> str:
    """A value that no earlier annotation has."""
    return f"{clock():%Y-%m-%dT%H:%M:%S.%fZ}"


async def pause(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Admit nothing more: of one policy, or of the fleet."""
    return [await _annotate(cluster, options, keys.PAUSED, options.reason, "paused: nothing more begins")]


async def resume(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Take the pause away. Pauses of the others are named: they hold on."""
    made = [await _annotate(cluster, options, keys.PAUSED, None, "no longer paused")]
    policies = (await reading.Reader(cluster).list(POLICIES)).items
    others = [each.name for each in policies if keys.PAUSED in each.annotations and each.name != options.policy]
    if not options.policy and others:
        made[0].what += f"; still paused on their own: {', '.join(sorted(others))}"
    return made


async def hold(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Start nothing on these nodes, or on those of a policy, and give up what can be given up."""
    if options.policy:
        return [await _annotate(cluster, options, keys.HOLD, options.reason, "held: nothing begins on its nodes")]
    if options.reason:
        raise refusal("GPU026", "reason")
    said = "held: nothing begins there, and what has begun is given up unless it is past the point of no return"
    return [await _label(cluster, name, "true", said) for name in nodes(options)]


async def unhold(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Take the hold away."""
    if options.policy:
        return [await _annotate(cluster, options, keys.HOLD, None, "no longer held")]
    return [await _label(cluster, name, None, "no longer held") for name in nodes(options)]


async def retry(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Try quarantined and backed-off operations now, or throw away records that can't be read."""
    chosen = [await reading.node(cluster, name) for name in options.nodes]
    for node in chosen:  # all or none
        _may_retry(node, discard=options.discard_record)
    if options.discard_record:
        return [await _discard(cluster, node) for node in chosen]
    for node in chosen:
        await cluster.patch(NODES, node.name, {"metadata": {"uid": node.uid, "annotations": {keys.RETRY: stamp()}}})
    return [Done(f"node {node.name}", True, "is tried again as soon as budget and windows allow") for node in chosen]


async def reset_breaker(cluster: Cluster, options: argparse.Namespace) -> list[Done]:
    """Let a stopped rollout go on."""
    policy = await reading.policy(cluster, options.policy)
    name = f"NodePolicy {policy.name}"
    if not policy.status.breaker.open:
        return [Done(name, False, "its breaker is not open")]
    await cluster.patch(POLICIES, policy.name, {"metadata": {"annotations": {keys.RESET_BREAKER: stamp()}}})
    return [Done(name, True, "breaker reset: the rollout goes on; nodes in quarantine now don't count again")]


def nodes(options: argparse.Namespace) -> list[str]:
    """The nodes that are named; refused where none is."""
    if options.nodes:
        return list(dict.fromkeys(options.nodes))
    raise refusal("GPU026", "nobody")


async def _annotate(cluster: Cluster, options: argparse.Namespace, key: str, value: str | None, what: str) -> Done:
    """Set the annotation KEY of the policy that OPTIONS name, or of the Lease; None removes it."""
    change: dict[str, Any] = {"metadata": {"annotations": {key: value}}}
    if options.policy:
        policy = await reading.policy(cluster, options.policy)
        if policy.annotations.get(key) == value:
            return Done(f"NodePolicy {policy.name}", False, f"{what} (it was so already)")
        await cluster.patch(POLICIES, policy.name, change)
        return Done(f"NodePolicy {policy.name}", True, what)
    space = await connect.namespace(cluster, options.namespace)
    leases = (await cluster.list(LEASES, Selection(space, fields=f"metadata.name={NAME}"))).items
    if not leases:
        raise refusal("GPU934", "lease", lease=NAME, space=space)
    if leases[0].annotations.get(key) == value:
        return Done("the fleet", False, f"{what} (it was so already)")
    await cluster.patch(LEASES, NAME, change, namespace=space)
    return Done("the fleet", True, f"{what} (Lease {space}/{NAME})")


async def _label(cluster: Cluster, name: str, value: str | None, what: str) -> Done:
    """Set the hold of a node."""
    node = await reading.node(cluster, name)
    if node.labels.get(keys.HOLD) == value:
        return Done(f"node {name}", False, f"{what} (it was so already)")
    await cluster.patch(NODES, name, {"metadata": {"uid": node.uid, "labels": {keys.HOLD: value}}})
    return Done(f"node {name}", True, what)


def _spoilt(node: Node) -> dict[str, str]:
    """The records of NODE that can't be read, by annotation, with the reason."""
    reasons = {}
    readers: dict[str, Callable[[str | None], object]] = {
        keys.OPERATION: lambda text: read(Operation, text),
        keys.LAST: lambda text: read(Last, text),
        keys.MEMORY: lambda text: read(Memory, text),
    }
    for key, reads in readers.items():
        try:
            reads(node.annotations.get(key))
        except Unreadable as why:
            reasons[key] = str(why)
    return reasons


def _may_retry(node: Node, *, discard: bool) -> None:
    """Refuse what would do nothing, with the reason."""
    spoilt = _spoilt(node)
    if discard and not spoilt:
        raise refusal("GPU937", "readable", node=node.name)
    if discard:
        return
    if spoilt:
        raise refusal("GPU937", "spoilt", node=node.name, reasons="; ".join(spoilt.values()))
    operation, last = read(Operation, node.annotations.get(keys.OPERATION)), read(Last, node.annotations.get(keys.LAST))
    if operation and operation.phase != "Quarantine":
        raise refusal("GPU937", "under way", node=node.name, phase=operation.phase)
    if not operation and not (last and last.notBefore):
        raise refusal("GPU937", "well", node=node.name)


async def _discard(cluster: Cluster, node: Node) -> Done:
    """Throw away the records that can't be read, on the very version of the node that they were seen on."""
    spoilt = _spoilt(node)
    head = {"uid": node.uid, "resourceVersion": node.metadata.resourceVersion}
    await cluster.patch(NODES, node.name, {"metadata": {**head, "annotations": dict.fromkeys(spoilt)}})
    what = f"thrown away: {', '.join(spoilt)}"
    if keys.OPERATION in spoilt and keys.CORDONED in node.annotations:
        what += "; the reconciler uncordons the node now"
    return Done(f"node {node.name}", True, what, {key: node.annotations[key] for key in spoilt})
