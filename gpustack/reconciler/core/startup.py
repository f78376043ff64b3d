"""The platform's startup taints on a node that no operation sets up.

Solves: an install takes them away when it is done (reconciler.md A4). But a kubelet may register its node anew, with
them, while everything on the machine works: that node is no new one, and nobody else would ever take them away.
"""

from __future__ import annotations

from ...api.node_policy import NodePolicy
from . import verify
from .actions import PatchNode
from .admission import operation_for
from .closing import untainted
from .due import Due
from .record import Target
from .snapshot import Snapshot
from .view import View


def untaint(known: Snapshot, view: View, policy: NodePolicy) -> tuple[PatchNode | None, str]:
    """The write that takes them away once all works, or what it waits for; neither where there are none."""
    left = untainted(view, policy.spec.startupTaints)
    if left is None:
        return None, ""
    if lacking := verify.problems(known, view, operation_for(known, view, policy, Due(("install",), Target()))):
        return None, f"the platform's taint stays until its GPUs are proved: {lacking[0]}"
    metadata = view.node.metadata
    why = "its GPUs are proved: no startup taint any more"
    return PatchNode(view.name, metadata.uid, metadata.resourceVersion, why, taints=left), ""
