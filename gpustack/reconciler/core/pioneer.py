"""The first node of a rollout goes alone: of each driver or layout, on each product and kernel.

Solves: a driver that breaks nodes breaks as many at once as the budget lets go, before anybody has seen one of them
work. So as long as no node of the same product and kernel works with what a rollout brings, one node at a time has its
turn, whatever the budget says. Where that one does not get on for an hour, another may try; where it fails, the next
goes alone as well, until one works or the breaker opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ...api import keys
from .breaker import parts_of
from .record import Target
from .snapshot import Snapshot
from .view import View, outdated_by

PATIENCE = timedelta(hours=1)
"""How long the others wait for a first node that neither works nor fails."""

Group = tuple[str, str, str]
"""What is brought, to which product, on which kernel."""


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
