"""What the API server refused to evict, and when to ask again.

Solves: a refused eviction is asked again and again by the operator, back to back (reconciler.md U20). Here each pod,
and each node whose evictions were tried for nothing, has a back-off of its own with jitter; candidates that are blocked
make room for others. In memory only: after a restart everything may be asked once more.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...api import keys
from ...api.pods import Pod
from ..core.bounds import span
from ..core.evictions import maker
from ..core.snapshot import Precheck
from .cluster import PODS, ApiError, Cluster, Conflict, TooMany, Unreachable

LONGEST_WAIT = 600.0
"""Seconds that the API server may ask to wait (Retry-After)."""
PASSING = 2
"""How often a change of a node is tried again at once that met somebody else's, or got no answer."""
UNTRIED = "does not support dry run"
"""What it says of a webhook that lets nobody try."""
DENIED = "denied the request"
"""What the API server says of a webhook or policy that refuses."""


@dataclass(frozen=True)
class Refused:
    """A refusal: what it said, how often it came, until when not to ask again."""

    text: str
    tries: int
    until: datetime
    budget: bool = False
    """Whether a PodDisruptionBudget refused."""
    precheck: Precheck = field(default_factory=Precheck)


@dataclass
class Refusals:
    """Refusals by UID: of pods, and of nodes whose evictions were tried."""

    least: float = 5.0
    most: float = 300.0
    chance: Callable[[], float] = random.random
    pods: dict[str, Refused] = field(default_factory=dict)
    nodes: dict[str, Refused] = field(default_factory=dict)
    writes: dict[str, Refused] = field(default_factory=dict)
    """Of changes of nodes that failed."""
    makers: dict[str, tuple[datetime, Refused]] = field(default_factory=dict)
    """When a pod of a maker's was last evicted that had come again, and until when the next one stays."""

    def refuse(self, pod: str, error: ApiError, now: datetime) -> Refused:
        """The pod with UID POD was not evicted, or not deleted."""
        seconds = error.retry_after if isinstance(error, TooMany) else 0.0
        tries, until = self._next(self.pods.get(pod), now, seconds)
        if unheard(error):
            until = now  # nobody has looked at it: that is no word on the pod
        self.pods[pod] = Refused(why(error), tries, until, by_budget(error))
        return self.pods[pod]

    def block(self, node: str, check: Precheck, now: datetime) -> Precheck:
        """Trying the evictions of the node with UID NODE came to CHECK."""
        tries, until = self._next(self.nodes.get(node), now, 0.0)
        self.nodes[node] = Refused("; ".join(check.blockers) or check.unknown, tries, until, precheck=check)
        return check

    def fail(self, node: str, error: ApiError, now: datetime) -> None:
        """A change of the node with UID NODE, or of the layouts' ConfigMap by its name, was not made.

        What somebody else wrote at the same moment, or a connection that broke, is tried again at once, twice: it says
        nothing about the node. Whatever else the API server answers is its word on it."""
        before = self.writes.get(node)
        tries, until = self._next(before, now, 0.0)
        if (isinstance(error, Conflict) or unheard(error)) and tries <= PASSING:
            until = now
        what = "it" if node == keys.LAYOUTS else "the node"
        self.writes[node] = Refused(f"the API server does not let {what} be changed: {why(error)}", tries, until)

    def written(self, node: str) -> None:
        """The node with UID NODE was changed."""
        self.writes.pop(node, None)

    def setbacks(self) -> Mapping[str, int]:
        """How often in a row changes of nodes, by UID, or trials of their evictions have failed."""
        return {uid: each.tries for of in (self.nodes, self.writes) for uid, each in of.items()}

    def refused(self, now: datetime) -> Mapping[str, str]:
        """Nodes, by UID, that are not to be changed now, and why."""
        return {uid: each.text for uid, each in self.writes.items() if self._waits(each, now)}

    def evicted(self, pod: Pod, now: datetime) -> None:
        """POD was evicted. The first time, the like of it that comes since may be evicted at once."""
        last = self.makers.get(maker(pod))
        if last and (pod.metadata.creationTimestamp or now) <= last[0]:
            return
        tries, until = self._next(last[1] if last else None, now, 0.0)
        self.makers[maker(pod)] = now, Refused("it comes again", tries, until if last else now)

    def came_again(self) -> Mapping[str, tuple[datetime, datetime]]:
        """As `Snapshot.came_again`."""
        return {key: (at, each.until) for key, (at, each) in self.makers.items()}

    def clear(self, uid: str) -> None:
        """It was not refused."""
        self.pods.pop(uid, None)
        self.nodes.pop(uid, None)

    def blocked(self, node: str, now: datetime) -> Precheck | None:
        """What the last trial on NODE found, while it is not to be repeated."""
        refused = self.nodes.get(node)
        return refused.precheck if refused and self._waits(refused, now) else None

    def forget(self, now: datetime) -> None:
        """Drop what has not been asked for in an hour."""
        for of in (self.pods, self.nodes, self.writes):
            for uid in [uid for uid, each in of.items() if now - each.until > timedelta(hours=1)]:
                del of[uid]
        self.makers = {key: each for key, each in self.makers.items() if now - each[1].until <= timedelta(hours=1)}

    def _waits(self, refused: Refused, now: datetime) -> bool:
        """Whether not to ask again yet; a time further off than any was noted by a clock that has been put back."""
        return now < refused.until <= now + span(max(self.most, LONGEST_WAIT))

    def _next(self, before: Refused | None, now: datetime, at_least: float) -> tuple[int, datetime]:
        tries = before.tries + 1 if before else 1
        seconds = min(self.least * 2.0 ** min(tries - 1, 20), self.most) * (0.5 + 0.5 * self.chance())
        return tries, now + span(max(seconds, at_least))


def unheard(error: ApiError) -> bool:
    """Whether nobody has looked at the request: there was no answer, or the API server has no time. A webhook that
    refuses answers 429, too, as KubeVirt's does for its virtual machines: it denies the request, and says why."""
    busy = isinstance(error, TooMany) and not error.causes and DENIED not in str(error)
    return busy or isinstance(error, Unreachable)


def by_budget(error: ApiError) -> bool:
    """Whether it is a PodDisruptionBudget that refuses an eviction: it is named as the cause."""
    return isinstance(error, TooMany) and bool(error.causes)


def why(error: ApiError) -> str:
    """A refusal in words; the causes are what names the disruption budget."""
    return "; ".join(error.causes) or str(error)


async def evict(cluster: Cluster, pod: Pod, *, dry_run: bool = False) -> None:
    """Ask for POD to be evicted, and for no other of its name. Raises `ApiError`."""
    where = pod.metadata.namespace
    preconditions = {"preconditions": {"uid": pod.uid}}
    body = {"metadata": {"name": pod.name, "namespace": where}, "deleteOptions": preconditions}
    await cluster.create(PODS, body, namespace=where, of=pod.name, subresource="eviction", dry_run=dry_run)
