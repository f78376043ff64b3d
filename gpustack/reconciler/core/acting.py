"""What is done to a node, act by act, and how each is seen to be done: driver, repair, MIG, mode, install.

An act begins with one write that says so (`enter`); labels that the act consists of go with it, so that no command was
ever given by nobody. What must be deleted is told by time: pods that are older than the act. So a repeated act, after a
crash, does not hit what replaced them (reconciler.md I11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ...api import keys
from ...api.pods import Pod
from . import health, labeller
from .actions import DeletePod, PatchNode
from .due import is_broken
from .images import crashed, had_by_another, pulls, stands, unanswered, unplaced
from .moves import Changes, commanded, move
from .record import Act, Operation
from .snapshot import Snapshot
from .view import View, digest, mig_capable, outdated, untolerable

MIG_RESTARTS = 2
"""How often the MIG manager's pod is restarted within one operation, to make it try again (reconciler.md M13, M14)."""
MIG_SILENT_FOR = timedelta(minutes=10)
"""How long the MIG manager may say nothing new before it counts as stuck."""
DEVICE_PLUGIN = f"{keys.DEPLOY}device-plugin"
DISABLED = "all-disabled"
"""The layout in which no GPU is cut (reconciler.md L30), with which a node offers what a policy without one names."""


@dataclass(frozen=True)
class Progress:
    """How far an act is: done, failed, or what is missing; `deletions` and `patch` bring it on."""

    done: bool = False
    failed: bool = False
    reason: str = ""
    deletions: Sequence[DeletePod] = ()
    patch: PatchNode | None = None
    again: float = 30.0
    unanswered: bool = False
    """Whether it waits for a registry that gives no answer: that is no failure, however long it takes."""


DONE = Progress(done=True)
NO_DAEMON_SET = "DaemonSet {} is not there, or not for the node's system and kernel"


def enter(known: Snapshot, view: View, operation: Operation, act: Act) -> PatchNode:
    """Write that ACT begins, with the labels that it consists of."""
    labels: dict[str, str | None] = {}
    notes: dict[str, str | None] = {}
    changes: Changes = {"phase": "Acting", "step": act}
    seconds = 0 if act == "mig" else operation.finish.driverSeconds
    if act == "mode":
        labels = _swap(view, operation)
    elif act == "health":
        seconds, changes["boot"] = operation.finish.requestSeconds, view.node.status.nodeInfo.bootID
        notes = {keys.REQUESTED: operation.target.request}
    elif act == "install":
        labels = _first_labels(view, operation)
        # The first driver must find it: it would evict by itself.
        notes = labeller.upgrade_annotation(view, view.policy) if view.policy else {}
    if act == "mig" or (act == "install" and operation.target.mig):
        command, changes["restarted"] = _command(known, view, operation)
        changes |= {"heard": "", "heardAt": known.now}
        labels |= command
        seconds += operation.finish.migSeconds
    if operation.acted is None or operation.returnable or operation.phase == "Quarantine":
        changes["acted"] = known.now
    why = f"{act}: {operation.target}"
    admits = "" if view.operation and view.operation.id == operation.id else operation.id
    return move(known, view, operation, why, seconds=seconds, labels=labels, notes=notes, admits=admits, **changes)


def act(known: Snapshot, view: View, operation: Operation) -> Progress:
    """How far the present act is, and what brings it on."""
    if operation.step == "mode":
        return DONE
    acts = {"mig": _mig, "health": _requested, "install": _install}
    return acts.get(operation.step, _driver)(known, view, operation)


def labels_lost(known: Snapshot, view: View, operation: Operation) -> PatchNode | None:
    """Put back deploy labels that somebody took away, or paused and forgot: without them the pods that are waited for
    never come. An install and a change of mode put back their own when they are tried again."""
    policy, own = view.policy, {"install", "mode"} & set(operation.acts)
    lost: dict[str, str | None] = dict.fromkeys(labeller.paused_and_forgotten(known, view), "true")
    if policy and policy.uid == operation.policy and view.gpu and not own:
        lost |= labeller.missing(view, policy)
    return PatchNode(*view.seen, "labels were lost", lost) if lost else None


def driven(known: Snapshot, view: View, operation: Operation) -> bool:
    """Whether a driver is there to stay, where the node is to have one. That its DaemonSet is away just now, was away
    when the operation began, or is no longer for this node, makes no node work without: a pod that went is no proof."""
    pods = known.driver_pods.get(view.name, ())
    wanted = operation.finish.daemonSet or view.driver or view.uncovered
    return not wanted or any(pod.ready and not pod.terminating for pod in pods)


def afterwards(known: Snapshot, view: View, operation: Operation) -> PatchNode | None:
    """The last part of an install where no MIG layout is wanted: tell the MIG manager what it begins with, as the
    operator does (L30). Where others label nodes, that is theirs too."""
    policy = view.policy
    if policy is None or not (operation.install and mig_capable(view)) or view.labels.get(keys.MIG_CONFIG):
        return None
    spec = policy.spec
    if spec.mig or not (spec.migManager and spec.labelling and spec.migDefault):
        return None
    labels, manager = {keys.MIG_CONFIG: spec.migDefault}, f"{keys.DEPLOY}mig-manager"
    if not view.labels.get(manager) and "mig-manager" in labeller.components(view, policy):
        labels[manager] = "true"
    why, seconds = f"mig: begins with {spec.migDefault}", operation.finish.migSeconds
    return move(known, view, operation, why, phase="Acting", step="install", seconds=seconds, labels=labels)


def _driver(known: Snapshot, view: View, operation: Operation) -> Progress:
    """Delete the outdated driver pod, and in a repair the broken one, and wait for a current one that is ready."""
    pods = known.driver_pods.get(view.name, ())
    if view.barred("driver"):
        return DONE  # somebody has opted it out meanwhile
    if view.driver is None and view.policy and view.policy.spec.driver is None:
        return DONE  # the nodes bring their driver by now
    if view.driver is None:
        return Progress(reason=NO_DAEMON_SET.format(operation.finish.daemonSet or "of the driver"))
    if not view.driver.newest:
        return Progress(reason=f"the DaemonSet controller has not seen {view.driver.object.name} yet")
    old = [pod for pod in outdated(view, pods) if not pod.terminating]
    if operation.step == "repair" or operation.attempt > 1:
        broken = [pod for pod in pods if is_broken(pod) and _older(pod, operation.since)]
        old += [pod for pod in broken if pod not in old and not pod.terminating]
    if operation.restartOnly and any(digest(pod) != digest(view.driver.object) for pod in old):
        why = "what is rendered now would be installed anew: it needs the GPUs free"
        seconds = operation.finish.wait.timeoutSeconds
        changes: Changes = {"phase": "Held", "step": "", "restartOnly": False, "acted": None}
        return Progress(patch=move(known, view, operation, why, seconds=seconds, **changes))
    deletions, refused = _deletions(known, view, old, "made from an older template, or broken")
    current = [pod for pod in pods if pod not in old and not pod.terminating]
    if not old and any(pod.ready for pod in current) and len(current) == len(pods):
        return DONE
    made = _starts(known, view, pods, current, ends=not old)
    return replace(made, deletions=deletions, reason=refused or made.reason)


def _starts(known: Snapshot, view: View, pods: Sequence[Pod], current: Sequence[Pod], *, ends: bool = True) -> Progress:
    """What is missing until CURRENT, of the driver PODS, are ready, and whether a registry gives no answer, to this
    node or any other. One that ends again and again has failed, where that counts."""
    if ends and (why := next((text for pod in current if (text := crashed(pod))), "")):
        return Progress(failed=True, reason=why)
    newest = view.driver.newest if view.driver else ""
    silent = any(unanswered(pod) and not had_by_another(known, newest, pod, view.admitted) for pod in current)
    return Progress(reason=_driver_reason(known, view, pods, current), unanswered=silent)


def _driver_reason(known: Snapshot, view: View, pods: Sequence[Pod], current: Sequence[Pod]) -> str:
    ending = [pod for pod in pods if pod.terminating]
    silent = "" if view.node.ready else ", and the node is not Ready"
    if ending:
        return f"waits for {ending[0].key} to end{silent}"
    if not current:
        left = unplaced(known, view.driver.newest) if view.driver else ""
        room = f": {left}; see whether the node has room for what the driver asks for" if left else ""
        return untolerable(view) or f"waits for the new driver pod{silent}{room}"
    if why := pulls(current[0]) or stands(current[0]):
        return why
    return f"waits for {current[0].key} to be ready{silent}"


def _deletions(known: Snapshot, view: View, old: Sequence[Pod], why: str) -> tuple[list[DeletePod], str]:
    """How the pods OLD go, those that the API server has refused to delete again after a while; and its words."""
    refused = next((f"{pod.key} can't be deleted: {text}" for pod in old if (text := known.refusals.get(pod.uid))), "")
    return [
        DeletePod(view.name, pod.metadata.namespace, pod.name, pod.uid, why, pod.metadata.resourceVersion)
        for pod in old
        if known.backoff.get(pod.uid, known.now) <= known.now
    ], refused


def _older(pod: Pod, moment: datetime | None) -> bool:
    made = pod.metadata.creationTimestamp
    return made is not None and moment is not None and made < moment


def _requested(known: Snapshot, view: View, operation: Operation) -> Progress:
    """Wait until what was asked for is done: the machine has booted, the annotation was taken away, or all is well."""
    booted = view.node.ready and view.node.status.nodeInfo.bootID != operation.boot
    if booted or keys.REQUESTED not in view.annotations or health.look(known, view).state == "well":
        return DONE
    what = operation.target.request
    return Progress(reason=f"waits for somebody to {what} it, who removes the annotation {keys.REQUESTED} then")


def _command(known: Snapshot, view: View, operation: Operation) -> tuple[dict[str, str | None], datetime | None]:
    """The labels that command a layout, and whether the manager must be restarted to notice. The state is removed with
    the command, so that a success that is seen later answers this command and no earlier one (reconciler.md M3, I17).
    The manager acts on a change of the label and at its start, never on changed content (M4)."""
    labels: dict[str, str | None] = {keys.MIG_STATE: None} if keys.MIG_STATE in view.labels else {}
    if view.labels.get(keys.MIG_CONFIG) == operation.target.mig:
        return labels, known.now
    return {**labels, keys.MIG_CONFIG: operation.target.mig}, operation.restarted


def _mig(known: Snapshot, view: View, operation: Operation) -> Progress:
    """Wait for a fresh success; restart a manager that failed or fell silent, a bounded number of times."""
    managers = known.mig_managers.get(view.name, ())
    stale = [pod for pod in managers if not pod.terminating and _older(pod, operation.restarted)]
    if stale:
        deletions, refused = _deletions(known, view, stale, "to make it try again")
        return Progress(deletions=deletions, reason=refused or "restarts the MIG manager")
    if operation.heardAt is None or not commanded(view, operation):
        return Progress(failed=True, reason=f"somebody set mig.config={view.labels.get(keys.MIG_CONFIG, '')} meanwhile")
    state = view.labels.get(keys.MIG_STATE, "")
    if state == "success":
        return DONE
    if state != operation.heard:
        why = f"the MIG manager says {state or 'nothing yet'}"
        return Progress(patch=move(known, view, operation, why, heard=state, heardAt=known.now))
    silent = known.now - operation.heardAt
    if state == "failed" or (state != "rebooting" and silent >= MIG_SILENT_FOR):
        why = f"the MIG manager says {state or 'nothing'}"
        if operation.restarts >= MIG_RESTARTS:
            return Progress(failed=True, reason=f"{why}, after {MIG_RESTARTS} restarts")
        labels: dict[str, str | None] = {keys.MIG_STATE: None} if state else {}
        changes: Changes = {"restarts": operation.restarts + 1, "restarted": known.now}
        changes |= {"heard": "", "heardAt": known.now}
        return Progress(patch=move(known, view, operation, f"{why}; it is restarted", labels=labels, **changes))
    if not managers:
        return Progress(reason="waits for a MIG manager on the node")
    return Progress(reason=f"the MIG manager says {state or 'nothing yet'}")


def _swap(view: View, operation: Operation) -> dict[str, str | None]:
    """The labels of another mode: values that are ours go and come, foreign ones stay."""
    wanted = {f"{keys.DEPLOY}{name}" for name in operation.target.deploy}
    removed: dict[str, str | None] = dict.fromkeys(key for key in view.deployed if key not in wanted)
    added = {key: "true" for key in sorted(wanted) if not view.labels.get(key)}
    return {**operation.target.labels, **removed, **added}


def _first_labels(view: View, operation: Operation) -> dict[str, str | None]:
    """The labels of a new node. With a MIG layout the device plugin waits, or pods would get whole GPUs (P42)."""
    ours = view.policy is None or view.policy.spec.labelling
    labels: dict[str, str | None] = {**({keys.PRESENT: "true"} if ours else {}), **operation.target.labels}
    for name in operation.target.deploy:
        key = f"{keys.DEPLOY}{name}"
        if not view.labels.get(key) and not (operation.target.mig and key == DEVICE_PLUGIN):
            labels[key] = "true"
    return {key: value for key, value in labels.items() if view.labels.get(key) != value}


def _install(known: Snapshot, view: View, operation: Operation) -> Progress:
    """Wait for the driver, then for the MIG layout, then let the device plugin start."""
    if operation.finish.daemonSet:
        pods = known.driver_pods.get(view.name, ())
        if view.driver is None:
            return Progress(reason=NO_DAEMON_SET.format(operation.finish.daemonSet))
        if not any(pod.ready and not pod.terminating for pod in pods):
            current = [pod for pod in pods if not pod.terminating and pod not in outdated(view, pods)]
            return _starts(known, view, pods, current)
    if operation.target.mig:
        made = _mig(known, view, operation)
        if not made.done:
            return made
        if "device-plugin" in operation.target.deploy and not view.labels.get(DEVICE_PLUGIN):
            patch = move(known, view, operation, "the layout is there: offer it", labels={DEVICE_PLUGIN: "true"})
            return Progress(patch=patch)
    return DONE
