"""A pass before it is made: the cluster as the next pass would leave it where nothing but notes is written.

For plans: whom nodes belong to, their labels and the MIG managers' file come first, and what is due begins only then.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ...api import keys
from ...api.objects import Node
from .actions import PatchNode
from .engine import outlook
from .layouts import named
from .snapshot import Snapshot


def foreseen(known: Snapshot) -> Snapshot:
    """KNOWN with its nodes as a pass leaves those on which it only notes something: whom they belong to, their labels.

    For plans: the next pass sees them so, and what is due on them begins only then.
    """
    made = {
        action.node: action
        for action in outlook(known).decision.actions
        if isinstance(action, PatchNode) and not action.admits and keys.OPERATION not in action.annotations
    }
    file = named(known).layouts
    layouts = replace(file, written=file.file, at=None) if file else None
    nodes = [_noted(node, made[node.name]) if node.name in made else node for node in known.nodes]
    return replace(known, nodes=nodes, layouts=layouts)


def _noted(node: Node, action: PatchNode) -> Node:
    metadata = node.metadata
    labels = {key: value for key, value in {**metadata.labels, **action.labels}.items() if value is not None}
    notes = {key: value for key, value in {**metadata.annotations, **action.annotations}.items() if value is not None}
    made = msgspec.structs.replace(metadata, labels=labels, annotations=notes)
    spec = node.spec
    if action.unschedulable is not None:
        spec = msgspec.structs.replace(spec, unschedulable=action.unschedulable)
    if action.taints is not None:
        spec = msgspec.structs.replace(spec, taints=list(action.taints))
    return msgspec.structs.replace(node, metadata=made, spec=spec)
