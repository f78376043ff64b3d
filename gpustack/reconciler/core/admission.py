"""Whether and how an operation begins: the gates that a node must pass, and the one write that takes it.

Every node that waits has a reason, in words, and none is kept: what was true a minute ago is asked again (reconciler.md
A9, P7).

An open operation is for what is due as long as it has touched nothing, and so is the next attempt of one that has
failed: a policy changes while a node waits or is in quarantine, and an attempt for the old target would be held against
what the policy says today.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

import msgspec

from ...api import keys
from ...api.node_policy import Health, NodePolicy, WaitForCompletion
from . import acting, evictions, health, labeller, others, verify, windows
from .actions import PatchNode, Why
from .due import Due, due, manual_until
from .layouts import unread
from .moves import cut, move, release, remembered
from .record import Finish, Operation, Target
from .snapshot import Snapshot
from .view import View, leaving, uncovered, untolerable

LEFT_ALONE = {"skip", "auto-upgrade-off"}
"""Why a driver stays that isn't the newest."""


@dataclass(frozen=True)
class Candidate:
    """A node on which something is due."""

    view: View
    policy: NodePolicy
    due: Due

    @property
    def again(self) -> Operation | None:
        """The failed operation that this would be the next attempt of, or one that nobody knows of any more."""
        return self.view.operation or self.view.unledgered


def gate(known: Snapshot, candidate: Candidate, breaker: str) -> Why | None:
    """Why the operation may not begin now, whatever the budget: kind and text."""
    view, policy, what = candidate.view, candidate.policy, candidate.due
    if why := stopped(known, policy):
        return "paused", why
    if view.held:
        return "hold", view.held
    if breaker:
        return "breaker", breaker
    if away := leaving(view):
        return "leaving", away
    if busy := others.in_hand(known, view, new=what.install):
        return busy
    if not view.node.ready:
        return "not-ready", "the node is not Ready"
    if view.uncovered and (what.install or {"driver", "repair"} & set(what.acts)):
        return "not-covered", uncovered(policy)
    if not (what.install or what.health):
        if not windows.is_open(policy.spec.upgrade.windows, known.now):
            following = windows.next_start(policy.spec.upgrade.windows, known.now)
            opens = f"no window is open; the next opens {following:%Y-%m-%dT%H:%MZ}" if following else ""
            return "window", opens or "no window ever opens"
        if why := untolerable(view):
            return "taint", why
    if not what.install and view.node.spec.unschedulable and not view.owns_cordon:
        cordoned = "somebody else cordoned the node, or took our annotations off it"
        return "cordoned", f"{cordoned}: kubectl uncordon {view.name} once it may be used"
    return _backoff(known, candidate)


def stopped(known: Snapshot, policy: NodePolicy) -> str:
    """Why nothing goes on that has not passed the point of no return: somebody has paused it."""
    if known.paused:
        return f"the fleet is paused: {known.paused}"
    if keys.PAUSED in policy.annotations:
        return f"the pool is paused: {policy.annotations[keys.PAUSED] or 'no reason given'}"
    return ""


def _backoff(known: Snapshot, candidate: Candidate) -> Why | None:
    view = candidate.view
    if keys.RETRY in view.annotations or candidate.again is not None:
        return None  # the engine has looked at a quarantined node's time already
    last = view.last
    if last.notBefore and last.target == str(candidate.due.target) and known.now < last.notBefore:
        return "backoff", f"{last.reason}; next attempt {last.notBefore:%Y-%m-%dT%H:%MZ}"
    return None


def operation_for(known: Snapshot, view: View, policy: NodePolicy, what: Due) -> Operation:
    """The record of a new operation, with all that finishing it needs."""
    spec = policy.spec
    text = f"{view.node.uid} {known.now.isoformat()} {what.target}"
    section = (what.health and spec.health) or Health(settleSeconds=0)
    finish = Finish(
        daemonSet=view.driver.object.name if spec.driver and view.driver else "",
        resources=dict(spec.gpu.resources),
        layout=spec.mig.config if spec.mig else spec.migDefault or acting.DISABLED,
        runtimeClasses=list(spec.gpu.runtimeClasses),
        startupTaints=[str(taint) for taint in spec.startupTaints],
        podDeletion=spec.upgrade.podDeletion,
        drain=spec.upgrade.drain,
        wait=WaitForCompletion() if what.health else spec.upgrade.waitForCompletion,
        podRules=spec.upgrade.podRules or [],
        ignoreBudgets=evictions.ignored(known, view, policy),
        driverSeconds=spec.deadlines.driver,
        migSeconds=spec.deadlines.mig + (spec.deadlines.migReboot if spec.migReboot else 0),
        verifySeconds=spec.deadlines.verifying + section.settleSeconds,
        requestSeconds=section.requestSeconds,
        maxAttempts=spec.upgrade.maxAttempts,
        validator="operator-validator" in spec.components,
    )
    return Operation(
        id=hashlib.sha256(text.encode()).hexdigest()[:12],
        acts=list(what.acts),
        phase="Held",
        target=what.target,
        policy=policy.uid,
        since=known.now,
        started=known.now,
        attempt=_attempt(view, what),
        restartOnly=what.restart_only,
        finish=finish,
    )


def _attempt(view: View, what: Due) -> int:
    """Which attempt at this target it is; a new target, or somebody who asks, begins anew."""
    if keys.RETRY in view.annotations:
        return 1
    if view.operation is not None:
        return view.operation.attempt + 1 if view.operation.target == what.target else 1
    return view.last.attempt + 1 if view.last.target == str(what.target) and view.last.outcome == "released" else 1


def admit(known: Snapshot, candidate: Candidate) -> PatchNode:
    """The write that takes the node: cordon, record and marks at once; a new node gets its labels instead."""
    view, policy = candidate.view, candidate.policy
    operation = operation_for(known, view, policy, candidate.due)
    before = candidate.again
    if candidate.due.install:
        patch = acting.enter(known, view, operation, "install")
    else:
        operation.cordon = True
        operation.acted = before.acted if before else None
        if before and before.target == operation.target:
            operation.failures, operation.heardAt = before.failures, before.heardAt
        operation.annotated = [
            key for key in keys.AUTOSCALERS if key not in view.annotations or (before and key in before.annotated)
        ]
        limit = operation.finish.wait.timeoutSeconds
        patch = move(known, view, operation, "taken out of service", phase="Held", seconds=limit, admits=operation.id)
    if keys.RETRY in view.annotations:
        return dataclasses.replace(patch, annotations={**patch.annotations, keys.RETRY: None})
    return patch


def retarget(known: Snapshot, candidate: Candidate, operation: Operation) -> PatchNode:
    """Put a new target into an operation that has not touched the node yet."""
    what = candidate.due
    made = operation_for(known, candidate.view, candidate.policy, what)
    kept = made.finish.ignoreBudgets or operation.finish.ignoreBudgets
    changed = msgspec.structs.replace(
        operation,
        acts=made.acts,
        target=made.target,
        restartOnly=made.restartOnly,
        finish=msgspec.structs.replace(made.finish, ignoreBudgets=kept),
        failures=operation.failures if made.target == operation.target else 0,
        heardAt=operation.heardAt if made.target == operation.target else None,
    )
    return move(known, candidate.view, changed, f"new target: {what.target}")


def still_due(
    known: Snapshot, view: View, policy: NodePolicy, operation: Operation
) -> PatchNode | Candidate | str | None:
    """See to it that the operation still is for what is due: the write that is all that happens on the node then, the
    next attempt of one that has failed, or why it isn't known yet, so that nothing is done that can't be undone."""
    if not (operation.returnable or operation.phase == "Quarantine"):
        return None
    what, notes = due(known, view, policy)
    if why := next((text for kind, text in notes if kind in {"revision", "mig-busy"}), ""):
        return why if operation.returnable else None
    if what and operation.returnable and (why := unread(known, view, what.target.mig)):
        return why  # nor could it be commanded yet
    if operation.phase == "Quarantine":
        if what is None and (text := next((text for kind, text in notes if kind in LEFT_ALONE), "")):
            # Somebody wants the driver that there is: where that works, all is well.
            wrong = verify.problems(known, view, today(known, view, operation))
            return None if wrong else _let_go(known, view, policy, operation, text)
        return _retry(known, view, policy, operation, what)
    if what is None and operation.acted is None:
        return release(known, view, operation, "nothing is to be done any more", failed=False)
    if what is not None and (what.target != operation.target or list(what.acts) != operation.acts):
        return retarget(known, Candidate(view, policy, what), operation)
    return None


def _retry(
    known: Snapshot, view: View, policy: NodePolicy, operation: Operation, what: Due | None
) -> PatchNode | Candidate | None:
    """Make a quarantined node a candidate again: it has another target, somebody asks, or its time has come. A record
    that is for nothing any more goes instead."""
    asked = keys.RETRY in view.annotations
    other = what is not None and what.target != operation.target
    timely = operation.notBefore is not None and known.now >= operation.notBefore
    timely = timely and (not operation.target.health or health.look(known, view).state == "fault")
    if not (asked or other or timely):
        return None
    if what is None and operation.install:
        if labeller.users(known, view) is None:
            return None
        return _let_go(known, view, policy, operation, "the node is in use, so it is not new")
    return Candidate(view, policy, what or _once_more(known, view, policy, operation))


def _let_go(known: Snapshot, view: View, policy: NodePolicy, operation: Operation, why: str) -> PatchNode:
    """Give a node of POLICY back from quarantine, and remember what OPERATION has cut."""
    made, done = release(known, view, operation, why, failed=False), cut(view)
    kept = remembered(view, policy.uid, policy.name, *done) if done else {}
    return dataclasses.replace(made, annotations={**made.annotations, **kept})


def anew(known: Snapshot, view: View) -> Candidate | None:
    """A node that doesn't work, and of whose operation nobody knows any more, as one on which something is due. Of what
    its record says that it was for nothing is believed."""
    policy = view.policy
    what = due(known, view, policy)[0] if policy else None
    if what is None and view.driver:
        what = Due(("repair",), Target(revision=view.driver.newest))
    return Candidate(view, policy, what) if policy and what and not what.install else None


def _once_more(known: Snapshot, view: View, policy: NodePolicy, operation: Operation) -> Due:
    """OPERATION once more, on a node that doesn't work though nothing is due: with the layout and the components that
    POLICY has for it now, and without a layout where somebody set one by hand for a while."""
    acts, target, mig = operation.acts, operation.target, policy.spec.mig
    until = manual_until(view)
    if target.deploy and policy.spec.labelling:
        target = msgspec.structs.replace(target, deploy=labeller.components(view, policy))
    if target.mig and len(acts) > 1 and until and known.now < until:
        return Due(tuple(act for act in acts if act != "mig"), msgspec.structs.replace(target, mig="", mig_digest=""))
    if target.mig and mig is not None:
        target = msgspec.structs.replace(target, mig=mig.config, mig_digest=mig.digest)
    elif target.mig and "install" not in acts:  # nobody wants it any more
        target = msgspec.structs.replace(target, mig="", mig_digest="")
        acts = [act for act in acts if act != "mig"] or ["repair"]
    return Due(tuple(acts), target)


def today(known: Snapshot, view: View, operation: Operation) -> Operation:
    """OPERATION, which has failed, as its policy judges it now: what mends the policy mends the node."""
    policy = view.policy
    if policy is None or policy.uid != operation.policy:
        return operation
    target = operation.target
    if target.mig and policy.spec.mig is None:
        target = msgspec.structs.replace(target, mig="", mig_digest="")
    finish, before = operation_for(known, view, policy, Due(tuple(operation.acts), target)).finish, operation.finish
    if target.mig not in {"", finish.layout}:  # what a node offers with another layout says nothing of this one
        finish = msgspec.structs.replace(finish, layout=before.layout, resources=before.resources)
    return msgspec.structs.replace(operation, target=target, finish=finish)
