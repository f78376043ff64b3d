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

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ...api.node_policy import NodePolicy
from . import acting, evictions, pods, verify, windows
from .actions import Action, DeletePod, Evict, Tell
from .admission import stopped, untolerable
from .closing import abandon, close, quarantine
from .moves import Changes, move
from .record import Operation
from .snapshot import Snapshot
from .spans import span
from .view import View, leaving, uses_of

EMPTY_FOR = timedelta(seconds=5)
"""How long nothing may have used a GPU before the point of no return: a pod can be bound to a cordoned node (I7)."""
HELD_FOR = timedelta(hours=1)
"""How long a wait without a limit keeps its slot (A5)."""
LONGEST = timedelta(days=1)
"""How long Acting or Verifying may take under no policy, or without a deadline."""
GRACE = timedelta(minutes=5)
"""By which a record's deadline may be later than the policy has it now."""
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
        forward = _held if operation.phase == "Held" else _evicting
        return _give_up(known, view, operation) or _cordon(known, view, operation) or forward(known, view, operation)
    if patch := acting.labels_lost(known, view, operation):
        return Step([patch])
    if operation.phase == "Acting":
        return _acting(known, view, operation)
    if operation.phase == "Verifying":
        return _verifying(known, view, operation)
    return _quarantine(known, view, operation)


def _give_up(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Release what has not been touched and no longer should be: every gate that stands against going on is asked again
    until the point of no return. A window that has closed is not one of them once pods were evicted:
    nobody gets those back.
    """
    policy = view.policy
    if view.held:
        return Step([abandon(known, view, operation, view.held, failed=False)])
    if policy is None or policy.uid != operation.policy:
        return Step([abandon(known, view, operation, "the node no longer belongs to the policy", failed=False)])
    if why := stopped(known, policy) or leaving(view) or untolerable(view):
        return Step([abandon(known, view, operation, why, failed=False)])
    return None


def _cordon(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Put back a cordon that somebody took away: new pods may have come."""
    if not operation.cordon or view.node.spec.unschedulable:
        return None
    if operation.recordons >= RECORDONS:
        return Step([abandon(known, view, operation, "somebody keeps uncordoning the node", failed=True)])
    changes: Changes = {"recordons": operation.recordons + 1, "phase": "Held", "step": ""}
    return Step([move(known, view, operation, "cordoned again: somebody uncordoned it", **changes)])


def _unread(known: Snapshot, view: View) -> Step:
    """Its pods were to be listed, and were not."""
    why = known.unread.get(view.name)
    return Step(reason=f"its pods could not be read: {why}" if why else "its pods could not be read", again=5)


def _held(known: Snapshot, view: View, operation: Operation) -> Step:
    """Wait for the pods that the policy says to wait for."""
    listed = known.pods.get(view.name)
    if listed is None:
        return _unread(known, view)
    wait = operation.finish.wait
    left = pods.awaited(listed, wait.podSelector, uses_of(known, view))
    waited = max(known.now - operation.since, timedelta(0))
    if left and wait.timeoutSeconds == 0 and waited >= HELD_FOR:
        why = f"{left[0].key} still runs; the slot goes to another node"
        return Step([abandon(known, view, operation, why, failed=True)])
    if left and not _past(known.now, operation):
        return Step(reason=f"waits for {len(left)} pods to finish, the first is {left[0].key}", again=30)
    if operation.restartOnly:
        return Step([acting.enter(known, view, operation, operation.acts[0])])
    using = pods.to_evict(listed, uses_of(known, view))
    if view.policy and (why := _outside(known, view.policy) or evictions.too_long(known, view.policy, using)):
        return Step([abandon(known, view, operation, why, failed=False)])
    limit = operation.finish.podDeletion.timeoutSeconds
    return Step([move(known, view, operation, "evict what uses the GPUs", phase="Evicting", seconds=limit)])


def _outside(known: Snapshot, policy: NodePolicy) -> str:
    """Why nobody is evicted now: the window has closed while pods were waited for."""
    return "" if windows.is_open(policy.spec.upgrade.windows, known.now) else "the window closed before it was emptied"


def _evicting(known: Snapshot, view: View, operation: Operation) -> Step:
    """Evict what uses the GPUs; where that does not free them in time and a drain is allowed, drain."""
    listed = known.pods.get(view.name)
    if listed is None:
        return _unread(known, view)
    uses = uses_of(known, view)
    finish = operation.finish
    draining = operation.step == "drain"
    how: Any = finish.drain if draining else finish.podDeletion
    left = pods.to_drain(listed, uses, finish.drain) if draining else pods.to_evict(listed, uses)
    if not left:
        return _empty(known, view, operation)
    if operation.emptySince is not None:
        return Step([move(known, view, operation, "a pod uses its GPUs again", emptySince=None)])
    stuck = [text for pod in left if (text := pods.obstacle(pod, how, finish.podRules if uses.gpu(pod) else ()))]
    if stuck or evictions.over(known, operation, left):
        why = stuck[0] if stuck else evictions.leaves(known, left)
        if finish.drain.enable and not draining:
            limit = finish.drain.timeoutSeconds
            return Step([move(known, view, operation, f"drain: {why}", phase="Evicting", step="drain", seconds=limit)])
        named = evictions.in_the_way(known, left)
        told = Tell(view.name, "OperationReleased", why, warning=True)
        return Step([abandon(known, view, operation, why, failed=True, whose=named)], [told])
    asked = [
        evictions.removal(known, view, operation, pod, f"uses a GPU of {view.name}")
        for pod in evictions.now_due(known, left)
    ]
    return Step([*asked], reason=evictions.leaves(known, left), again=5)


def _empty(known: Snapshot, view: View, operation: Operation) -> Step:
    """Go on once nothing has used the GPUs for a while: since when is on the node, as leaders may change."""
    if operation.emptySince is None:
        return Step([move(known, view, operation, "nothing uses the GPUs", emptySince=known.now)])
    if not view.node.ready:
        if _past(known.now, operation):
            return Step([abandon(known, view, operation, "the node is not Ready", failed=True)])
        return Step(reason="nothing uses the GPUs, and the node is not Ready", again=30)
    if known.now - operation.emptySince >= EMPTY_FOR:
        return Step([acting.enter(known, view, operation, operation.acts[0])])
    return Step(reason="nothing uses the GPUs; looking once more", again=EMPTY_FOR.total_seconds())


def _acting(known: Snapshot, view: View, operation: Operation) -> Step:
    """Do it, and see that it was done. Until then the node is nobody's: its cordon is put back, and pods that were
    bound to it nevertheless are evicted, since they keep the old driver in use."""
    if operation.cordon and not view.node.spec.unschedulable:
        return Step([move(known, view, operation, "cordoned again: somebody uncordoned it")])
    made = acting.act(known, view, operation)
    if made.failed:
        return _failed(known, view, operation, made.reason)
    if made.patch:
        return Step([made.patch])
    if made.done:
        following = acting.following(operation)
        if following:
            return Step([acting.enter(known, view, operation, following)])
        limit = operation.finish.verifySeconds
        return Step([move(known, view, operation, "see that all is well", phase="Verifying", step="", seconds=limit)])
    if _over(known, view, operation) and not made.unanswered:
        why = f"{operation.step or operation.kind} did not end in time: {made.reason}"
        return _failed(known, view, operation, why)
    evicted, why = _intruders(known, view, operation)
    return Step([*made.deletions, *evicted], reason=why or made.reason, again=5 if why else made.again)


def _intruders(known: Snapshot, view: View, operation: Operation) -> tuple[list[Evict | DeletePod], str]:
    """Pods that use GPUs of a node that is worked on: how they go, and which one it is."""
    if operation.restartOnly or operation.install or (listed := known.pods.get(view.name)) is None:
        return [], ""
    how, rules = operation.finish.podDeletion, operation.finish.podRules
    using = pods.to_evict(listed, uses_of(known, view))
    asked = [
        evictions.removal(known, view, operation, pod, f"uses a GPU of {view.name}, which is worked on")
        for pod in using
        if not pods.obstacle(pod, how, rules)
        and not pod.terminating
        and known.backoff.get(pod.uid, known.now) <= known.now
    ]
    if not using:
        return asked, ""
    why = pods.obstacle(using[0], how, rules) or known.refusals.get(using[0].uid, "") or "it is evicted"
    return asked, f"{using[0].key} uses a GPU though the node is worked on: {why}"


def _verifying(known: Snapshot, view: View, operation: Operation) -> Step:
    """Believe nothing but what can be seen: validator, resources, no component still paused."""
    problems = verify.problems(known, view, operation)
    if not problems:
        extra = acting.afterwards(known, view, operation)
        return Step([extra]) if extra else _done(known, view, operation)
    if _over(known, view, operation):
        return _failed(known, view, operation, "; ".join(problems))
    return Step([*verify.nudges(known, view, operation)], reason=problems[0], again=15)


def _quarantine(known: Snapshot, view: View, operation: Operation) -> Step:
    """Stay cordoned and say so, until it works again, somebody asks for a retry, or the next attempt is due.

    The engine starts the next attempt: it needs a slot.
    """
    settled = acting.settled(known, view, operation)
    if settled and not verify.problems(known, view, operation):
        return _done(known, view, operation)
    until = operation.notBefore
    again = "stays until somebody looks" if until is None else f"next attempt {until:%H:%MZ}"
    nudges = verify.nudges(known, view, operation) if settled else []
    return Step([*nudges], reason=f"quarantined: {operation.reason}; {again}", again=60)


def _past(now: datetime, operation: Operation) -> bool:
    return operation.deadline is not None and now >= operation.deadline


def _over(known: Snapshot, view: View, operation: Operation) -> bool:
    """Whether the phase has taken too long: past its deadline, or for longer than the policy lets any phase take. A
    record is an annotation of the node: what it says of times is not believed beyond that, nor beyond what was seen."""
    policy = view.policy
    if policy is None or operation.deadline is None:
        limit = LONGEST
    else:
        times = policy.spec.deadlines
        limit = span(max(times.driver, times.verifying) + times.mig + times.migReboot)
    seen = known.seen.since(view.node.uid, f"{operation.phase} {operation.step}", known.now)
    return _past(known.now, operation) or max(seen, known.now - operation.since) > limit + GRACE


def _failed(known: Snapshot, view: View, operation: Operation, why: str) -> Step:
    told = Tell(view.name, "Quarantined", f"{operation.kind}: {why}", warning=True)
    return Step([quarantine(known, view, operation, why)], [told])


def _done(known: Snapshot, view: View, operation: Operation) -> Step:
    told = Tell(view.name, "OperationDone", f"{operation.kind}: {operation.target}")
    return Step([close(known, view, operation)], [told])
