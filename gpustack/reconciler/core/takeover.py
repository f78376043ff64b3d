"""What others left on a node: the operator's own upgrade, and the platform's startup taints.

Where the operator was switched off amid an upgrade, this goes on where that was (reconciler.md A6, U8, U10). One write
owns the cordon, unless the operator had noted that it was the user's, maps the state to a phase and drops the
operator's keys. Nothing is written while an operator still runs.

Startup taints go when an install is done (reconciler.md A4). But a kubelet may register its node anew, with them, while
everything on the machine works: that node is no new one, and nobody else would ever take them away.
"""

from __future__ import annotations

from datetime import datetime

from ...api import keys
from ...api.node_policy import NodePolicy
from . import verify
from .actions import PatchNode
from .admission import operation_for
from .due import Due
from .moves import Changes, move, untainted
from .record import Phase, Target
from .snapshot import Snapshot
from .view import View, outdated

PHASES: dict[str, Phase] = {
    "cordon-required": "Held",
    "wait-for-jobs-required": "Held",
    "node-maintenance-required": "Held",
    "pod-deletion-required": "Evicting",
    "drain-required": "Evicting",
    "pod-restart-required": "Evicting",
    "post-maintenance-required": "Evicting",
    "validation-required": "Verifying",
    "uncordon-required": "Verifying",
    "upgrade-failed": "Quarantine",
}
"""The states in which the operator has a node in its hands. In all others it has done nothing to it yet. Its own pods
may be back on a node whose driver it was about to restart, so that one is looked at first."""
TOUCHED = {"pod-restart-required", "post-maintenance-required"}
"""States in which the driver may have been restarted: such a node must be seen to work before it is given back."""


def left_behind(view: View) -> bool:
    """Whether the operator's upgrade controller left something on the node."""
    return keys.UPGRADE_STATE in view.labels or any(key in view.annotations for key in keys.UPSTREAM_ANNOTATIONS)


def in_hand(view: View) -> bool:
    """Whether the operator has begun with the node, so that an operation of ours goes on with it."""
    return PHASES.get(view.labels.get(keys.UPGRADE_STATE, "")) not in {None, "Quarantine"}


def take_over(known: Snapshot, view: View, policy: NodePolicy) -> PatchNode:
    """The write that makes the operator's upgrade ours, or that drops what is left of it."""
    state = view.labels.get(keys.UPGRADE_STATE, "")
    drop: dict[str, str | None] = dict.fromkeys(key for key in keys.UPSTREAM_ANNOTATIONS if key in view.annotations)
    labels: dict[str, str | None] = {keys.UPGRADE_STATE: None} if state else {}
    phase = PHASES.get(state)
    if phase is None or not view.node.spec.unschedulable:  # somebody gave the node back, or it was not taken yet
        return PatchNode(*view.seen, "the operator's keys", labels, drop)
    target = Target(revision=view.driver.newest if view.driver else "")
    operation = operation_for(known, view, policy, Due(("driver",), target))
    operation.cordon = view.annotations.get(keys.INITIAL_UNSCHEDULABLE) != "true"
    finish = operation.finish
    held, evicting = finish.wait.timeoutSeconds, finish.podDeletion.timeoutSeconds
    seconds = {"Held": held, "Evicting": evicting, "Verifying": finish.verifySeconds, "Quarantine": 0}[phase]
    changes: Changes = {
        "phase": phase,
        "acted": _touched(known, view) if state in TOUCHED or phase in {"Verifying", "Quarantine"} else None,
        "notBefore": known.now if phase == "Quarantine" else None,
        "step": "driver" if phase == "Quarantine" else "",
    }
    why, admits = f"taken over from the operator in {state}", operation.id
    return move(known, view, operation, why, seconds=seconds, labels=labels, notes=drop, admits=admits, **changes)


def _touched(known: Snapshot, view: View) -> datetime:
    """Since when the node's driver is what it is: a validator that has started since has validated it, whoever started
    it. That was when the driver pod became ready, where it is the newest and is ready; else nobody can say."""
    pods = known.driver_pods.get(view.name, ())
    if len(pods) != 1 or not pods[0].ready or outdated(view, pods):
        return known.now
    since = [each.lastTransitionTime for each in pods[0].status.conditions if each.type == "Ready"]
    return min(since[0], known.now) if since and since[0] else known.now


def untaint(known: Snapshot, view: View, policy: NodePolicy) -> tuple[PatchNode | None, str]:
    """The write that takes the node's startup taints away once all works, or what it waits for, if it has any."""
    left = untainted(view, policy.spec.startupTaints)
    if left is None:
        return None, ""
    if lacking := verify.problems(known, view, operation_for(known, view, policy, Due(("install",), Target()))):
        return None, f"the platform's taint stays until its GPUs are proved: {lacking[0]}"
    return PatchNode(*view.seen, "its GPUs are proved: no startup taint any more", taints=left), ""
