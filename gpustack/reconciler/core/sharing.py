"""Maintenance that is shared with others by a Lease for each node: whoever works on the node holds it.

Solves: while a driver is built, a node maintenance or a remediation drains and reboots the node. By the convention of
medik8s each node has a Lease `node-NAME` in one namespace, valid for its duration from its last renewal on
(reconciler.md A23). So nothing begins on a node whose Lease another one holds, it is taken before the node is, and
given back with it; in quarantine others may work on the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from ...api.objects import Lease
from .actions import HoldLease
from .snapshot import Snapshot
from .spans import span
from .view import View

HOLDER, PREFIX = "gpustack-reconciler", "node-"
LASTS, SKEW = 3600, timedelta(minutes=1)
"""Seconds for which the Lease is held from a renewal on; it is renewed when less than half of it is left."""


def holder(known: Snapshot, view: View) -> str:
    """Who else holds the node; "" for nobody."""
    lease = (known.maintenance or {}).get(view.name)
    if lease is None or lease.spec.holderIdentity == HOLDER or _left(lease, known.now) <= timedelta(0):
        return ""
    return f"{lease.spec.holderIdentity or 'somebody'} holds Lease {lease.metadata.namespace}/{lease.name}"


def hold(known: Snapshot, view: View, *, first: bool = False) -> list[HoldLease]:
    """Hold the node, FIRST before it is taken, or for longer; nothing where no such Leases are kept, or another one
    holds it."""
    if known.maintenance is None or holder(known, view):
        return []
    lease, at = known.maintenance.get(view.name), known.now.isoformat(timespec="microseconds")
    spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": LASTS, "renewTime": at}
    if lease is None or lease.spec.holderIdentity != HOLDER:
        spec["acquireTime"] = at
    elif _left(lease, known.now) > span(LASTS) / 2:
        return []
    return [HoldLease(view.name, view.node.uid, lease.metadata.resourceVersion if lease else "", spec, first)]


def leases(known: Snapshot, views: Sequence[View], begun: frozenset[str]) -> Iterator[HoldLease]:
    """Hold the nodes that are worked on, and give back those that are not; BEGUN begin in this pass."""
    at_work = {view.name: view for view in views if view.operation and view.operation.phase != "Quarantine"}
    for view in at_work.values():
        yield from hold(known, view)
    coming = {view.name for view in views if view.node.uid in known.admitting} | begun | at_work.keys()
    for name, lease in (known.maintenance or {}).items():
        if lease.spec.holderIdentity == HOLDER and name not in coming:
            yield HoldLease(name, "", lease.metadata.resourceVersion, {"holderIdentity": None, "renewTime": None})


def _left(lease: Lease, now: datetime) -> timedelta:
    """How long LEASE is valid yet: a time that can't be read is none, nor is one further ahead than clocks differ."""
    try:
        renewed = datetime.fromisoformat(lease.spec.renewTime or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return timedelta(0)
    return renewed + span(lease.spec.leaseDurationSeconds or 0) - now if renewed <= now + SKEW else timedelta(0)
