"""The one way in which an operation moves: a single write of record, phase label, cordon and all that goes with
them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypedDict, Unpack

import msgspec

from ...api import keys
from .actions import PatchNode
from .record import Operation, Part, Phase, write
from .snapshot import Snapshot
from .spans import span
from .view import View


class Changes(TypedDict, total=False):
    """The fields of an operation that a move may change; record.py says what each is. When a phase began and when it
    ends is not among them: it goes with the phase.
    """

    phase: Phase
    step: Part
    acted: datetime | None
    emptySince: datetime | None
    attempt: int
    boot: str
    failures: int
    heard: str
    heardAt: datetime | None
    notBefore: datetime | None
    recordons: int
    restartOnly: bool
    restarted: datetime | None
    restarts: int


def move(
    known: Snapshot,
    view: View,
    operation: Operation,
    why: str,
    *,
    seconds: int | None = None,
    labels: Mapping[str, str | None] | None = None,
    notes: Mapping[str, str | None] | None = None,
    admits: str = "",
    **changes: Unpack[Changes],
) -> PatchNode:
    """Write OPERATION with CHANGES, and NOTES as annotations; a new phase begins now and ends, if SECONDS is not 0, so
    much later.

    The cordon goes with it, so that no state of the node exists in which one is there without the other.
    """
    begins = {"since": known.now, "deadline": known.now + span(seconds) if seconds else None}
    made = msgspec.structs.replace(operation, reason=why, **changes, **(begins if "phase" in changes else {}))
    annotations: dict[str, str | None] = {
        keys.OPERATION: write(made, view.annotations.get(keys.OPERATION)),
        keys.CORDONED: made.id if made.cordon else None,
    }
    annotations |= {**dict.fromkeys(made.annotated, "true"), **(notes or {})}
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
        again=view.operation.id if admits and view.operation else "",
        policy=operation.policy if admits else "",
        install=bool(admits) and operation.install,
    )
