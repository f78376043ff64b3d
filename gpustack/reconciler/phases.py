"""The phase machine: how an operation goes on, on one node, from what is seen there now.

::

    (Queued) -> Held -> Evicting -> Acting -> Verifying -> (closed)
                  |        |          |           |
                  `--------+-> (released)         |          before Acting: uncordoned again, tried later
                                      `-----------+-> Quarantine -> Held ...

Queued is derived and the ends are one write each, so neither is stored. Each call makes at most one step: a write that
moves the phase, or the requests that the phase is for. Acting is the point of no return, and is written down before
anything is done. Every phase has a deadline that was stored when it began (reconciler.md 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from . import acting, pods, verify
from .actions import Action, Evict, Tell
from .closing import abandon, close, quarantine
from .moves import move
from .objects import Pod
from .record import Operation
from .snapshot import Snapshot
from .view import View, uses_of

EMPTY_FOR = timedelta(seconds=5)
"""How long nothing may have used a GPU before the point of no return: a pod can be bound to a cordoned node (I7)."""
HELD_FOR = timedelta(hours=1)
"""How long a wait without a limit keeps its slot (A5)."""
RECORDONS = 5
"""How often a cordon that somebody took away is put back before the operation gives up."""


@dataclass
class Step:
    """What to do on a node, and why it is where it is."""

    actions: list[Action] = field(default_factory=list)
    tells: list[Tell] = field(default_factory=list)
    reason: str = ""
    again: float = 300.0


def step(known: Snapshot, view: View, operation: Operation) -> Step:
    """The next step of OPERATION on its node."""
    if operation.returnable:
        return _give_up(known, view, operation) or _cordon(known, view, operation) or _before(known, view, operation)
    if patch := acting.labels_lost(known, view, operation):
        return Step([patch])
    if operation.phase == "Acting":
        return _acting(known, view, operation)
    if operation.phase == "Verifying":
        return _verifying(known, view, operation)
    return _quarantine(known, view, operation)


def _before(known: Snapshot, view: View, operation: Operation) -> Step:
    return _held(known, view, operation) if operation.phase == "Held" else _evicting(known, view, operation)


def _give_up(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Release what has not been touched and no longer should be: on hold, or its policy is gone."""
    if view.held:
        return Step([abandon(known, view, operation, view.held, failed=False)])
    if view.policy is None or view.policy.uid != operation.policy:
        return Step([abandon(known, view, operation, "the node no longer belongs to the policy", failed=False)])
    return None


def _cordon(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Put back a cordon that somebody took away: new pods may have come."""
    if not operation.cordon or view.node.spec.unschedulable:
        return None
    if operation.recordons >= RECORDONS:
        return Step([abandon(known, view, operation, "somebody keeps uncordoning the node", failed=True)])
    changes: dict[str, Any] = {"recordons": operation.recordons + 1, "phase": "Held", "step": ""}
    return Step([move(known, view, operation, "cordoned again: somebody uncordoned it", **changes)])


def _listed(known: Snapshot, view: View) -> Sequence[Pod] | None:
    return known.pods.get(view.name)


def _unread(known: Snapshot, view: View) -> str:
    why = known.unread.get(view.name)
    return f"its pods could not be read: {why}" if why else "its pods could not be read"


def _held(known: Snapshot, view: View, operation: Operation) -> Step:
    """Wait for the pods that the policy says to wait for."""
    listed = _listed(known, view)
    if listed is None:
        return Step(reason=_unread(known, view), again=5)
    wait = operation.finish.wait
    left = pods.awaited(listed, wait.podSelector)
    waited = max(known.now - operation.since, timedelta(0))
    if left and wait.timeoutSeconds == 0 and waited >= HELD_FOR:
        return Step(
            [abandon(known, view, operation, f"{left[0].key} still runs; the slot goes to another node", failed=True)]
        )
    if left and not _past(known.now, operation):
        return Step(reason=f"waits for {len(left)} pods to finish, the first is {left[0].key}", again=30)
    if operation.restartOnly:
        return Step([acting.enter(known, view, operation, operation.acts[0])])
    limit = operation.finish.podDeletion.timeoutSeconds
    return Step([move(known, view, operation, "evict what uses the GPUs", phase="Evicting", seconds=limit)])


def _evicting(known: Snapshot, view: View, operation: Operation) -> Step:
    """Evict what uses the GPUs; where that does not free them in time and a drain is allowed, drain."""
    listed = _listed(known, view)
    if listed is None:
        return Step(reason=_unread(known, view), again=5)
    uses = uses_of(known, view)
    finish = operation.finish
    draining = operation.step == "drain"
    how: Any = finish.drain if draining else finish.podDeletion
    left = pods.to_drain(listed, uses, finish.drain) if draining else pods.to_evict(listed, uses)
    empty = known.seen.since(view.node.uid, "gpu-free", known.now, holds=not left)
    if not left:
        if empty >= EMPTY_FOR:
            return Step([acting.enter(known, view, operation, operation.acts[0])])
        return Step(reason="nothing uses the GPUs; looking once more", again=EMPTY_FOR.total_seconds())
    stuck = [text for pod in left if (text := pods.obstacle(pod, how))]
    if stuck or _past(known.now, operation):
        why = stuck[0] if stuck else _remains(known, left)
        if finish.drain.enable and not draining:
            limit = finish.drain.timeoutSeconds
            return Step([move(known, view, operation, f"drain: {why}", phase="Evicting", step="drain", seconds=limit)])
        return Step([abandon(known, view, operation, why, failed=True)], [_blocked(view, why)])
    evictions = [
        Evict(view.name, pod.metadata.namespace, pod.name, pod.uid, f"uses a GPU of {view.name}")
        for pod in left
        if not pod.terminating and known.backoff.get(pod.uid, known.now) <= known.now
    ]
    return Step([*evictions], reason=_remains(known, left), again=5)


def _remains(known: Snapshot, left: Sequence[Pod]) -> str:
    """Why pods are still there: the disruption budget that refuses, or that one does not end."""
    for pod in left:
        if refusal := known.refusals.get(pod.uid):
            return f"{pod.key}: {refusal}"
    terminating = [pod for pod in left if pod.terminating]
    text = f"{len(left)} pods still use its GPUs, the first is {(terminating or left)[0].key}"
    return f"{text}, which was told to end" if terminating else text


def _acting(known: Snapshot, view: View, operation: Operation) -> Step:
    """Do it, and see that it was done."""
    made = acting.act(known, view, operation)
    if made.failed:
        return Step([quarantine(known, view, operation, made.reason)], [_failed(view, operation, made.reason)])
    if made.patch:
        return Step([made.patch])
    if made.done:
        following = acting.following(operation)
        if following:
            return Step([acting.enter(known, view, operation, following)])
        limit = operation.finish.verifySeconds
        return Step([move(known, view, operation, "see that all is well", phase="Verifying", step="", seconds=limit)])
    if _past(known.now, operation) and not made.unanswered:
        why = f"{operation.step or operation.kind} did not end in time: {made.reason}"
        return Step([quarantine(known, view, operation, why)], [_failed(view, operation, why)])
    return Step([*made.deletions], reason=made.reason, again=made.again)


def _verifying(known: Snapshot, view: View, operation: Operation) -> Step:
    """Believe nothing but what can be seen: validator, resources, no component still paused."""
    found = verify.problems(known, view, operation)
    if not found:
        extra = acting.afterwards(known, view, operation)
        return Step([extra]) if extra else Step([close(known, view, operation)], [_done(view, operation)])
    if _past(known.now, operation):
        why = "; ".join(found)
        return Step([quarantine(known, view, operation, why)], [_failed(view, operation, why)])
    return Step([*verify.nudges(known, view, operation)], reason=found[0], again=15)


def _quarantine(known: Snapshot, view: View, operation: Operation) -> Step:
    """Stay cordoned and say so, until it works again, somebody asks for a retry, or the next attempt is due.

    The engine starts the next attempt: it needs a slot.
    """
    settled = acting.settled(known, view, operation)
    if settled and not verify.problems(known, view, operation):
        return Step([close(known, view, operation)], [_done(view, operation)])
    again = (
        "stays until somebody looks" if operation.notBefore is None else f"next attempt {operation.notBefore:%H:%MZ}"
    )
    nudges = verify.nudges(known, view, operation) if settled else []
    return Step([*nudges], reason=f"quarantined: {operation.reason}; {again}", again=60)


def _past(now: datetime, operation: Operation) -> bool:
    return operation.deadline is not None and now >= operation.deadline


def _blocked(view: View, why: str) -> Tell:
    return Tell(view.name, "OperationReleased", why, warning=True)


def _failed(view: View, operation: Operation, why: str) -> Tell:
    return Tell(view.name, "Quarantined", f"{operation.kind}: {why}", warning=True)


def _done(view: View, operation: Operation) -> Tell:
    return Tell(view.name, "OperationDone", f"{operation.kind}: {operation.target}")
