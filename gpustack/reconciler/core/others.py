"""Who else takes a node out of service, or is about to: nothing begins there before they are done.

Solves: a node that kured reboots while its driver is built, or that two controllers drain one after the other, loses
its workloads twice. Each of them says what it does in a mark of its own. They stand against a beginning only: an
operation that is under way ends by its own rules, and the node has been emptied then already.

Sources: kured's --annotate-nodes; the state that NVIDIA's Network Operator keeps by the same library as the GPU
Operator's (reconciler.md U2); OpenShift's machine-config daemon, which sets the wanted configuration when a node has
its turn; the taint of medik8s' node maintenance, and its Leases (sharing.py); cluster-autoscaler's soft taint.
"""

from __future__ import annotations

from ...api import keys
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
    held = sharing.holder(known, view)
    return ("maintenance", held) if held else None
