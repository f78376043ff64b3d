"""The breaker: so many nodes that a rollout has broken stop it, until somebody looks or something else is rendered.

Solves: a bad driver breaks one node after the other, each in a pool of its own and each tried again meanwhile. So nodes
count that have failed at what a policy's rollout brings, whatever policy they belong to and whether they are tried
again or not. New nodes do not: they serve nobody, and their own troubles say nothing about nodes that work. Nor do
faults of GPUs, which no roll-out has brought. What is not
known (the DaemonSet controller is away, a DaemonSet is being made anew) is no new target and closes nothing (I23).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...api import keys
from ...api.node_policy import Breaker, NodePolicy
from ...model import few
from .budget import absolute
from .record import Target
from .snapshot import Snapshot
from .view import View, leaving

NAMED = 5
"""How many nodes the message names."""


@dataclass(frozen=True)
class Failure:
    """A node on which an operation has failed past the point of no return, and that has not been seen to work since."""

    node: str
    mark: str
    """Tells this failure from the node's next one."""
    policy: str
    parts: frozenset[str]


def failures(views: Sequence[View]) -> list[Failure]:
    """The failures that there are, by node. Nodes that are going away count no more."""
    failed = []
    for view in views:
        operation = view.operation
        if operation is None or operation.install or operation.target.health or leaving(view):
            continue
        if operation.phase == "Quarantine" or operation.failures:
            mark = f"{view.node.uid}/{max(operation.failures, 1)}"
            failed.append(Failure(view.name, mark, operation.policy, parts_of(operation.target)))
    return failed


def parts_of(target: Target) -> frozenset[str]:
    """What TARGET brings, driver and layout apart: pools that bring the same driver may bring different layouts."""
    parts = (target.revision, f"{target.mig}@{target.mig_digest}" if target.mig else "")
    return frozenset(part for part in parts if part)


def brings(known: Snapshot, policy: NodePolicy) -> str | None:
    """What the rollout of POLICY brings: the newest driver templates and the MIG layout. None while it isn't known."""
    names = {each.name for each in policy.spec.driver.daemonSets} if policy.spec.driver else set()
    sets = [each for each in known.driver_sets if each.object.name in names]
    if len(sets) < len(names) or any(not each.newest for each in sets):
        return None
    mig = policy.spec.mig
    return "/".join([*sorted(each.newest for each in sets), f"{mig.config}@{mig.digest}" if mig else ""])


def breaker(known: Snapshot, policy: NodePolicy, failed: Sequence[Failure], nodes: int) -> Breaker:
    """Whether failures stop the rollout of POLICY, which has so many NODES. A new target or a new value of the
    annotation that resets it closes it, and forgives what has failed by then."""
    before, target = policy.status.breaker, brings(known, policy)
    reset = policy.annotations.get(keys.RESET_BREAKER, "")
    brought = frozenset((target or before.target).split("/"))
    mine = [each for each in failed if each.policy == policy.uid or each.parts & brought]
    marks = sorted(each.mark for each in mine)
    forgiven = [mark for mark in before.forgiven if mark in marks]
    other = target is not None and bool(before.target) and before.target != target
    target = before.target if target is None else target
    if reset and reset != before.reset:
        return Breaker(target=target, reset=reset, forgiven=marks)
    if other:  # what failed at that target already counts: the status may not have been written since
        forgiven = sorted(each.mark for each in mine if not each.parts & brought)
    if before.open and not other:
        return before
    counted = sorted(each.node for each in mine if each.mark not in forgiven)
    limit = absolute(policy.spec.upgrade.breakerFailures, nodes)
    if limit and len(counted) >= limit:
        what = f"{few(counted, NAMED)} failed, and {limit} failed nodes stop the rollout"
        return Breaker(open=True, target=target, message=what, since=known.now, reset=before.reset, forgiven=forgiven)
    return Breaker(target=target, reset=before.reset, forgiven=forgiven)
