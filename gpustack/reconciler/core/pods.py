"""Which pods use a node's GPUs, and which of them may be evicted.

Solves: the operator looks at requests of regular containers only, so init containers, renamed resources and pods that
get GPUs by their RuntimeClass pin the driver and the upgrade fails half-way (reconciler.md U18, P16). Here the match is
wide, and what can't be evicted is known before a node is cordoned (R2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...api import keys
from ...api.node_policy import Drain, PodDeletion, PodRule, WaitForCompletion
from ...api.pods import Pod
from . import selectors
from .bounds import span
from .record import Finish

CLIENT = f"{keys.DEPLOY}client"
"""A nodeSelector by which the driver manager and the MIG manager take a DaemonSet's pods off a node themselves.
Believed of DaemonSets in namespaces that the policy names: a tenant's pod with that selector stays where it is."""
OURS = ("nvidia-cuda-validator", "nvidia-device-plugin-validator")
"""Pods that the validator starts (label `app`): it removes them itself."""
DEFAULT_GRACE = timedelta(seconds=30)
TOGETHER = timedelta(seconds=60)
"""Pods whose times to end differ by no more are evicted together."""
LATE = timedelta(minutes=5)
"""How much longer than its own time a pod is waited for that was told to end."""


@dataclass(frozen=True)
class Uses:
    """What makes a pod one that uses GPUs: where the operands are, names of resources and RuntimeClasses, held
    claims; `clients` are the namespaces whose DaemonSets are taken off a node by others."""

    namespace: str
    resources: Collection[str] = ()
    runtime_classes: Collection[str] = ()
    claims: Collection[str] = ()
    clients: Collection[str] = ()
    rules: Sequence[PodRule] = ()

    def gpu(self, pod: Pod) -> bool:
        """Whether POD uses a GPU of its node, or still may. Operands do not count: they are what is changed."""
        if pod.finished or self.operand(pod) or self._client(pod) or rule_of(pod, self.rules) == "leave":
            return False
        claimed = (f"{pod.metadata.namespace}/{name}" for name in pod.claims)
        return (
            self._asks(pod)
            or pod.spec.runtimeClassName in self.runtime_classes
            or any(claim in self.claims for claim in claimed)
        )

    def awaits(self, pod: Pod) -> bool:
        """Whether POD uses a GPU, and a rule says to wait until it has ended."""
        return rule_of(pod, self.rules) == "wait" and self.gpu(pod)

    def operand(self, pod: Pod) -> bool:
        """Whether POD belongs to the stack itself."""
        return pod.metadata.namespace == self.namespace and (daemon(pod) or pod.labels.get("app") in OURS)

    def _client(self, pod: Pod) -> bool:
        """Whether others take POD off the node before they touch its GPUs."""
        selected = pod.spec.nodeSelector.get(CLIENT) == "true"
        return selected and daemon(pod) and pod.metadata.namespace in self.clients

    def _asks(self, pod: Pod) -> bool:
        wants = (container.resources for container in (*pod.spec.containers, *pod.spec.initContainers))
        names = (name for each in wants for name in (*each.limits, *each.requests))
        return any(name.startswith(keys.NVIDIA) or name in self.resources for name in names)


def daemon(pod: Pod) -> bool:
    """Whether a DaemonSet made POD: it would come back at once, on a cordoned node too."""
    return bool(pod.metadata.controller and pod.metadata.controller.kind == "DaemonSet")


def rule_of(pod: Pod, rules: Iterable[PodRule]) -> str:
    """What the first of RULES that POD matches says; "" for none."""
    own = (rule for rule in rules if rule.namespace in ("", pod.metadata.namespace))
    return next((rule.then for rule in own if selectors.matches(rule.podSelector, pod.labels)), "")


def obstacle(pod: Pod, how: PodDeletion, rules: Iterable[PodRule] = ()) -> str:
    """Why POD can't be removed under the options HOW and RULES; "" where it can."""
    return next(_obstacles(pod, how, rules), "")


def _obstacles(pod: Pod, how: PodDeletion, rules: Iterable[PodRule]) -> Iterator[str]:
    """All that keeps POD from being removed: one thing is enough for an operation, and who clears it away wants all."""
    if pod.mirror:
        yield f"{pod.key} is a static pod: remove it on the node"
        return
    if daemon(pod):
        asks = f'give it the nodeSelector {CLIENT}: "true", and ' if CLIENT not in pod.spec.nodeSelector else ""
        yield (
            f"{pod.key} belongs to a DaemonSet that uses GPUs: {asks}name its namespace in "
            "spec.reconciler.clientNamespaces of the cluster's policy"
        )
        return
    if rule_of(pod, rules) == "delete":
        return
    field = f"spec.driver.upgradePolicy.{'drain' if isinstance(how, Drain) else 'podDeletion'}"
    if pod.metadata.controller is None and not how.force:
        yield f"{pod.key} has no controller and would not come back: delete it, or set {field}.force"
    if any(volume.emptyDir is not None for volume in pod.spec.volumes) and not how.deleteEmptyDir:
        yield f"{pod.key} has data in an emptyDir: delete it, or set {field}.deleteEmptyDir"


def to_evict(pods: Iterable[Pod], uses: Uses) -> list[Pod]:
    """The pods that use GPUs."""
    return [pod for pod in pods if uses.gpu(pod)]


def to_drain(pods: Iterable[Pod], uses: Uses, drain: Drain) -> list[Pod]:
    """The pods that a drain removes: those that use GPUs, and whatever else its selector names. Never pods of
    DaemonSets, static pods, pods with the skip label or of kube-system (reconciler.md U23, U24, I9)."""
    return [
        pod for pod in pods if uses.gpu(pod) or (not _spared(pod) and selectors.matches(drain.podSelector, pod.labels))
    ]


def _spared(pod: Pod) -> bool:
    skipped = pod.metadata.namespace == "kube-system" or pod.labels.get(keys.DRAIN_SKIP) == "true"
    return skipped or pod.finished or daemon(pod) or pod.mirror


def obstacles(pods: Sequence[Pod], uses: Uses, finish: Finish) -> list[str]:
    """All that stands against freeing the GPUs that PODS use, by eviction or, where that is allowed, by the drain."""
    texts = [text for pod in to_evict(pods, uses) for text in _obstacles(pod, finish.podDeletion, uses.rules)]
    if texts and finish.drain.enable:
        left = ((pod, uses.rules if uses.gpu(pod) else ()) for pod in to_drain(pods, uses, finish.drain))
        return [text for pod, rules in left for text in _obstacles(pod, finish.drain, rules)]
    return texts


def grace(pod: Pod) -> timedelta:
    """How long POD may take to end once it is told to."""
    seconds = pod.spec.terminationGracePeriodSeconds
    return DEFAULT_GRACE if seconds is None else span(seconds)


def longest_first(pods: Sequence[Pod]) -> list[Pod]:
    """Those of PODS that are to be evicted now: who takes longest to end goes first and alone, so that nobody else is
    evicted before it is known that all can go."""
    longest = max((grace(pod) for pod in pods), default=DEFAULT_GRACE)
    return [pod for pod in pods if longest - grace(pod) <= TOGETHER]


def in_turn(pods: Sequence[Pod]) -> timedelta:
    """How long all of PODS may take to end, one batch after the other."""
    left, taken = list(pods), timedelta(0)
    while left:
        batch = longest_first(left)
        taken += max(map(grace, batch))
        left = [pod for pod in left if pod not in batch]
    return taken


def ending(pods: Iterable[Pod], now: datetime) -> str:
    """Which of PODS was told to end and has not, and what that means; "" where there is none."""
    for pod in pods:
        if (until := pod.metadata.deletionTimestamp) is not None:  # by then it has to have ended
            late = f"since {until:%Y-%m-%dT%H:%MZ} it should have: see why on the node" if now > until + LATE else ""
            return f"{pod.key} was told to end and still runs; {late or f'it may take until {until:%Y-%m-%dT%H:%MZ}'}"
    return ""


def awaited(pods: Iterable[Pod], selector: str, uses: Uses | None = None) -> list[Pod]:
    """The pods that SELECTOR says to wait for, or a rule for pods that use a GPU."""
    return [
        pod
        for pod in pods
        if not pod.finished and ((selector and selectors.matches(selector, pod.labels)) or (uses and uses.awaits(pod)))
    ]


def evictable(pods: Iterable[Pod], wait: WaitForCompletion, uses: Uses) -> list[Pod]:
    """PODS without those that nobody ever evicts: they are waited for, and no time is set after which they go."""
    listed = list(pods)
    never = [] if wait.timeoutSeconds else awaited(listed, wait.podSelector, uses)
    return [pod for pod in listed if pod not in never]
