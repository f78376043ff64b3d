"""Whether a node works: what must be seen before an operation counts as done.

A label that says success proves nothing (reconciler.md I17, M3). Looked at are the validator, which must have started
after the node was touched, the resources that the kubelet offers, to the number, and that no component is still paused.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ...api import keys
from ...api.pods import Pod
from . import health
from .acting import DISABLED, driven
from .actions import Evict
from .images import stands
from .moves import commanded
from .record import Operation
from .snapshot import Snapshot
from .view import View

VALIDATOR = f"{keys.DEPLOY}operator-validator"
STALE_FOR = timedelta(minutes=5)
"""How long an old validator may stand before it is evicted: only the driver manager's full path restarts it (V5)."""
ANSWER_STANDS = timedelta(seconds=15)
"""How long a success must stand: a manager that was at work when it got the command first says what came of that, and
seconds later that it is at work on the other (M2)."""
OFFERING = ("device-plugin", "sandbox-device-plugin", "kata-sandbox-device-plugin")
"""Components by which a node offers GPUs."""
MIG_RESOURCES = "nvidia.com/mig-"


def problems(known: Snapshot, view: View, operation: Operation) -> list[str]:
    """What is missing, the most telling first; nothing where the node is as it should be."""
    return list(_problems(known, view, operation))


def _problems(known: Snapshot, view: View, operation: Operation) -> Iterator[str]:
    if not view.node.ready:
        yield "the node is not Ready"
    if operation.target.health and (fault := health.unwell(known, view)):
        yield fault
    if not driven(known, view, operation):
        yield "no driver pod is ready"
    if paused := view.paused():
        yield f"{', '.join(paused)} still paused"
    if operation.target.mig and not commanded(view, operation):
        yield f"somebody set mig.config={view.labels.get(keys.MIG_CONFIG, '')} meanwhile"
    elif operation.target.mig and view.labels.get(keys.MIG_STATE) != "success":
        yield f"mig.config.state is {view.labels.get(keys.MIG_STATE) or 'not set'}"
    yield from _resources(view, operation)
    if validates(view, operation):
        pods = [pod for pod in known.validators.get(view.name, ()) if not pod.terminating]
        if not any(pod.ready for pod in pods):
            yield "no validator is ready" + next((f": {why}" for pod in pods if (why := stands(pod))), "")
        elif not any(pod.ready and fresh(pod, operation) for pod in pods):
            refused = next((f"; {pod.key}: {known.refusals[pod.uid]}" for pod in pods if pod.uid in known.refusals), "")
            yield f"the validator has not run since{refused}"
    if operation.target.mig and known.passed(operation.since) < ANSWER_STANDS:
        yield "the MIG manager may have answered an earlier command: what it says must stand for a while"


def _resources(view: View, operation: Operation) -> Iterator[str]:
    wanted, layout = operation.finish.resources, operation.finish.layout
    if offers_nothing(view):
        return
    if view.labels.get(keys.MIG_CONFIG, layout) != layout:
        return  # cut by hand: the numbers are those of another layout
    if _cut_by_nobody(view, operation):
        return
    if layout != DISABLED and view.barred("mig-manager"):
        return  # nobody cuts it: which layout it has isn't known
    for name, count in sorted(wanted.items()):
        offered = view.allocatable(name)
        if offered != count if count else offered == 0:
            yield f"the node offers {offered} {name} and should offer {count or 'some'}"
    if wanted:
        for name, offered in view.offers.items():
            if name.startswith(MIG_RESOURCES) and name not in wanted:
                yield f"the node offers {offered} {name} and should offer none"


def _cut_by_nobody(view: View, operation: Operation) -> bool:
    """Whether the GPUs are cut though nothing says by whom, and nobody wants another layout: a node that registers anew
    loses its labels, and not what was done to its GPUs."""
    if operation.target.mig or keys.MIG_CONFIG in view.labels:
        return False
    wanted = any(name.startswith(MIG_RESOURCES) for name in operation.finish.resources)
    return not wanted and any(name.startswith(MIG_RESOURCES) for name in view.offers)


def validates(view: View, operation: Operation) -> bool:
    """Whether a validator is to run on the node and can come to an end: the policy has one, nobody opted out, and there
    are GPUs to ask for, as it does in the end (reconciler.md V1)."""
    return operation.finish.validator and view.labels.get(VALIDATOR) == "true" and not offers_nothing(view)


def offers_nothing(view: View) -> bool:
    """Whether somebody keeps away from the node what would make it offer GPUs."""
    offering = [name for name in OFFERING if view.policy and name in view.policy.spec.components]
    return bool(offering) and all(view.barred(name) for name in offering)


def fresh(pod: Pod, operation: Operation) -> bool:
    """Whether POD's validator started after the node was touched. A restart that installs nothing anew needs none."""
    if operation.restartOnly or operation.acted is None:
        return True
    made = pod.metadata.creationTimestamp
    if made is not None and made > operation.acted:
        return True  # by the API server's clock: that of the node may be wrong
    started = [each.state.running.startedAt for each in pod.status.containerStatuses if each.state.running]
    # Times of containers are whole seconds.
    return bool(started) and all(at is not None and at >= operation.acted.replace(microsecond=0) for at in started)


def nudges(known: Snapshot, view: View, operation: Operation) -> list[Evict]:
    """Make a validator run again that nobody has restarted."""
    pods = [pod for pod in known.validators.get(view.name, ()) if not pod.terminating]
    stale = [pod for pod in pods if pod.ready and not fresh(pod, operation)] if validates(view, operation) else []
    return [
        Evict(view.name, pod.metadata.namespace, pod.name, pod.uid, "to validate the node anew")
        for pod in stale
        if known.passed(operation.since) >= STALE_FOR and known.backoff.get(pod.uid, known.now) <= known.now
    ]
