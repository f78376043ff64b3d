"""One replica of the program on the server in memory: the real shell, a pass at a time instead of its loop.

What the loop does by itself is asked for here: renew the Lease, let watches catch up (all of them, or some: `lag`), one
pass. A replica that was killed never sends another request; `restart` is the process that comes after it.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpustack.reconciler.core.actions import Decision
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.clock import Clock
from gpustack.reconciler.shell.cluster import ApiError
from gpustack.reconciler.shell.log import Log
from gpustack.reconciler.shell.perform import Outcome, Performer
from gpustack.reconciler.shell.runner import Runner
from tests.reconciler.memory import FakeCluster, drive
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.world import World

from .moment import KURED


class Watched(Runner):
    """A runner that says what it saw and what it decided."""

    begun: Callable[[Snapshot], None] = staticmethod(lambda known: None)
    decided: Decision = Decision()
    away: Sequence[tuple[datetime, datetime]] = ()

    async def _closer(self, known: Snapshot) -> Snapshot:
        made = await super()._closer(known)
        self.away = made.away
        self.begun(made)
        return made

    async def _afresh(self, known: Snapshot) -> tuple[Snapshot, Decision]:
        made, decision = await super()._afresh(known)
        self.begun(made)
        return made, decision


@dataclass
class Noted:
    """What carries out decisions of RUNNER, and tells it which."""

    runner: Watched
    performer: Performer

    async def __call__(self, decision: Decision) -> Outcome:
        self.runner.decided = decision
        return await Performer.perform(self.performer, decision)


@dataclass
class Replica:
    """A replica whose clients come from `client`; each process has a name of its own."""

    world: World
    client: Callable[[], FakeCluster]
    begun: Callable[[Snapshot], None] = lambda known: None
    maintenance: str = ""
    """The namespace of the Leases by which maintenance is shared, with kured too; "" for none."""
    lag: int = 0
    """Bits of the watches that do not catch up."""
    number: int = 0
    runner: Watched = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def decided(self) -> Decision:
        """What the last pass decided."""
        return self.runner.decided

    def restart(self) -> None:
        """Another process, which knows nothing and has another identity."""
        self.number += 1
        clock = Clock(self._elapsed)
        self.cluster = self.client()
        log = Log("error", io.StringIO())
        who = f"{self.cluster.actor}-{self.number}"
        shared, lock = self.maintenance, "/".join(KURED) if self.maintenance else ""
        self.runner = Watched(self.cluster, NAMESPACE, who, clock, log, maintenance=shared, kured=lock)
        self.runner.sources.refusals.chance = _middle  # a history is the same whenever it is played
        self.runner.begun = self.begun
        self.runner.performer.perform = Noted(self.runner, self.runner.performer)  # type: ignore[method-assign]

    def _elapsed(self) -> float:
        return self.world.elapsed

    async def turn(self) -> None:
        """Renew the Lease, let the watches catch up, and make a pass if this replica leads."""
        try:
            await self.runner.elector.step()
            for bit, watch in enumerate(self.runner.sources.watches):
                if not (watch.synced and self.lag >> bit & 1):
                    await watch.refresh()
            if self.runner.elector.leading:
                await self.runner.once()
        except* ApiError:
            pass  # the loop would try again

    def run(self) -> Decision:
        """One turn."""
        drive(self.turn())
        return self.decided

    def stall(self) -> asyncio.Task[Any]:
        """Begin a turn, and leave it where its client waits."""

        async def begin() -> asyncio.Task[Any]:
            task = asyncio.ensure_future(self.turn())
            for _ in range(200):
                await asyncio.sleep(0)
            return task

        return drive(begin())


def _middle() -> float:
    return 0.5
