"""Driver pods that do not start: an image that can't be pulled, a container that ends again and again; in their words.

Solves: a driver that was taken off a node before its successor's image is there leaves the node without any. Where one
node waits for the image, no other begins, for an hour: its trouble may be its own. Where a registry gives no answer,
that is nobody's failure, and the node waits on. A new driver that ends again and again has failed, and nobody has to
wait for a deadline to know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.pods import ContainerStatus, Pod
from .actions import Tell, Why
from .bounds import brief, span
from .record import Act
from .snapshot import Snapshot
from .view import View, ledgered, operations, outdated_by

PULLS = ("ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "ImageInspectError")
UNANSWERED = re.compile(
    "timeout|timed out|connection refused|connection reset|no such host|no route to host|network is unreachable|"
    "server misbehaving|unexpected eof|service unavailable|bad gateway|gateway time|too many requests|toomanyrequests",
    re.IGNORECASE,
)
"""Words of a registry that gives no answer, and not those of one that has no such image or lets nobody have it."""
WORDLESS = re.compile(r'\s*(Back-off pulling image "[^"]*")?\s*')
"""What a kubelet before Kubernetes 1.32 says between two tries: not what the registry said."""
PATIENCE = timedelta(hours=1)
"""How long the others wait for an image that one node can't get."""
LATELY = timedelta(minutes=20)
"""The same, where another node has it already: the registry may be down since, or the trouble be the node's own."""
CRASHES = 3
"""So many ends of a container of the new driver are enough."""
MOST = 300
"""Bytes of what a container said last."""


def pulls(pod: Pod) -> str:
    """Which image of POD can't be pulled, and why; "" where none is waited for."""
    for status in _statuses(pod):
        waiting = status.state.waiting
        if waiting and waiting.reason in PULLS:
            return f"{pod.key}: {status.name} is in {waiting.reason}" + _said(waiting.message)
    return ""


def unanswered(pod: Pod) -> bool:
    """Whether POD waits for a registry that gives no answer."""
    waiting = (status.state.waiting for status in _statuses(pod))
    return any(
        each and each.reason in PULLS and (UNANSWERED.search(each.message) or WORDLESS.fullmatch(each.message))
        for each in waiting
    )


def crashed(pod: Pod) -> str:
    """Which container of POD ends again and again, in its own words; "" for none."""
    for status in _statuses(pod):
        waiting, ended = status.state.waiting, status.lastState.terminated
        if waiting and waiting.reason == "CrashLoopBackOff" and status.restartCount >= CRASHES:
            code = f", exit code {ended.exitCode}" if ended else ""
            what = f"{pod.key}: {status.name} is in CrashLoopBackOff after {status.restartCount} restarts{code}"
            return what + _said(ended.message if ended else "")
    return ""


def awaited(
    known: Snapshot, view: View, policy: NodePolicy, acts: Sequence[Act], revision: str
) -> tuple[Why | None, list[Tell]]:
    """Why a node waits for the images of its next driver, of REVISION, if that is among ACTS; and what is told of it
    once that takes long. How long counts from when they are wanted, whatever else the node waits for: they come outside
    of windows too."""
    prepull = policy.spec.upgrade.prepull
    if prepull is None or "driver" not in acts:
        return None, []
    text = _unpulled(known, view, policy)
    waited = known.seen.since(view.node.uid, f"pulling {revision}", known.now, holds=bool(text))
    if not text:
        return None, []
    said = f"the images of its next driver are not there: {text}"
    if waited < span(prepull.timeoutSeconds):
        return ("pulling", said), []
    then = "it keeps its driver until they are" if prepull.then == "wait" else "it has its turn without them"
    said = f"{said}; for {prepull.timeoutSeconds // 60} minutes and more: {then}"
    told = [Tell(view.name, "ImagesMissing", said, warning=True)]
    return (("pulling", said) if prepull.then == "wait" else None), told


def _unpulled(known: Snapshot, view: View, policy: NodePolicy) -> str:
    """Why the images of the node's next driver are not on it yet; "" where they are, or nobody pulls them."""
    sets = policy.spec.driver.daemonSets if policy.spec.driver and view.driver else ()
    images = next((each.images for each in sets if view.driver and each.name == view.driver.object.name), None)
    there = known.pullers.get(view.name, ())
    pods = [pod for pod in there if pod.labels.get(keys.IMAGES) == images and not pod.terminating]
    if not images or any(pod.ready for pod in pods):
        return ""
    waits = f"{pods[0].key} is not ready" if pods else "no pod that pulls them runs on the node"
    return next(filter(None, (pulls(pod) or stands(pod) for pod in pods)), waits)


def stands(pod: Pod) -> str:
    """Why POD isn't ready, in the kubelet's words; "" where it says nothing."""
    if pod.status.phase == "Failed":
        return f"{pod.key} has failed" + _said(f"{pod.status.reason}: {pod.status.message}".strip(": "))
    for status in _statuses(pod):
        if status.state.waiting and status.state.waiting.reason not in {"", "PodInitializing", "ContainerCreating"}:
            return f"{pod.key}: {status.name} is in {status.state.waiting.reason}"
    return ""


def unplaced(known: Snapshot, revision: str) -> str:
    """Why the scheduler puts a driver pod of REVISION on no node, in its words; "" where it has a node for each."""
    waiting = (pod for pod in known.driver_pods.get("", ()) if not (pod.terminating or outdated_by(pod, revision)))
    said = ((pod, each) for pod in waiting for each in pod.status.conditions if each.type == "PodScheduled")
    return next((f"{pod.key} is on no node" + _said(each.message) for pod, each in said if each.status == "False"), "")


def image_trouble(known: Snapshot, revision: str) -> str:
    """Where a driver pod of REVISION waits for its image on a node that was emptied for it, and nobody has got it
    since; "" for nowhere. Where another node has, the image is there, and the trouble is that node's own."""
    if revision not in known.image_troubles:
        text = _waiting(known, revision)
        known.image_troubles[revision] = f"the driver's image can't be pulled elsewhere: {text}" if text else ""
    return known.image_troubles[revision]


def _waiting(known: Snapshot, revision: str) -> str:
    """Which pod it is, and what it waits for."""
    there = any(pod.ready and not outdated_by(pod, revision) for of in known.driver_pods.values() for pod in of)
    patience = LATELY if there else PATIENCE
    waiting = (
        (pod, since)
        for name, since in sorted(_emptied(known).items())
        for pod in known.driver_pods.get(name, ())
        if not (outdated_by(pod, revision) or pod.terminating or pod.ready) and known.passed(since) < patience
        if not there or unanswered(pod)  # a registry that answers, and has given it to another, does so on purpose
    )
    alone = ((pulls(pod), pod, at) for pod, at in waiting)
    return next((text for text, pod, at in alone if text and not had_by_another(known, revision, pod, at)), "")


def _emptied(known: Snapshot) -> dict[str, datetime]:
    """Nodes that an operation of ours has emptied, and when it was admitted: a pod's age says nothing of that."""
    made, records = {}, operations(known)
    for node in known.nodes:
        operation, _ = ledgered(known, node, records.get(node.uid))
        if operation and operation.phase in {"Acting", "Quarantine"} and not operation.install:
            entry = (known.ledger or {}).get(node.uid)
            made[node.name] = entry.since if entry else operation.started
    return made


def had_by_another(known: Snapshot, revision: str, stuck: Pod, since: datetime | None) -> bool:
    """Whether REVISION's driver began to run elsewhere since the pod STUCK was made, or SINCE: its image was there."""
    made = min(filter(None, (stuck.metadata.creationTimestamp, since)), default=None)
    started = _started(known, revision) if revision else ()
    return any(uid != stuck.uid and (made is None or at >= made) for uid, at in started)


def _started(known: Snapshot, revision: str) -> list[tuple[str, datetime]]:
    """The driver pods of REVISION that run, by UID, and when a container of theirs started."""
    if revision not in known.started:
        known.started[revision] = [
            (pod.uid, status.state.running.startedAt)
            for pods in known.driver_pods.values()
            for pod in pods
            if not outdated_by(pod, revision)
            for status in _statuses(pod)
            if status.state.running and status.state.running.startedAt
        ]
    return known.started[revision]


def _statuses(pod: Pod) -> Iterator[ContainerStatus]:
    yield from (*pod.status.initContainerStatuses, *pod.status.containerStatuses)


def _said(text: str) -> str:
    words = " ".join(text.split())
    return f": {brief(words, MOST)}" if words else ""
