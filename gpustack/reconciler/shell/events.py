"""Events on nodes, for `kubectl describe node`: each thing once, and never a flood.

Solves: a rollout over 1,000 nodes, or a node that fails in a loop, must not fill etcd (reconciler.md T22). The same
text on the same node is told once in `again` seconds, and all together are bounded by a bucket that refills. What is
dropped is counted, and is in the log anyway. They are sent beside the passes: an API server that has no time for Events
holds up nothing else.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

from ...api import keys
from ..core.actions import Tell
from ..core.bounds import brief
from .clock import Clock
from .cluster import EVENTS, ApiError, Cluster
from .log import Log
from .metrics import Metrics

NAMESPACE = "default"
"""Where Events on objects without a namespace are."""

_NOTE = 1024
"""The longest note that the API takes, in bytes."""


@dataclass
class Events:
    """Sends what is told, within bounds."""

    cluster: Cluster
    identity: str
    clock: Clock
    log: Log
    metrics: Metrics
    uid: Callable[[str], str] = lambda _: ""
    """The UID of a node."""
    again: float = 600.0
    burst: int = 50
    refill: float = 2.0
    """Events a second, in the long run."""
    most: int = 200
    """Events that wait to be sent."""
    _queue: deque[dict[str, object]] = field(default_factory=deque)
    _waiting: asyncio.Event = field(default_factory=asyncio.Event)
    _told: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    _left: float = inf
    """Of `burst`, how many may be sent at the moment `_at`."""
    _at: float = 0.0

    def tell(self, tells: Iterable[Tell]) -> None:
        """Have TELLS sent by and by: nobody waits for it."""
        for each in tells:
            if not self._new(each):
                continue
            say = self.log.warning if each.warning else self.log.info
            say(each.message, node=each.node, reason=each.reason)
            if len(self._queue) < self.most and self._take():
                self._queue.append(self._body(each))
                self._waiting.set()
            else:
                self.metrics.events_dropped.add()

    async def run(self) -> None:
        """Send what is told, until cancelled."""
        while True:
            await self._waiting.wait()
            await self.send()

    async def send(self) -> None:
        """Send what has been told so far. One that can't be sent is lost: nothing depends on it."""
        self._waiting.clear()
        while self._queue:
            body = self._queue.popleft()
            try:
                await self.cluster.create(EVENTS, body, namespace=NAMESPACE)
            except ApiError as error:
                self.log.debug("an Event was not sent", reason=str(body["reason"]), error=str(error))
                self.metrics.events_dropped.add()

    def _new(self, tell: Tell) -> bool:
        now, key = self.clock.monotonic(), (tell.node, tell.reason)
        text, at = self._told.get(key, ("", 0.0))
        if text == tell.message and now - at < self.again:
            return False
        if len(self._told) > 10_000:
            self._told = {key: value for key, value in self._told.items() if now - value[1] < self.again}
        self._told[key] = (tell.message, now)
        return True

    def _take(self) -> bool:
        now = self.clock.monotonic()
        self._left = min(self._left + (now - self._at) * self.refill, float(self.burst))
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _body(self, tell: Tell) -> dict[str, object]:
        prefix = tell.node[:200].rstrip(".-")  # a name may not have a dot before the dash
        return {
            "metadata": {"generateName": f"{prefix}-", "namespace": NAMESPACE},
            "eventTime": self.clock.stamp(),
            "reportingController": f"{keys.DOMAIN}/reconciler",
            "reportingInstance": brief(self.identity, 128),
            "action": "Reconcile",
            "reason": tell.reason,
            "regarding": {"apiVersion": "v1", "kind": "Node", "name": tell.node, "uid": self.uid(tell.node)},
            "note": brief(tell.message, _NOTE),
            "type": "Warning" if tell.warning else "Normal",
        }
