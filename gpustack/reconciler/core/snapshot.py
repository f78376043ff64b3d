"""What a pass knows: the cluster at one moment, as plain data. `engine.decide` is a function of this and of nothing
else, and changes nothing of it.

Times that stand on no object (how long a label has been gone) are in `Seen`, which a decision hands on to the next
pass, and the Lease to the next leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from ...api.node_policy import HealthRule, NodePolicy
from ...api.objects import Lease, Node
from ...api.pods import DaemonSet, Pod
from .record import Entry


@dataclass(frozen=True)
class Seen:
    """Since when something has been the case, by (node UID, what)."""

    first: Mapping[tuple[str, str], datetime] = field(default_factory=dict)

    def since(self, uid: str, what: str, now: datetime, *, holds: bool = True) -> timedelta:
        """How long WHAT has been so of the object UID; zero where it does not hold."""
        return max(now - self._first(uid, what, now), timedelta(0)) if holds else timedelta(0)

    def still(self, uid: str, what: str, now: datetime) -> None:
        """Nobody can tell now whether WHAT is so: the time for which it has been stands still."""

    def _first(self, uid: str, what: str, now: datetime) -> datetime:
        first = min(self.first.get((uid, what), now), now)  # a clock that was put back makes nothing begin later
        return first + (now - min(self.first.get((uid, f"{what} still"), now), now))


@dataclass(frozen=True)
class Asked(Seen):
    """`Seen` for the time of a pass, which notes what it asks for: that is what the next one is to know. What a pass
    does not ask for is not the case."""

    kept: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def since(self, uid: str, what: str, now: datetime, *, holds: bool = True) -> timedelta:
        """As `Seen.since`."""
        if holds:
            self.kept[uid, what] = self._first(uid, what, now)
        return super().since(uid, what, now, holds=holds)

    def still(self, uid: str, what: str, now: datetime) -> None:
        """As `Seen.still`."""
        if (since := self.first.get((uid, what))) is not None:
            self.kept[uid, what] = since
            self.kept[uid, f"{what} still"] = self.first.get((uid, f"{what} still"), now)


@dataclass(frozen=True)
class DriverSet:
    """A driver DaemonSet, and the hash that its newest pods have; "" until the DaemonSet controller has made one."""

    object: DaemonSet
    newest: str = ""


@dataclass(frozen=True)
class Precheck:
    """What stands against evicting the pods of a candidate: empty where nothing does."""

    blockers: tuple[str, ...] = ()
    budgets: bool = False
    """Whether nothing but PodDisruptionBudgets stands against it."""
    unknown: str = ""
    """Why it could not be found out; such a node makes room for others."""


@dataclass(frozen=True)
class Announced:
    """An admission that stands in the Lease, and perhaps not on the node yet."""

    install: bool = False
    trouble: str = ""
    """Why it can't be settled."""


@dataclass(frozen=True)
class Layouts:
    """The ConfigMap that the MIG managers read. Contents are JSON in one form, by name."""

    wanted: Mapping[str, str] = field(default_factory=dict)
    """As rendered."""
    written: Mapping[str, str] = field(default_factory=dict)
    """As the managers read them."""
    at: datetime | None = None
    """When a content was last written that was not there before."""
    version: str = ""
    """The resource version."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By which the NodePolicies of this render name the contents of layouts."""
    torn: frozenset[str] = frozenset()
    """UIDs of the policies that name another content (layouts.py)."""
    file: Mapping[str, str] = field(default_factory=dict)
    """What is to be written (layouts.py)."""


@dataclass(frozen=True)
class Kept:
    """Views of nodes (view.py) for the next pass, for as long as all that they are made of is the same: in most passes
    most nodes are. They say nothing that a snapshot doesn't, so they are no part of its meaning."""

    of: Sequence[object] = ()
    """The policies and drivers by which they were made."""
    views: Mapping[str, tuple[Node, object, Any]] = field(default_factory=dict)
    """By UID, with the node and its entry in the ledger."""


@dataclass(frozen=True)
class Snapshot:
    """The cluster as a pass sees it."""

    now: datetime
    namespace: str
    nodes: Sequence[Node] = ()
    policies: Sequence[NodePolicy] = ()
    driver_sets: Sequence[DriverSet] = ()
    driver_pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """Driver pods by node."""
    pullers: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """Pods that pull the images of drivers beforehand, by node."""
    validators: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    sandbox_validators: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """Of nodes for virtual machines, by node."""
    mig_managers: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """All pods of the nodes that `survey` asked for."""
    claims: frozenset[str] = frozenset()
    """namespace/name of ResourceClaims that hold a GPU; claims that couldn't be read count as held."""
    prechecks: Mapping[str, Precheck] = field(default_factory=dict)
    admitting: Mapping[str, Announced] = field(default_factory=dict)
    """By UID, nodes whose admission is announced in the Lease and perhaps not seen on the node yet."""
    ledger: Mapping[str, Entry] | None = None
    """By UID, the operations that were begun by this program; None where that isn't known, and records are believed."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why the pods of a node could not be read."""
    read: Mapping[str, datetime] = field(default_factory=dict)
    """When the pods of a node, by UID, were last asked for."""
    used: Mapping[str, int] = field(default_factory=dict)
    """How many pods use a GPU of a node, by UID, as it was seen in the last minutes."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By UID, nodes that the API server does not let us change, in its words, while they are left alone for that."""
    setbacks: Mapping[str, int] = field(default_factory=dict)
    """By UID, how often in a row changes of a node have failed: those without have their turn first."""
    layouts: Layouts | None = None
    """None where the MIG managers read what is rendered, and where there is no MIG manager."""
    maintenance: Mapping[str, Lease] | None = None
    """Leases by which maintenance is shared (others.py), by the node's name; None where no such Leases are kept."""
    kured: DaemonSet | None = None
    """kured's, which has its lock (others.py); None where nobody asks."""
    paused: str = ""
    """Why the whole fleet is paused; "" where it is not."""
    foreign: str = ""
    """The operator that still runs; "" where none does."""
    seen: Seen = field(default_factory=Seen)
    away: Sequence[tuple[datetime, datetime]] = ()
    """From when to when nobody has watched: no program led, or the API server's clock has jumped."""
    backoff: Mapping[str, datetime] = field(default_factory=dict)
    """Pods, by UID, that are not to be evicted again before that time."""
    came_again: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """By whose pod it was (evictions.py): when one was last evicted, and until when one that came since stays."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why the last eviction of a pod, by UID, was refused."""
    by_budgets: frozenset[str] = frozenset()
    """UIDs of those that a PodDisruptionBudget refused."""
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    def passed(self, since: datetime) -> timedelta:
        """The time since SINCE without that in which nobody watched: nothing could be told then, nor asked for."""
        missed = (min(end, self.now) - max(begin, since) for begin, end in self.away)
        return self.now - since - sum((each for each in missed if each > timedelta(0)), timedelta(0))

    @cached_property
    def image_troubles(self) -> dict[str, str]:
        """What images.py has found wrong, by revision: it looks at every node, and a pass asks for each of many."""
        return {}

    @cached_property
    def health_rules(self) -> dict[str, dict[str, list[HealthRule]]]:
        """What conditions of nodes mean: by the UID of their policy, and by type."""
        made: dict[str, dict[str, list[HealthRule]]] = {}
        for policy in self.policies:
            of = made.setdefault(policy.uid, {})
            for rule in policy.spec.health.rules if policy.spec.health else ():
                of.setdefault(rule.type, []).append(rule)
        return made

    @cached_property
    def started(self) -> dict[str, list[tuple[str, datetime]]]:
        """The driver pods that run, by revision, as images.py has found them: UIDs, and when a container started."""
        return {}
