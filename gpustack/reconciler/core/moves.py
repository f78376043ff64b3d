"""How an operation moves, and how it ends (done, released before it began, or in quarantine): a single write each of
record, phase label, cordon and all that goes with them.

At an end what is ours goes with the record: cordon, marks, annotations for autoscalers. A cordon that is not ours, or
is no longer, stays (reconciler.md I3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

import msgspec

from ...api import keys
from ...api.objects import NodeTaint, Taint
from ...api.pods import Pod
from .actions import PatchNode
from .bounds import span
from .evictions import maker
from .health import stays
from .record import Last, Memory, Operation, Part, Phase, write
from .snapshot import Snapshot
from .view import View

FIRST_RETRY = timedelta(minutes=5)
LAST_RETRY = timedelta(hours=6)


class Changes(TypedDict, total=False):
    """The fields of an operation that a move may change; record.py says what each is. When a phase began and when it
    ends is not among them: it goes with the phase."""

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
    much later. The cordon goes with it, so that no state of the node exists in which one is there without the other."""
    begins = {"since": known.now, "deadline": known.now + span(seconds) if seconds else None}
    made = msgspec.structs.replace(operation, reason=why, **changes, **(begins if "phase" in changes else {}))
    annotations: dict[str, str | None] = {
        keys.OPERATION: write(made, view.annotations.get(keys.OPERATION)),
        keys.CORDONED: made.id if made.cordon else None,
    }
    annotations |= {**dict.fromkeys(made.annotated, "true"), **(notes or {})}
    return PatchNode(
        *view.seen,
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


def pause_before(attempt: int) -> timedelta:
    """How long to wait after failed attempt number ATTEMPT: five minutes, doubled each time, up to six hours."""
    doubled: int = 2 ** min(max(attempt - 1, 0), 16)
    return min(FIRST_RETRY * doubled, LAST_RETRY)


def close(known: Snapshot, view: View, operation: Operation) -> PatchNode:
    """The operation is done: give the node back, and remember what was proved."""
    target, memory = operation.target, view.memory
    mig, digest = (target.mig, target.mig_digest) if target.mig else cut(view) or (memory.mig, memory.mig_digest)
    belongs = (view.policy.uid, view.policy.name) if view.policy else (operation.policy, memory.name)
    last = Last(id=operation.id, kind=operation.kind, target=str(operation.target), outcome="done", at=known.now)
    startup = view.policy.spec.startupTaints if view.policy else operation.finish.startupTaints
    return _end(view, operation, last, remembered(view, *belongs, mig, digest), untainted(view, startup))


def remembered(view: View, policy: str, name: str, mig: str, digest: str) -> dict[str, str]:
    """What is to stand on the node, as it is now: that it belongs to the policy with the UID POLICY, called NAME, and
    that MIG with DIGEST was proved on it."""
    uid, machine = view.node.uid, view.node.status.nodeInfo.machineID
    memory = Memory(policy=policy, name=name, uid=uid, machine=machine, mig=mig, mig_digest=digest)
    return {keys.MEMORY: write(memory, view.annotations.get(keys.MEMORY))}


def untainted(view: View, startup: Iterable[Taint | str]) -> list[NodeTaint] | None:
    """The taints that stay on a node whose GPUs are proved; None where none is to go. A taint is one of STARTUP by key
    and effect, as the admission policy has it, which lets no other go: a write that takes one more away would be
    refused for ever. For the same reason what the policy says now counts, and the record only where there is no policy
    any more."""
    names = {str(taint) for taint in startup}
    left = [taint for taint in view.node.spec.taints if str(taint) not in names]
    return left if len(left) < len(view.node.spec.taints) else None


def abandon(
    known: Snapshot, view: View, operation: Operation, why: str, *, failed: bool, whose: Pod | None = None
) -> PatchNode:
    """Give up before the point of no return. A node that an earlier attempt has touched was never seen to work since,
    and one with a fault doesn't: it goes back into quarantine."""
    if (operation.acted is not None and not operation.install) or stays(view, operation):
        return quarantine(known, view, operation, why, again=True, tried=failed)
    return release(known, view, operation, why, failed=failed, whose=whose)


def release(
    known: Snapshot, view: View, operation: Operation, why: str, *, failed: bool, whose: Pod | None = None
) -> PatchNode:
    """Give the node back as it was; after a FAILED attempt the next waits. WHOSE is the pod that was in the way."""
    attempt = operation.attempt if failed else operation.attempt - 1
    last = Last(
        id=operation.id,
        kind=operation.kind,
        target=str(operation.target),
        outcome="released",
        at=known.now,
        attempt=attempt,
        notBefore=known.now + pause_before(attempt) if failed else None,
        reason=why,
        inTheWay=maker(whose) if whose else "",
        budgets=whose is not None and whose.uid in known.by_budgets,
    )
    return _end(view, operation, last, {}, None)


def quarantine(
    known: Snapshot, view: View, operation: Operation, why: str, *, again: bool = False, tried: bool = True
) -> PatchNode:
    """The operation failed past the point of no return: the node stays cordoned, and its slot goes back. AGAIN: it had
    failed before, and another attempt was given up before it did anything; where that was not TRIED, as somebody paused
    or held the node, it counts for nothing."""
    attempt = operation.attempt if tried else max(operation.attempt - 1, 1)
    more = attempt < operation.finish.maxAttempts
    changes: Changes = {
        "phase": "Quarantine",
        "attempt": attempt,
        "failures": operation.failures if again else operation.failures + 1,
        "notBefore": known.now + (pause_before(attempt) if tried else timedelta(0)) if more else None,
    }
    return move(known, view, operation, why, **changes)


def commanded(view: View, operation: Operation) -> bool:
    """Whether the MIG manager was told the layout of OPERATION, and no other since. Beside what somebody else has set a
    state proves nothing: it names no layout, and one of an earlier layout stands for a while (reconciler.md M1, M3)."""
    return operation.heardAt is not None and view.labels.get(keys.MIG_CONFIG) == operation.target.mig


def cut(view: View) -> tuple[str, str] | None:
    """The layout, and the digest of its content, that the operation on record has cut, whatever became of that besides,
    and though nobody may want it any more. Of what a node was cut by nothing else tells (reconciler.md M1)."""
    made = view.operation
    if made is None or not (made.target.mig and commanded(view, made) and view.cut_as(made.target.mig)):
        return None
    return made.target.mig, made.target.mig_digest


def _end(
    view: View, operation: Operation, last: Last, annotations: Mapping[str, str], taints: list[NodeTaint] | None
) -> PatchNode:
    removed = {keys.OPERATION, keys.RETRY, keys.REQUESTED, *operation.annotated}
    removed |= {keys.CORDONED} if view.annotations.get(keys.CORDONED) == operation.id else set()
    return PatchNode(
        *view.seen,
        f"{operation.kind} {last.outcome}" + (f": {last.reason}" if last.reason else ""),
        labels={keys.PHASE: None} if keys.PHASE in view.labels else {},
        annotations={
            **dict.fromkeys(key for key in sorted(removed) if key in view.annotations),
            keys.LAST: write(last, view.annotations.get(keys.LAST)),
            **annotations,
        },
        unschedulable=False if view.owns_cordon and view.node.spec.unschedulable else None,
        taints=taints,
    )
