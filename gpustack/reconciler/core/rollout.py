"""A bad driver breaks few nodes: the first one of a rollout goes alone, and so many failures stop it.

Solves: a bad driver breaks as many nodes at once as the budget lets go, before anybody has seen one of them work. So as
long as no node of the same product and kernel works with what a rollout brings, one node at a time has its turn,
whatever the budget says. Where that one does not get on for an hour, another may try; where it fails, the next goes
alone as well, until one works or the breaker opens.

And it breaks one node after the other, each in a pool of its own and each tried again meanwhile. So for the breaker
nodes count that have failed at what a policy's rollout brings, whatever policy they belong to and whether they are
tried again or not. It stays open until somebody looks or something else is rendered. New nodes do not count: they serve
nobody, and their own troubles say nothing about nodes that work. Nor do faults of GPUs, which no roll-out has brought.
What isn't known (the DaemonSet controller is away, a DaemonSet is made anew) is no new target and closes nothing (I23).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ...api import keys
from ...api.node_policy import Breaker, NodePolicy
from ...model import few
from .budget import absolute
from .record import Target
from .snapshot import Snapshot
from .view import View, leaving, outdated_by

NAMED = 5
"""How many nodes the message names."""
PATIENCE = timedelta(hours=1)
"""How long the others wait for a first node that neither works nor fails."""

Group = tuple[str, str, str]
"""What is brought, to which product, on which kernel."""


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


def groups(view: View, target: Target) -> frozenset[Group]:
    """What TARGET means on the node."""
    labels = view.labels
    return frozenset((part, labels.get(keys.PRODUCT, ""), labels.get(keys.KERNEL, "")) for part in parts_of(target))


@dataclass
class Pioneers:
    """What is proved in this pass, and who is on the way for what is not."""

    proved: frozenset[Group]
    under_way: dict[Group, str] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Snapshot, views: Sequence[View]) -> Pioneers:
        """As VIEWS show it."""
        proved: set[Group] = set()
        for view in views:
            if view.operation is None and view.known_machine:
                proved |= groups(view, _works_with(known, view))
        made = cls(frozenset(proved))
        for view in views:
            operation = view.operation
            if operation is None or not operation.disruptive or known.passed(operation.started) > PATIENCE:
                continue
            for group in groups(view, operation.target):
                made.under_way.setdefault(group, view.name)
        return made

    def refuse(self, view: View, target: Target) -> str:
        """Why the node waits for another one; "" where it does not."""
        for group in sorted(groups(view, target) - self.proved):
            unlabelled = (group[0], "", group[2])  # feature discovery takes the label away while a node is worked on
            first = self.under_way.get(group) or self.under_way.get(unlabelled, view.name)
            if first != view.name:
                what = f"{group[1] or 'these GPUs'} with kernel {group[2] or 'unknown'}"
                return f"{first} goes first and alone: no node of {what} works with {group[0]} yet"
        return ""

    def take(self, view: View, target: Target) -> None:
        """The node has its turn."""
        for group in groups(view, target):
            self.under_way.setdefault(group, view.name)


def _works_with(known: Snapshot, view: View) -> Target:
    """The driver and the layout with which the node works."""
    pods = known.driver_pods.get(view.name, ())
    revisions = {pod.labels.get(keys.HASH) for pod in pods if pod.ready and not pod.terminating}
    newest = view.driver.newest if view.driver else ""
    revision = newest if newest in revisions and not any(outdated_by(pod, newest) for pod in pods) else ""
    cut = view.memory.mig and view.labels.get(keys.MIG_CONFIG) == view.memory.mig
    return Target(revision=revision, mig=view.memory.mig if cut else "", mig_digest=view.memory.mig_digest)
