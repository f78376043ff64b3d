"""What the API server refused to evict, and when to ask again.

Solves: a refused eviction is asked again and again by the operator, back to back (reconciler.md U20). Here each pod,
and each node whose evictions were tried for nothing, has a back-off of its own with jitter; candidates that are blocked
make room for others. In memory only: after a restart everything may be asked once more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .clock import span
from .cluster import PODS, ApiError, Cluster, TooMany
from .objects import Pod
from .snapshot import Precheck


@dataclass(frozen=True)
class Refused:
    """A refusal: what it said, how often it came, until when not to ask again."""

    text: str
    tries: int
    until: datetime
    precheck: Precheck = field(default_factory=Precheck)


@dataclass
class Refusals:
    """Refusals by UID: of pods, and of nodes whose evictions were tried."""

    least: float = 5.0
    most: float = 300.0
    chance: Callable[[], float] = random.random
    pods: dict[str, Refused] = field(default_factory=dict)
    nodes: dict[str, Refused] = field(default_factory=dict)

    def refuse(self, pod: str, error: ApiError, now: datetime) -> Refused:
        """The pod with UID POD was not evicted."""
        seconds = error.retry_after if isinstance(error, TooMany) else 0.0
        self.pods[pod] = Refused(why(error), *self._next(self.pods.get(pod), now, seconds))
        return self.pods[pod]

    def block(self, node: str, blockers: tuple[str, ...], now: datetime) -> Precheck:
        """Trying the evictions of the node with UID NODE found BLOCKERS."""
        tries, until = self._next(self.nodes.get(node), now, 0.0)
        self.nodes[node] = Refused("; ".join(blockers), tries, until, Precheck(blockers))
        return self.nodes[node].precheck

    def clear(self, uid: str) -> None:
        """It was not refused."""
        self.pods.pop(uid, None)
        self.nodes.pop(uid, None)

    def backoff(self) -> Mapping[str, datetime]:
        """Until when not to ask for a pod again."""
        return {uid: each.until for uid, each in self.pods.items()}

    def texts(self) -> Mapping[str, str]:
        """Why a pod was refused."""
        return {uid: each.text for uid, each in self.pods.items()}

    def blocked(self, node: str, now: datetime) -> Precheck | None:
        """What the last trial on NODE found, while it is not to be repeated."""
        found = self.nodes.get(node)
        return found.precheck if found and found.until > now else None

    def forget(self, now: datetime) -> None:
        """Drop what has not been asked for in an hour."""
        for of in (self.pods, self.nodes):
            for uid in [uid for uid, each in of.items() if now - each.until > timedelta(hours=1)]:
                del of[uid]

    def _next(self, before: Refused | None, now: datetime, at_least: float) -> tuple[int, datetime]:
        tries = before.tries + 1 if before else 1
        seconds = min(self.least * 2.0 ** min(tries - 1, 20), self.most) * (0.5 + 0.5 * self.chance())
        return tries, now + span(max(seconds, at_least))


def why(error: ApiError) -> str:
    """A refusal in words; the causes are what names the disruption budget."""
    return "; ".join(error.causes) or str(error)


async def evict(cluster: Cluster, pod: Pod, *, dry_run: bool = False) -> None:
    """Ask for POD to be evicted, and for no other of its name. Raises `ApiError`."""
    where = pod.metadata.namespace
    preconditions = {"preconditions": {"uid": pod.uid}}
    body = {"metadata": {"name": pod.name, "namespace": where}, "deleteOptions": preconditions}
    await cluster.create(PODS, body, namespace=where, of=pod.name, subresource="eviction", dry_run=dry_run)
