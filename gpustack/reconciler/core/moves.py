"""The one way in which an operation moves: a single write of record, phase label, cordon and all that goes with
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...api import keys
from .actions import PatchNode
from .record import Operation, write
from .snapshot import Snapshot
from .spans import span
from .view import View


def move(
    known: Snapshot,
    view: View,
    operation: Operation,
    why: str,
    *,
    seconds: int | None = None,
    labels: Mapping[str, str | None] | None = None,
    admits: str = "",
    **changes: Any,
) -> PatchNode:
    """Write OPERATION with CHANGES; a new phase begins now and ends, if SECONDS is not 0, so much later.

    The cordon goes with it, so that no state of the node exists in which one is there without the other.
    """
    if "phase" in changes:
        changes.setdefault("since", known.now)
        changes["deadline"] = known.now + span(seconds) if seconds else None
    made = msgspec.structs.replace(operation, reason=why, **changes)
    annotations: dict[str, str | None] = {
        keys.OPERATION: write(made, view.annotations.get(keys.OPERATION)),
        keys.CORDONED: made.id if made.cordon else None,
    }
    annotations.update(dict.fromkeys(made.annotated, "true"))
    return PatchNode(
        view.name,
        view.node.uid,
        view.node.metadata.resourceVersion,
        why,
        labels={**(labels or {}), keys.PHASE: made.phase},
        annotations={
            key: value for key, value in annotations.items() if not (value is None and key not in view.annotations)
        },
        unschedulable=True if made.cordon and not view.node.spec.unschedulable else None,
        admits=admits,
        install=bool(admits) and operation.install,
    )
