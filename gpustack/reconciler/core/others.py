"""Who else takes a node out of service, or is about to: nothing begins there before they are done.

Solves: a node that kured reboots while its driver is built, or that two controllers drain one after the other, loses
its workloads twice. Each of them says what it does in a mark of its own. They stand against a beginning only: an
operation that is under way ends by its own rules, and the node has been emptied then already.

kured reboots one node after the other, and keeps a lock meanwhile: where maintenance is shared with it, no node is
begun as long as the lock has no room for one more. It isn't taken: who may write an annotation of kured's DaemonSet may
make its privileged pods run anything on every node.

Maintenance is shared by a Lease for each node as well: whoever works on the node holds it. By the convention of medik8s
it is `node-NAME` in one namespace, valid for its duration from its last renewal on (reconciler.md A23). So nothing
begins on a node whose Lease another one holds, it is taken before the node is, and given back with it; in quarantine
others may work on the node.

Sources: kured's --annotate-nodes, and its package daemonsetlock (reconciler.md A23); the state that NVIDIA's Network
Operator keeps by the same library as the GPU Operator's (reconciler.md U2); OpenShift's machine-config daemon, which
sets the wanted configuration when a node has its turn; the taint of medik8s' node maintenance, and its Leases;
cluster-autoscaler's soft taint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from ...api import keys
from ...api.objects import Lease, Slim, Time
from ...model import few
from .actions import HoldLease, Why
from .bounds import span
from .snapshot import Snapshot
from .view import View

IDLE = ("", "upgrade-done", "upgrade-required")
"""States of the network driver's upgrade in which nobody has touched the node; `upgrade-required` is queued."""
HOLDER, PREFIX = "gpustack-reconciler", "node-"
LASTS, SKEW = 3600, timedelta(minutes=1)
"""Seconds for which the Lease is held from a renewal on; it is renewed when less than half of it is left."""


def in_hand(known: Snapshot, view: View, *, new: bool) -> Why | None:
    """Who works on the node, or is about to remove it; None for nobody. A NEW node is idle as long as it has no driver:
    were the soft taint waited for, it would be removed for that, and the next come for the same pods."""
    labels, annotations = view.labels, view.annotations
    taints = {taint.key for taint in view.node.spec.taints}
    if keys.CANDIDATE_TAINT in taints and not new:
        return "leaving", f"cluster-autoscaler means to remove the node (taint {keys.CANDIDATE_TAINT})"
    if keys.KURED in annotations:
        return "maintenance", f"kured reboots the node (annotation {keys.KURED})"
    if (state := labels.get(keys.NETWORK_STATE, "")) not in IDLE:
        return "maintenance", f"the network driver is upgraded (label {keys.NETWORK_STATE}={state})"
    current, desired = (annotations.get(key, "") for key in keys.MACHINE_CONFIGS)
    if current != desired:
        return "maintenance", f"the machine config operator brings the node to {desired or 'nothing'}"
    if keys.DRAINED in taints:
        return "maintenance", f"a NodeMaintenance drains the node (taint {keys.DRAINED})"
    held = holder(known, view) or _locked(known, view, new=new)
    return ("maintenance", held) if held else None


class Lock(Slim, kw_only=True):
    """kured's lock, of a node or, with a concurrency of more than one, of several; seconds are nanoseconds there."""

    nodeID: str = ""
    created: Time | None = None
    TTL: int = 0
    """0: for ever."""
    maxOwners: int = 1
    locks: list[Lock] | None = None


def _locked(known: Snapshot, view: View, *, new: bool) -> str:
    """Whether kured works on so many nodes that no other may be begun, or on this one; a NEW node serves nobody yet."""
    kured = known.kured
    if kured is None or (text := kured.annotations.get(keys.KURED_LOCK)) is None:
        return ""
    where = f"annotation {keys.KURED_LOCK} of DaemonSet {kured.metadata.namespace}/{kured.name}"
    try:
        lock = msgspec.json.decode(text, type=Lock)
    except (msgspec.MsgspecError, RecursionError):
        return "" if new else f"kured's lock can't be read ({where}): remove it where kured reboots nothing"
    every = [lock] if lock.nodeID else lock.locks or []
    nodes = [each.nodeID for each in every if not _expired(each, known)]
    if view.name not in nodes and (new or len(nodes) < max(lock.maxOwners, 1)):
        return ""
    return f"kured reboots {few(nodes, 3)}; where that is over and its lock was left, remove the {where}"


def _expired(lock: Lock, known: Snapshot) -> bool:
    try:
        until = lock.created and lock.created + timedelta(microseconds=lock.TTL // 1000)
        return lock.TTL > 0 and until is not None and known.now >= until
    except OverflowError:
        return False


def holder(known: Snapshot, view: View) -> str:
    """Who else holds the node; "" for nobody."""
    lease = (known.maintenance or {}).get(view.name)
    if lease is None or lease.spec.holderIdentity == HOLDER or _left(lease, known.now) <= timedelta(0):
        return ""
    return f"{lease.spec.holderIdentity or 'somebody'} holds Lease {lease.metadata.namespace}/{lease.name}"


def hold(known: Snapshot, view: View, *, first: bool = False) -> list[HoldLease]:
    """Hold the node, FIRST before it is taken, or for longer; not where no such Leases are kept, or others hold it."""
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
    """How long LEASE is valid yet; it isn't if its time can't be read, or is further ahead than clocks differ."""
    try:
        renewed = datetime.fromisoformat(lease.spec.renewTime or "").astimezone(UTC)
    except (ValueError, OverflowError):
        return timedelta(0)
    return renewed + span(lease.spec.leaseDurationSeconds or 0) - now if renewed <= now + SKEW else timedelta(0)
