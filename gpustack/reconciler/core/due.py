"""What is to be done on a node: which operation its present state calls for, if any.

Same target, same content: no operation (reconciler.md I18). A driver and a MIG layout that are due together are one
operation under one cordon. Reasons for not doing what would be due are told, never kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.pods import Pod
from . import health, labeller
from .actions import Why
from .record import Act, Target
from .snapshot import Snapshot
from .view import View, digest, mig_capable, outdated

FAILING_FOR = timedelta(minutes=10)
"""How long a driver pod must have failed outside of any operation before it is repaired."""
MIG_PENDING_FOR = timedelta(minutes=45)
"""How long the MIG manager may be at work by itself, after a reboot for example."""
REMNANTS_FOR = timedelta(minutes=15)
"""How long pods that are older than their node are waited for, before they count as users of it after all."""
RESTARTED = 2
"""From so many restarts on a container that is not ready counts as failing."""
BROKEN = ("CrashLoopBackOff", "RunContainerError", "CreateContainerError", "Error")


@dataclass(frozen=True)
class Due:
    """An operation that a node needs."""

    acts: tuple[Act, ...]
    target: Target
    restart_only: bool = False

    @property
    def install(self) -> bool:
        """Whether it sets up a new node."""
        return "install" in self.acts

    @property
    def health(self) -> bool:
        """Whether it is for a fault of the node: what a roll-out waits for doesn't hold it up."""
        return "health" in self.acts


def due(known: Snapshot, view: View, policy: NodePolicy) -> tuple[Due | None, list[Why]]:
    """The operation that the node needs, and what is left alone and why."""
    notes: list[Why] = []
    if label := labeller.unlabelled(view, policy):
        return None, [("unlabelled", f"nobody has set {label} on it: its labels are not the reconciler's to set")]
    if new_node(known, view):
        return _install(view, policy), notes
    if fault := health.due(known, view, policy):
        return Due(("health",), fault), notes
    if note := _not_synced(view, policy):
        return None, [note]
    swapped = swaps(known, view, policy)
    acts: list[Act] = ["mode"] if swapped else []
    restart_only = False
    pods = known.driver_pods.get(view.name, ())
    old = outdated(view, pods)
    if old and (note := _left_alone(view, policy)):
        notes.append(note)
    elif old:
        acts.append("driver")
        restart_only = not swapped and all(_same_install(view, policy, pod) for pod in old)
    elif failing(known, view, pods) and not view.barred("driver"):
        acts.append("repair")
    wanted = _mig(known, view, policy, notes, driver=bool({"driver", "repair"} & set(acts)))
    if wanted:
        acts.append("mig")
        restart_only = False
    if not acts:
        return None, notes
    target = Target(
        revision=view.driver.newest if view.driver and {"driver", "repair"} & set(acts) else "",
        mig=wanted[0] if wanted else "",
        mig_digest=wanted[1] if wanted else "",
        labels=swapped,
        deploy=labeller.components(view, policy) if swapped else [],
    )
    return Due(tuple(acts), target, restart_only), notes


def new_node(known: Snapshot, view: View) -> bool:
    """Whether nothing of ours was ever proved on this machine and nothing can be using its GPUs: it offers none."""
    if view.known_machine or not view.gpu or view.offers or (view.operation and not view.operation.install):
        return False
    if view.operation is None and in_service(known, view):
        return False
    using = labeller.users(known, view)
    return using is not None and not using


def in_service(known: Snapshot, view: View) -> bool:
    """Whether the stack works on the node though it offers no GPU: nodes with DRA publish theirs elsewhere, those of
    virtual machines hand them on, and a pod that uses one may be away just now (moving.md M8). Pods of an earlier node
    of its name tell nothing, nor do those that an installation of ours has left behind."""
    made = view.node.metadata.creationTimestamp
    if made is None or "install" in view.last.kind:
        return False
    validators = (*known.validators.get(view.name, ()), *known.sandbox_validators.get(view.name, ()))
    theirs = view.policy is not None and view.policy.spec.labelling  # who else would have labelled it by now?
    working = [pod for pod in known.driver_pods.get(view.name, ()) if pod.ready]
    working += [pod for pod in validators if pod.ready or theirs]
    return any(since >= made for pod in working if (since := pod.metadata.creationTimestamp))


def unclear(known: Snapshot, view: View) -> str:
    """Why it can't be told yet whether a node that may be new is; "" where it can. Pods that are older than the Node
    object were left by an earlier node of its name. They can't run on a machine whose GPUs nobody offers yet, and end
    by and by; were the node adopted meanwhile, a MIG pool's would offer whole GPUs (P42)."""
    using = labeller.users(known, view)
    if using is None:
        return "its pods are read to see whether it is new"
    made = view.node.metadata.creationTimestamp
    left = [pod for pod in using if made and (since := pod.metadata.creationTimestamp) and since < made]
    remains = bool(left) and len(left) == len(using)
    waited = known.seen.since(view.node.uid, "remnants", known.now, holds=remains)
    if remains and waited < REMNANTS_FOR:
        return f"{left[0].key} is older than the node: if an earlier node of its name left it, it will go"
    return ""


def may_be_new(view: View) -> bool:
    """Whether the node's pods tell if it is new."""
    return view.operation is None and view.gpu and not view.known_machine and not view.offers


def _install(view: View, policy: NodePolicy) -> Due:
    mig = None if view.barred("mig-manager") else policy.spec.mig
    return Due(
        ("install",),
        Target(
            revision=view.driver.newest if view.driver else "",
            mig=mig.config if mig else "",
            mig_digest=mig.digest if mig else "",
            labels=dict(policy.spec.labels) if policy.spec.labelling else {},
            deploy=labeller.components(view, policy),
        ),
    )


def swaps(known: Snapshot, view: View, policy: NodePolicy) -> dict[str, str]:
    """The labels whose change disturbs what runs on the node."""
    labels = policy.spec.labels if policy.spec.labelling else {}
    wanted = {key: labels[key] for key in labeller.SWAPPED if labels.get(key)}
    return {
        key: value
        for key, value in wanted.items()
        if value != view.labels.get(key) and labeller.disturbs(known, view, key)
    }


def _left_alone(view: View, policy: NodePolicy) -> Why | None:
    """Why an outdated driver stays."""
    if not policy.spec.upgrade.auto:
        return "auto-upgrade-off", "a newer driver is rendered; driver.upgradePolicy.autoUpgrade is false"
    if view.labels.get(keys.UPGRADE_SKIP) == "true":
        return "skip", f"the node has the label {keys.UPGRADE_SKIP}=true"
    return None


def _not_synced(view: View, policy: NodePolicy) -> Why | None:
    """The policy and the DaemonSet arrive in any order, and only a pair that was rendered together counts (A8). Nothing
    at all is due meanwhile: a MIG layout that came with a driver is to be one operation with it."""
    if not (view.driver and policy.spec.driver):
        return None
    driver = view.driver.object
    if not view.driver.newest:
        return "revision", f"the DaemonSet controller has not seen {driver.name} yet"
    expected = next((each.revision for each in policy.spec.driver.daemonSets if each.name == driver.name), "")
    rendered = driver.annotations.get(keys.REVISION, "")
    if expected == rendered:
        return None
    made = f"DaemonSet {driver.name} is at revision {rendered or 'none'} and NodePolicy {policy.name} was made for"
    return "revision", f"{made} {expected or 'none'}: a sync is under way, or one of the two is not synced"


def _same_install(view: View, policy: NodePolicy, pod: Pod) -> bool:
    """Whether the new pod would install what POD has installed, so that nobody who uses the GPU notices (U34)."""
    if not (view.driver and policy.spec.driver and policy.spec.driver.digestRestart):
        return False
    return digest(pod) != "" and digest(pod) == digest(view.driver.object)


def failing(known: Snapshot, view: View, pods: Sequence[Pod]) -> bool:
    """Whether a current driver pod has failed for long outside of any operation (reconciler.md P10, T12)."""
    broken = any(is_broken(pod) for pod in pods)
    return known.seen.since(view.node.uid, "driver-failing", known.now, holds=broken) >= FAILING_FOR and broken


def is_broken(pod: Pod) -> bool:
    """Whether a container of POD fails again and again. Between two failures it runs, the driver manager for long."""
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    waits = any(each.state.waiting and each.state.waiting.reason in BROKEN for each in statuses)
    return not pod.ready and (waits or any(each.restartCount >= RESTARTED for each in statuses))


def _mig(known: Snapshot, view: View, policy: NodePolicy, notes: list[Why], *, driver: bool) -> tuple[str, str] | None:
    """The MIG configuration to command and the digest of its content; None where none is due or nobody would act. A MIG
    manager that the driver manager paused comes back with the new DRIVER pod, or when the pause is healed."""
    wanted = _layout(known, view, policy, notes)
    if wanted and view.barred("mig-manager"):
        notes.append(("opt-out", f"MIG layout {wanted[0]} is due, and the MIG manager is kept off the node"))
        return None
    if wanted and not driver and "mig-manager" in view.paused():
        notes.append(("mig-busy", f"MIG layout {wanted[0]} is due, and the MIG manager is paused"))
        return None
    return wanted


def _layout(known: Snapshot, view: View, policy: NodePolicy, notes: list[Why]) -> tuple[str, str] | None:
    """The MIG configuration that the node has not yet, and the digest of its content."""
    mig = policy.spec.mig
    if not (mig or policy.spec.migManager) or mig_capable(view) is False:
        return None
    state, current = view.labels.get(keys.MIG_STATE, ""), view.labels.get(keys.MIG_CONFIG, "")
    at_work, operation = state in {"pending", "rebooting"}, view.operation
    if known.seen.since(view.node.uid, "mig-busy", known.now, holds=at_work) < MIG_PENDING_FOR and at_work:
        notes.append(("mig-busy", f"the MIG manager is at work (state {state})"))
        return None
    if mig is None:
        # What somebody set by hand is nobody's concern, but for a manager that fell asleep over it (M13). What a node
        # begins with is cut again while the node is out of service anyway.
        first = state == "failed" and current == policy.spec.migDefault and operation is not None
        return (current, "") if current and (at_work or first) else None
    if current != mig.config and (until := manual_until(view)) and known.now < until:
        notes.append(("manual", f"mig.config={current} was set by hand until {until:%Y-%m-%dT%H:%MZ}"))
        return None
    changed = bool(mig.digest) and view.memory.mig == mig.config and view.memory.mig_digest != mig.digest
    stuck = at_work or state == "failed"
    touched = operation is not None and operation.acted is not None
    # Commanded, and no answer was ever seen: an operation that failed has removed the state.
    untold = not state and (touched or view.memory.mig != mig.config)
    # Where others have named it beside an operation that is for it, the state may be of the layout before (M3).
    untold = untold or (operation is not None and operation.target.mig == mig.config and operation.heardAt is None)
    return (mig.config, mig.digest) if current != mig.config or changed or stuck or untold else None


def manual_until(view: View) -> datetime | None:
    """Until when a MIG configuration that was set by hand stays; None where nobody said so, or not readably."""
    try:
        until = datetime.fromisoformat(view.annotations.get(keys.MANUAL_MIG, ""))
    except ValueError:
        return None
    return until if until.tzinfo else None


def differences(view: View, policy: NodePolicy) -> Iterator[str]:
    """What a node that is done should be and is not, for reports: the product of its GPUs."""
    expected, actual = policy.spec.gpu.product, view.labels.get(keys.PRODUCT, "")
    if expected and actual and expected != actual and not actual.startswith(f"{expected}-"):
        yield f"its GPUs are {actual}, and the pool expects {expected}"
