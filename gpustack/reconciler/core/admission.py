"""Whether and how an operation begins: the gates that a node must pass, and the one write that takes it.

Every node that waits has a reason, in words, and none is kept: what was true a minute ago is asked again (reconciler.md
A9, P7).
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

import msgspec

from ...api import keys
from ...api.node_policy import Health, NodePolicy, WaitForCompletion
from . import acting, evictions, others, windows
from .actions import PatchNode, Why
from .due import Due
from .moves import move
from .record import Finish, Operation
from .snapshot import Snapshot
from .view import View, leaving, uncovered, untolerable


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
        operation.failures = before.failures if before and before.target == operation.target else 0
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
    )
    return move(known, candidate.view, changed, f"new target: {what.target}")
