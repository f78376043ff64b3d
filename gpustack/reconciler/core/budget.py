"""How many nodes may be taken out of service now: one budget for every kind of work, over a set of unavailable nodes.

A node is unavailable if anybody cordoned it, if it is not Ready, or if an operation on it is past admission, one that
can't be read included: a set, so that no node counts twice (the operator's own arithmetic counts some twice and others
not at all, reconciler.md U15, U16). A budget that shrinks stops admission and nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...api import keys
from ...api.node_policy import IntOrPercent, Limits, NodePolicy
from ...model import few, whole
from .actions import Why
from .snapshot import Announced
from .view import View

ZONE = "topology.kubernetes.io/zone"
NO_LIMIT = 1_000_000_000
NAMED = 3
"""How many nodes a reason names."""
Admitting = Mapping[str, Announced]


def absolute(limit: IntOrPercent, total: int) -> int:
    """LIMIT in nodes of TOTAL: a percentage is rounded up, so it is never below 1 unless it is 0."""
    if isinstance(limit, int):
        return max(limit, 0)
    text = limit.strip()
    number = whole(text.removesuffix("%")) or 0
    return math.ceil(number * total / 100) if text.endswith("%") else number


def announced(view: View, admitting: Admitting) -> bool:
    """Whether the node was announced to be taken, and is not seen to be: the watch may lag behind the write."""
    entry = admitting.get(view.node.uid)
    return entry is not None and not entry.install and (view.operation is None or not view.operation.disruptive)


def unavailable(view: View, admitting: Admitting) -> bool:
    """Whether the node is out of service, or about to be."""
    operation = view.operation
    return (
        view.node.spec.unschedulable
        or not view.node.ready
        or (operation is not None and not operation.install)
        or announced(view, admitting)
        or view.spoilt
    )


@dataclass
class Share:
    """What is left of a pair of limits. `down`: unavailable nodes, by UID; `working`: those with open operations."""

    name: str
    parallel: int
    limit: int
    working: list[str]
    down: dict[str, str]

    @classmethod
    def of(
        cls, name: str, limits: Limits, views: Sequence[View], admitting: Admitting, stuck: Collection[str] = ()
    ) -> Share:
        """The share of VIEWS. Nodes on hold don't count in its total (reconciler.md 6.3), STUCK ones have no slot."""
        total = sum(1 for view in views if not view.held)
        working = [
            view.name
            for view in views
            if (view.operation and view.operation.disruptive and view.node.uid not in stuck)
            or announced(view, admitting)
            or view.spoilt
        ]
        return cls(
            name,
            limits.maxParallel or NO_LIMIT,
            absolute(limits.maxUnavailable, total),
            working,
            {view.node.uid: view.name for view in views if unavailable(view, admitting)},
        )

    @property
    def busy(self) -> int:
        """How many operations are open."""
        return len(self.working)

    def refuses(self, view: View) -> Why | None:
        """Why the node may not be taken now: by whom the slots are held. One that is out of service by our own cordon
        needs a slot and no more (A5)."""
        if self.busy >= self.parallel:
            names = f": {few(self.working, NAMED)}" if self.working else ""
            return "parallel", f"{self.busy} of {self.parallel} operations of {self.name} are under way{names}"
        if view.node.uid not in self.down and len(self.down) >= self.limit:
            names = f": {few(sorted(self.down.values()), NAMED)}" if self.down else ""
            return "budget", f"{len(self.down)} nodes of {self.name} are unavailable, and {self.limit} may be{names}"
        return None

    def take(self, view: View) -> None:
        """Count the node as taken."""
        self.working.append(view.name)
        self.down[view.node.uid] = view.name


def zone_of(view: View) -> str:
    """The node's zone, "" for none."""
    return view.labels.get(ZONE, "")


class Budget:
    """All limits that an admission must keep: of the pool, of its zones, and of the fleet; the smallest wins."""

    def __init__(
        self, views: Sequence[View], policies: Sequence[NodePolicy], admitting: Admitting, stuck: Collection[str] = ()
    ) -> None:
        members: dict[str, list[View]] = {}
        uids = {policy.uid for policy in policies}
        for view in views:
            members.setdefault(_owner(view, uids), []).append(view)
        gone = [view for view in members.pop("", ()) if view.operation]
        everyone = [*gone, *(view for of in members.values() for view in of)]
        self._pools: dict[str, Share] = {}
        self._zones: dict[tuple[str, str], Share] = {}
        self._fleet = [Share.of("the fleet", limits, everyone, admitting, stuck) for limits in _fleet(policies)]
        self._down_by_zone = Counter(zone_of(view) for view in everyone if unavailable(view, admitting))
        self._installs: dict[str, int] = {}
        for policy in policies:
            of = members.get(policy.uid, [])
            self._pools[policy.uid] = Share.of(policy.name, policy.spec.upgrade, of, admitting, stuck)
            at_work = (view.operation for view in of if view.node.uid not in stuck)
            opened = sum(1 for each in at_work if each and each.install and each.phase != "Quarantine")
            self._installs[policy.uid] = (policy.spec.install.maxParallel or NO_LIMIT) - opened
            self._add_zones(policy, of, admitting)

    def _add_zones(self, policy: NodePolicy, views: Sequence[View], admitting: Admitting) -> None:
        limit = policy.spec.upgrade.zoneMaxUnavailable
        if limit is None:
            return
        limits = Limits(maxParallel=0, maxUnavailable=limit)
        for zone in {zone_of(view) for view in views}:
            inside = [view for view in views if zone_of(view) == zone]
            name = f"{policy.name} in zone {zone or 'none'}"
            self._zones[policy.uid, zone] = Share.of(name, limits, inside, admitting)

    @property
    def shares(self) -> list[Share]:
        """All of them: of the pools, of their zones, of the fleet."""
        return [*self._pools.values(), *self._zones.values(), *self._fleet]

    def _shares(self, view: View) -> list[Share]:
        uid = view.policy.uid if view.policy else ""
        zone = self._zones.get((uid, zone_of(view)))
        return [share for share in (self._pools.get(uid), zone, *self._fleet) if share]

    def refuses(self, view: View) -> Why | None:
        """Why the node may not be taken out of service now: kind and text; None where it may."""
        return next((why for share in self._shares(view) if (why := share.refuses(view))), None)

    def take(self, view: View) -> None:
        """Count the node as taken."""
        shares = self._shares(view)
        self._down_by_zone[zone_of(view)] += all(view.node.uid not in share.down for share in shares)
        for share in shares:
            share.take(view)

    def installs(self, view: View) -> bool:
        """Take a slot of the installs of the node's pool; False where none is left."""
        uid = view.policy.uid if view.policy else ""
        if self._installs.get(uid, 0) <= 0:
            return False
        self._installs[uid] -= 1
        return True

    def down(self, zone: str) -> int:
        """How many nodes of ZONE are out of service, those that were taken included."""
        return self._down_by_zone[zone]


def _owner(view: View, known: Collection[str]) -> str:
    """UID of the policy in whose budget the node counts, "" for none. An open operation's, though NFD sees no GPU any
    more or the node has moved; if that policy is gone, or was made anew, the node's present one."""
    if view.operation and view.operation.policy in known:
        return view.operation.policy
    if view.operation:
        return view.policies[0].uid if view.policies else ""
    return view.policy.uid if view.policy and (view.gpu or view.labels.get(keys.PRESENT) == "true") else ""


def _fleet(policies: Sequence[NodePolicy]) -> list[Limits]:
    """The limits over all pools. They are the same in every policy; while a sync is under way, each of them holds."""
    limits: list[Limits] = []
    for policy in policies:
        if policy.spec.fleet not in limits:
            limits.append(policy.spec.fleet)
    return limits
