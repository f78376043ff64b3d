"""Who else takes a node out of service, or is about to: nothing begins there before they are done.

Solves: a node that kured reboots while its driver is built, or that two controllers drain one after the other, loses
its workloads twice. Each of them says what it does in a mark of its own. They stand against a beginning only: an
operation that is under way ends by its own rules, and the node has been emptied then already.

kured reboots one node after the other, and keeps a lock meanwhile: where maintenance is shared with it, no node is
begun as long as the lock has no room for one more. It isn't taken: who may write an annotation of kured's DaemonSet may
make its privileged pods run anything on every node.

Sources: kured's --annotate-nodes, and its package daemonsetlock (reconciler.md A23); the state that NVIDIA's Network
Operator keeps by the same library as the GPU Operator's (reconciler.md U2); OpenShift's machine-config daemon, which
sets the wanted configuration when a node has its turn; the taint of medik8s' node maintenance, and its Leases
(sharing.py); cluster-autoscaler's soft taint.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from ...api import keys
from ...api.objects import Slim, Time
from ...model import few
from . import sharing
from .actions import Why
from .snapshot import Snapshot
from .view import View

IDLE = ("", "upgrade-done", "upgrade-required")
"""States of the network driver's upgrade in which nobody has touched the node; `upgrade-required` is queued."""


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
    held = sharing.holder(known, view) or _locked(known, view, new=new)
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
