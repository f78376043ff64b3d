"""The loop around everything: watch, lead, decide, do.

A pass runs when something has changed, at most every `settle` seconds, and when the last decision said that time alone
will change something. It runs in the leader only, and is cut off the moment that this process no longer leads.
"""

import asyncio
import time
from dataclasses import dataclass, field, replace

from ...api import keys
from ..core import engine, queue
from ..core.actions import Decision, PatchNode
from ..core.snapshot import Seen, Snapshot
from ..core.view import operations
from . import report
from .clock import Backoff, Clock, Steady
from .cluster import ApiError, Cluster
from .events import Events
from .gather import Sources
from .lease import Elector, Terms
from .log import Log
from .metrics import Metrics
from .perform import Outcome, Performer


@dataclass
class Runner:
    """One replica of the program."""

    cluster: Cluster
    namespace: str
    identity: str
    clock: Clock = field(default_factory=Clock)
    log: Log = field(default_factory=Log)
    metrics: Metrics = field(default_factory=Metrics)
    terms: Terms = field(default_factory=Terms)
    settle: float = 0.5
    beat: float = 30.0
    """The longest time without a sign of life from the loop."""
    maintenance: str = ""
    """The namespace of the Leases by which maintenance is shared; "" where none are kept."""
    kured: str = ""
    """Namespace and name of kured's DaemonSet, whose lock counts; "" where it doesn't."""
    work: Steady = time.process_time
    """Seconds that this process has worked."""
    _again: float = field(default=300.0, init=False)
    _term: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self._dirty = asyncio.Event()
        self.alive = self.clock.monotonic()
        changed, shared, lock = self._dirty.set, self.maintenance, self.kured
        self.sources = Sources(
            self.cluster, self.namespace, self.clock, self.log, changed, maintenance=shared, kured=lock
        )
        self.elector = Elector(self.cluster, self.namespace, self.identity, self.clock, self.log, self.terms, changed)
        self.events = Events(self.cluster, self.identity, self.clock, self.log, self.metrics, self._uid)
        self.performer = Performer(self.cluster, self.elector, self.sources, self.events, self.log)

    @property
    def ready(self) -> bool:
        """Whether everything was read once, and the API server answers."""
        return self.sources.synced and self.clock.monotonic() - self.elector.contact < 2 * self.terms.duration

    @property
    def healthy(self) -> bool:
        """Whether the loop still turns."""
        return self.clock.monotonic() - self.alive < 20 * self.beat

    async def run(self) -> None:
        """Run until cancelled; then let another replica lead."""
        try:
            async with asyncio.TaskGroup() as group:
                for watch in self.sources.watches:
                    group.create_task(watch.run())
                group.create_task(self.elector.run())
                group.create_task(self.events.run())
                group.create_task(self._loop())
        finally:
            await self.elector.give_up()

    async def plan(self) -> Decision:
        """What would be done now. Changes nothing."""
        await self.sources.refresh()
        await self.elector.look()
        return engine.decide(await self._closer(self._base()))

    async def once(self) -> Outcome:
        """A pass."""
        began = self.clock.monotonic()
        known = await self._closer(self._base())
        decision = engine.decide(known)
        if any(isinstance(action, PatchNode) and action.admits for action in decision.actions):
            known, decision = await self._afresh(known)
        self.sources.seen, self.sources.kept = decision.seen, decision.kept
        nodes = {node.name: node for node in known.nodes}
        self.performer.finished = lambda action: report.finished(self.metrics, known, nodes, action, self.clock.now())
        outcome = await self.performer.perform(decision)
        now = replace(known, nodes=self.sources.nodes.all(), policies=self.sources.policies.all())
        report.show(self.metrics, now, decision)
        report.stand(self.metrics, known, decision, outcome.done)
        setbacks = {(uid, queue.SET_BACK): known.now for uid in self.sources.refusals.setbacks()}
        seen = Seen({**setbacks, **decision.seen.first, **report.standing(self.metrics, known.now)})
        marked = {node.uid: "" for node in now.nodes if keys.OPERATION in node.annotations}  # read or not, it is open
        self.elector.tend({**marked, **{uid: operation.id for uid, operation in operations(now).items()}}, seen)
        seconds = self.clock.monotonic() - began
        self.metrics.passes.observe(seconds)
        self.log.debug("pass", seconds=round(seconds, 3), done=len(outcome.done), failed=len(outcome.failed))
        self._again = min(decision.again, 10.0) if outcome.failed else decision.again  # why it failed is told then
        return outcome

    # --- within -------------------------------------------------------------------------------------------------------

    def _base(self) -> Snapshot:
        elector = self.elector
        if elector.term != self._term:  # another one led until now: what it has seen goes on
            self._term, self.sources.seen = elector.term, elector.times
            report.stood(self.metrics, elector.times)
        known = self.sources.base(admitting=elector.announced, ledger=elector.ledger, paused=elector.paused)
        return replace(known, away=elector.away)

    async def _closer(self, known: Snapshot) -> Snapshot:
        return await self.sources.closer(known, engine.survey(known))

    async def _afresh(self, known: Snapshot) -> tuple[Snapshot, Decision]:
        """Decide again on nodes that were read just now: nothing is admitted by what a watch may have missed."""
        await self.sources.nodes.refresh()
        fresh = replace(self._base(), pods=known.pods, claims=known.claims, prechecks=known.prechecks)
        return fresh, engine.decide(fresh)

    async def _loop(self) -> None:
        failures, pause = Backoff(1.0, 60.0), 0.0
        while True:
            await self._wait(pause)
            self.alive = self.clock.monotonic()
            self.metrics.leader.set(float(self.elector.leading))
            if not (self.elector.leading and self.sources.synced):
                report.clear(self.metrics)
                pause = 2.0
                continue
            began = self.work()
            failed = await self._guarded()
            pause = min(failures.next(), self._again) if failed else self._again
            if not failed:
                failures.reset()
            # Never more than a third of a core, however much changes. What a pass waits for is no work.
            await asyncio.sleep(max(self.settle, 2 * (self.work() - began)))

    async def _guarded(self) -> bool:
        """A pass that ends with our leadership. Whether anything failed."""
        task = asyncio.create_task(self.once())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=max(min(self.elector.remaining, 1.0), 0.01))
                if not self.elector.leading:
                    task.cancel()
        finally:
            task.cancel()
            await asyncio.wait({task})
        if task.cancelled():
            self.log.warning("a pass was cut off: this replica no longer leads")
            return True
        error = task.exception()
        if isinstance(error, ApiError):
            self.log.warning("a pass failed", error=str(error), status=error.status)
            return True
        if error is not None:
            raise error
        return task.result().trouble

    async def _wait(self, pause: float) -> None:
        """Until something has changed, or PAUSE seconds; with signs of life."""
        ends = self.clock.monotonic() + pause
        while (left := ends - self.clock.monotonic()) > 0 and not self._dirty.is_set():
            self.alive = self.clock.monotonic()
            try:
                async with asyncio.timeout(min(left, self.beat)):
                    await self._dirty.wait()
            except TimeoutError:
                continue
        if self._dirty.is_set():
            await asyncio.sleep(self.settle)
        self._dirty.clear()

    def _uid(self, node: str) -> str:
        known_node = self.sources.nodes.get(node)
        return known_node.uid if known_node else node
