"""Driver pods that do not start: an image that can't be pulled, a container that ends again and again; in their words.

Solves: a driver that was taken off a node before its successor's image is there leaves the node without any. Where one
node waits for the image, no other begins; where a registry gives no answer, that is nobody's failure, and the node
waits on. A new driver that ends again and again has failed, and nobody has to wait for a deadline to know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...api import keys
from ...api.pods import ContainerStatus, Pod
from .snapshot import Snapshot
from .view import outdated_by
from .words import brief

PULLS = ("ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "ImageInspectError")
UNANSWERED = re.compile(
    "timeout|timed out|connection refused|connection reset|no such host|no route to host|network is unreachable|"
    "server misbehaving|unexpected eof|service unavailable|bad gateway|gateway time|too many requests|toomanyrequests",
    re.IGNORECASE,
)
"""Words of a registry that gives no answer, and not those of one that has no such image or lets nobody have it."""
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


def unanswered(pods: Sequence[Pod]) -> bool:
    """Whether one of PODS waits for a registry that gives no answer."""
    waiting = (status.state.waiting for pod in pods for status in _statuses(pod))
    return any(each and each.reason in PULLS and UNANSWERED.search(each.message) for each in waiting)


def crashed(pod: Pod) -> str:
    """Which container of POD ends again and again, in its own words; "" for none."""
    for status in _statuses(pod):
        waiting, ended = status.state.waiting, status.lastState.terminated
        if waiting and waiting.reason == "CrashLoopBackOff" and status.restartCount >= CRASHES:
            code = f", exit code {ended.exitCode}" if ended else ""
            what = f"{pod.key}: {status.name} is in CrashLoopBackOff after {status.restartCount} restarts{code}"
            return what + _said(ended.message if ended else "")
    return ""


def image_trouble(known: Snapshot, revision: str) -> str:
    """Where a driver pod of REVISION waits for its image on a node that was emptied for it, and nobody has got it yet;
    "" for nowhere. Where another node has it, the image is there, and the trouble is that node's own."""
    if had_by_another(known, revision):
        return ""
    acting = {node.name for node in known.nodes if node.labels.get(keys.PHASE) == "Acting"}
    for name in sorted(acting & known.driver_pods.keys()):
        for pod in known.driver_pods[name]:
            stuck = not outdated_by(pod, revision) and not pod.terminating and not pod.ready
            if stuck and (text := pulls(pod)):
                return text
    return ""


def had_by_another(known: Snapshot, revision: str, node: str = "") -> bool:
    """Whether a driver pod of REVISION is ready on another node than NODE."""
    return any(
        pod.ready and revision and not outdated_by(pod, revision)
        for name, pods in known.driver_pods.items()
        if name != node
        for pod in pods
    )


def _statuses(pod: Pod) -> Iterator[ContainerStatus]:
    yield from (*pod.status.initContainerStatuses, *pod.status.containerStatuses)


def _said(text: str) -> str:
    words = " ".join(text.split())
    return f": {brief(words, MOST)}" if words else ""
