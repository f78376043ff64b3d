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
from itertools import pairwise

import msgspec

from ...api import keys
from ...api.node_policy import Health
from ...api.pods import Pod
from . import acting, evictions, health, others, pods, verify, windows
from .actions import Action, DeletePod, Evict, PatchNode, Tell
from .admission import stopped, today
from .bounds import span
from .health import Faults
from .images import awaited, image_trouble
from .moves import Changes, abandon, close, commanded, move, quarantine
from .record import Operation
from .snapshot import Snapshot
from .view import View, kept_views, leaving, outdated, untolerable, uses_of, views_of

EMPTY_FOR = timedelta(seconds=5)
"""How long nothing may have used a GPU before the point of no return: a pod can be bound to a cordoned node (I7)."""
HELD_FOR = timedelta(hours=1)
"""How long a wait without a limit keeps its slot (A5)."""
LONGEST = timedelta(days=1)
"""How long Acting or Verifying may take under no policy."""
GRACE = timedelta(minutes=5)
"""By which a record's deadline may be later than the policy has it now."""
AGAIN = "cordoned again: somebody uncordoned it"
RECORDONS = 5
"""How often a cordon that somebody took away is put back before the operation gives up."""


@dataclass
class Step:
    """What to do on a node, and why it is where it is."""

    actions: list[Action] = field(default_factory=list)
    tells: list[Tell] = field(default_factory=list)
    reason: str = ""
    again: float = 300.0


def step(known: Snapshot, view: View, operation: Operation, unsure: str = "") -> Step:
    """The next step of OPERATION. UNSURE: why it may not be for what is due any more: the point of no return waits."""
    operation = _past_times(known, view, operation)
    if operation.heardAt and not commanded(view, operation):
        return Step([move(known, view, operation, operation.reason, heardAt=None)])
    if operation.returnable:
        return _returnable(known, view, operation, unsure)
    forward = {"Acting": _acting, "Verifying": _verifying}.get(operation.phase, _quarantine)
    made = forward(known, view, operation)
    if any(isinstance(action, PatchNode) for action in made.actions):
        return made
    # What others undo is done again beside all else, and never in its place: who undoes it each time stops nothing.
    if operation.cordon and not view.node.spec.unschedulable and operation.phase != "Quarantine":
        made.actions.insert(0, move(known, view, operation, AGAIN))
        made.reason = f"{AGAIN}; {made.reason}" if made.reason else AGAIN
    elif patch := acting.labels_lost(known, view, operation):
        made.actions.insert(0, patch)
        made.reason = f"labels were lost; {made.reason}" if made.reason else "labels were lost"
    return made


def _past_times(known: Snapshot, view: View, operation: Operation) -> Operation:
    """OPERATION without times that are to come: the clock was put back since, or its node wrote them."""
    seen = known.seen.since(view.node.uid, f"{operation.phase} {operation.step}", known.now)
    since = operation.since if operation.since <= known.now else known.now - seen
    until = operation.deadline and operation.deadline - (operation.since - since)
    times = {name: getattr(operation, name) for name in ("acted", "restarted", "heardAt", "emptySince")}
    past = {name: since for name, at in times.items() if at and at > (since if name == "acted" else known.now)}
    return msgspec.structs.replace(operation, since=since, deadline=until, **past)


def _returnable(known: Snapshot, view: View, operation: Operation, unsure: str) -> Step:
    """The next step before the point of no return."""
    if why := _stopped(known, view, operation):
        # Where nobody chose it, and pods were evicted for nothing twice within an hour, the next attempt waits.
        chosen = view.held or (view.policy and stopped(known, view.policy))
        lately = view.last.outcome == "released" and view.last.at and known.now - view.last.at < HELD_FOR
        failed = bool(operation.phase == "Evicting" and not chosen and lately)
        return _released(known, view, operation, why, failed=failed)
    if step := _cordon(known, view, operation):
        return step
    if operation.target.health and (step := _faultless(known, view, operation)):
        return step
    listed = known.pods.get(view.name)
    if listed is None:
        return _unread(known, view, operation)
    made = (_held if operation.phase == "Held" else _evicting)(known, view, operation, listed)
    patches = (action for action in made.actions if isinstance(action, PatchNode))
    if not (unsure and any(patch.labels.get(keys.PHASE) == "Acting" for patch in patches)):
        return made
    if _past(known, view, operation):
        return _released(known, view, operation, unsure, failed=True)
    return Step(reason=unsure, again=30)


def _stopped(known: Snapshot, view: View, operation: Operation) -> str:
    """Why what has not been touched no longer should be: every gate that stands against going on is asked again until
    the point of no return. A window that has closed is not one of them once pods were evicted, nor is somebody who
    begins to work on the node then: nobody gets those back."""
    policy = view.policy
    if view.held:
        return view.held
    if policy is None or policy.uid != operation.policy:
        return "the node no longer belongs to the policy"
    if why := stopped(known, policy) or leaving(view):
        return why
    if operation.target.health:
        return Faults(known, views_of(kept_views(known))).many
    if why := untolerable(view):
        return why
    if policy.status.breaker.open:
        return policy.status.breaker.message
    if operation.phase == "Held":
        acts = () if operation.acted else operation.acts
        images, _ = awaited(known, view, policy, acts, operation.target.revision)
        if waits := others.in_hand(known, view, new=False) or images:
            return waits[1]
    brings = {"driver", "repair"} & set(operation.acts) and not operation.restartOnly
    return image_trouble(known, operation.target.revision) if brings else ""


def _faultless(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Nobody is evicted from a node that tells of no fault any more: whether that lasts is looked at."""
    if health.look(known, view).state == "fault":
        return None
    why = health.unwell(known, view)
    if why and not _past(known, view, operation):
        return Step(reason=why, again=30)
    return _released(known, view, operation, why or "its fault has gone", failed=bool(why))


def _rests(known: Snapshot, view: View, operation: Operation) -> Step:
    """All is done that can be: the node stays cordoned until it is well, and has no slot any more."""
    why = health.unwell(known, view)
    told = Tell(view.name, "NodeFault", f"{why}; it stays cordoned until it is well again", warning=True)
    return Step([move(known, view, operation, why, phase="Quarantine", step="", notBefore=None)], [told])


def _released(
    known: Snapshot, view: View, operation: Operation, why: str, *, failed: bool, whose: Pod | None = None
) -> Step:
    """Give the node back, and say so on it: who was told that it is taken is told that it is not."""
    told = Tell(view.name, "OperationReleased", why, warning=failed)
    return Step([abandon(known, view, operation, why, failed=failed, whose=whose)], [told])


def _cordon(known: Snapshot, view: View, operation: Operation) -> Step | None:
    """Put back a cordon that somebody took away: new pods may have come."""
    if not operation.cordon or view.node.spec.unschedulable:
        return None
    if operation.recordons >= RECORDONS:
        return _released(known, view, operation, "somebody keeps uncordoning the node", failed=True)
    changes: Changes = {"recordons": operation.recordons + 1, "phase": "Held", "step": ""}
    return Step([move(known, view, operation, AGAIN, **changes)])


def _unread(known: Snapshot, view: View, operation: Operation) -> Step:
    """Its pods were to be listed, and were not."""
    said = known.unread.get(view.name)
    why = f"its pods could not be read: {said}" if said else "its pods could not be read"
    if said and _past(known, view, operation):
        return _released(known, view, operation, why, failed=True)
    return Step(reason=why, again=5)


def _held(known: Snapshot, view: View, operation: Operation, listed: Sequence[Pod]) -> Step:
    """Wait for the pods that the policy says to wait for. A fault waits for nobody."""
    if operation.target.health:
        return (_rests if operation.target.health == "cordon" else _evicts)(known, view, operation)
    left = pods.awaited(listed, operation.finish.wait.podSelector, uses_of(known, view))
    if left and not _past(known, view, operation):
        return Step(reason=f"waits for {len(left)} pods to finish, the first is {left[0].key}", again=30)
    if left and operation.finish.wait.timeoutSeconds == 0:
        why = f"{left[0].key} still runs; the slot goes to another node"
        return _released(known, view, operation, why, failed=True, whose=left[0])
    if operation.restartOnly:
        return Step([acting.enter(known, view, operation, operation.acts[0])])
    using = pods.to_evict(listed, uses_of(known, view))
    if policy := view.policy:
        closed = not windows.is_open(policy.spec.upgrade.windows, known.now)  # while pods were waited for
        if why := "the window closed before it was emptied" if closed else evictions.too_long(known, policy, using):
            return _released(known, view, operation, why, failed=False)
    return _evicts(known, view, operation)


def _evicts(known: Snapshot, view: View, operation: Operation) -> Step:
    """From now on what uses the node's GPUs is evicted."""
    seconds = operation.finish.podDeletion.timeoutSeconds
    return Step([move(known, view, operation, "evict what uses the GPUs", phase="Evicting", seconds=seconds)])


def _evicting(known: Snapshot, view: View, operation: Operation, listed: Sequence[Pod]) -> Step:
    """Evict what uses the GPUs; where that does not free them in time and a drain is allowed, drain."""
    uses = uses_of(known, view)
    finish = operation.finish
    draining = operation.step == "drain"
    how = finish.drain if draining else finish.podDeletion
    left = pods.to_drain(listed, uses, finish.drain) if draining else pods.to_evict(listed, uses)
    if not left or not pods.to_evict(listed, uses):  # a drain is for the GPUs, too
        return _empty(known, view, operation)
    stuck = [text for pod in left if (text := pods.obstacle(pod, how, finish.podRules if uses.gpu(pod) else ()))]
    if stuck or evictions.over(known, view, _until(known, view, operation), left):
        why = stuck[0] if stuck else evictions.leaves(known, left)
        if finish.drain.enable and not draining:
            limit = finish.drain.timeoutSeconds
            return Step([move(known, view, operation, f"drain: {why}", phase="Evicting", step="drain", seconds=limit)])
        return _released(known, view, operation, why, failed=True, whose=evictions.in_the_way(known, left))
    if operation.emptySince is not None:
        return Step([move(known, view, operation, "a pod uses its GPUs again", emptySince=None)])
    due, why = pods.longest_first(left), f"uses a GPU of {view.name}"
    asked = [evictions.removal(known, view, operation, pod, why) for pod in due if evictions.askable(known, pod)]
    return Step([*asked], reason=evictions.leaves(known, left), again=5)


def _empty(known: Snapshot, view: View, operation: Operation) -> Step:
    """Go on once nothing has used the GPUs for a while: since when is on the node, as leaders may change."""
    if operation.emptySince is None:
        return Step([move(known, view, operation, "nothing uses the GPUs", emptySince=known.now)])
    if not view.node.ready:
        if _past(known, view, operation):
            return _released(known, view, operation, "the node is not Ready", failed=True)
        return Step(reason="nothing uses the GPUs, and the node is not Ready", again=30)
    if known.now - operation.emptySince >= EMPTY_FOR:
        if operation.target.health and not operation.target.request:
            return _rests(known, view, operation)
        return Step([acting.enter(known, view, operation, operation.acts[0])])
    return Step(reason="nothing uses the GPUs; looking once more", again=EMPTY_FOR.total_seconds())


def _acting(known: Snapshot, view: View, operation: Operation) -> Step:
    """Do it, and see that it was done. Until then the node is nobody's: its cordon is put back, and pods that were
    bound to it nevertheless are evicted, since they keep the old driver in use."""
    made = acting.act(known, view, operation)
    if made.failed:
        return _failed(known, view, operation, made.reason)
    if made.done:
        if following := next((after for act, after in pairwise(operation.acts) if act == operation.step), None):
            return Step([acting.enter(known, view, operation, following)])
        limit = operation.finish.verifySeconds
        return Step([move(known, view, operation, "see that all is well", phase="Verifying", step="", seconds=limit)])
    begun = all(each.uid in known.refusals for each in made.deletions)
    if not begun and _late(known, operation):
        # What nobody has been asked for yet has not failed: the program was away, or left the node to an operator.
        act = next((each for each in operation.acts if each == operation.step), operation.acts[0])
        return Step([acting.enter(known, view, operation, act)])
    if _over(known, view, operation) and not made.unanswered and begun:
        said = made.reason or (made.patch.why if made.patch else "")
        why = f"{operation.step or operation.kind} did not end in time: {said}"
        return _failed(known, view, operation, why)
    if made.patch:
        return Step([made.patch])
    evicted, why = _intruders(known, view, operation)
    reason = f"{why or made.reason}; it counts once this has ended: {view.held}" if view.held else why or made.reason
    return Step([*made.deletions, *evicted], reason=reason, again=5 if why else made.again)


def _intruders(known: Snapshot, view: View, operation: Operation) -> tuple[list[Evict | DeletePod], str]:
    """Pods that use GPUs of a node that is worked on: how they go, and which one it is."""
    if operation.restartOnly or operation.install or (listed := known.pods.get(view.name)) is None:
        return [], ""
    how, rules = operation.finish.podDeletion, operation.finish.podRules
    using = pods.to_evict(listed, uses_of(known, view))
    free = [pod for pod in using if not pods.obstacle(pod, how, rules) and evictions.askable(known, pod)]
    why = f"uses a GPU of {view.name}, which is worked on"
    asked = [evictions.removal(known, view, operation, pod, why) for pod in free]
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
    overruled = operation.target.mig and not commanded(view, operation)
    if overruled or _over(known, view, operation):
        return _failed(known, view, operation, "; ".join(problems))
    evicted, why = _intruders(known, view, operation)
    return Step([*verify.nudges(known, view, operation), *evicted], reason=why or problems[0], again=15)


def _quarantine(known: Snapshot, view: View, operation: Operation) -> Step:
    """Stay cordoned and say so, until it works again, somebody asks for a retry, or the next attempt is due. The engine
    starts the next attempt: it needs a slot."""
    now = today(known, view, operation)
    driven = now.finish.daemonSet and not now.target.health
    old = outdated(view, known.driver_pods.get(view.name, ())) if driven else ()
    if not old and not verify.problems(known, view, now):
        return _done(known, view, now)
    until = operation.notBefore
    stays = "stays until it is well" if operation.target.health else "stays until somebody looks"
    again = stays if until is None else f"next attempt {until:%H:%MZ}"
    if not view.gpu:
        back = f"kubectl annotate node {view.name} {keys.OPERATION}-"
        again = f"node feature discovery sees no GPU there: bring it back; or, for a node that is to do without: {back}"
    nudges = verify.nudges(known, view, now) if acting.driven(known, view, now) else []
    return Step([*nudges], reason=f"quarantined: {operation.reason}; {again}", again=60)


def _until(known: Snapshot, view: View, operation: Operation) -> datetime:
    """By when a phase before the point of no return has to be over. What a record says of times is not believed beyond
    what was seen, and without a limit of the policy's it keeps its slot for an hour."""
    finish = operation.finish
    held, emptied = finish.wait.timeoutSeconds, finish.drain if operation.step == "drain" else finish.podDeletion
    seconds = (held if operation.phase == "Held" else emptied.timeoutSeconds) or int(HELD_FOR.total_seconds())
    seen = known.seen.since(view.node.uid, f"{operation.phase} {operation.step}", known.now)
    limits = [known.now - seen + span(seconds) + GRACE, operation.since + span(seconds)]
    if view.admitted:
        limits.append(view.admitted + span(held + finish.podDeletion.timeoutSeconds) + LONGEST)
    return min([*limits, *([operation.deadline] if operation.deadline else [])])


def _past(known: Snapshot, view: View, operation: Operation) -> bool:
    """Whether a phase before the point of no return has taken too long."""
    return known.now >= _until(known, view, operation)


def _late(known: Snapshot, operation: Operation) -> bool:
    """Whether the phase has taken longer than its record gives it, as far as anybody has watched."""
    until = operation.deadline
    return until is not None and known.passed(operation.since) >= until - operation.since


def _over(known: Snapshot, view: View, operation: Operation) -> bool:
    """Whether the phase has taken too long: past its deadline, or for longer than the policy lets any phase take. A
    record is an annotation of the node: what it says of times, or leaves out, is not believed beyond that, nor beyond
    what was seen."""
    policy = view.policy
    if policy is None:
        limit = LONGEST
    else:
        times = policy.spec.deadlines
        faults = policy.spec.health or Health(requestSeconds=0, settleSeconds=0)
        longest = max(times.driver, times.verifying + faults.settleSeconds, faults.requestSeconds)
        limit = span(longest + times.mig + times.migReboot)
    seen = known.seen.since(view.node.uid, f"{operation.phase} {operation.step}", known.now)
    return _late(known, operation) or known.passed(min(operation.since, known.now - seen)) > limit + GRACE


def _failed(known: Snapshot, view: View, operation: Operation, why: str) -> Step:
    more = operation.attempt < operation.finish.maxAttempts
    again = "it is tried again by itself" if more else "nobody tries it again"
    what = f"{operation.kind}: {why}; the node stays cordoned, and {again}; now: gpustack rollout retry {view.name}"
    return Step([quarantine(known, view, operation, why)], [Tell(view.name, "Quarantined", what, warning=True)])


def _done(known: Snapshot, view: View, operation: Operation) -> Step:
    told = Tell(view.name, "OperationDone", f"{operation.kind}: {operation.target}")
    return Step([close(known, view, operation)], [told])
