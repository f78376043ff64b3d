"""A history: a cluster, the program, and what anybody may do to them, step by step.

Steps are methods of `History` in `STEPS`, each with one small number, so that Hypothesis and a plain random generator
draw from the same. After every write `watcher` looks; at the end `settle` makes everybody cooperate, and every node
must come to be as wanted (I5), after which nothing is written any more (I10).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import pickle
from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from types import FunctionType
from typing import Any

from gpustack.reconciler.core import engine
from gpustack.reconciler.core.others import HOLDER
from gpustack.reconciler.core.snapshot import Kept, Snapshot
from gpustack.reconciler.shell.cluster import LEASES, NODES, PODS, POLICIES
from tests.reconciler.memory import drive
from tests.reconciler.memory.server import Server
from tests.reconciler.world.stack import POOL as KEY
from tests.reconciler.world.stack import STARTUP
from tests.reconciler.world.workloads import Workload, add_workload
from tests.reconciler.world.world import World

from . import moment as m
from .actors import LIMITS, POOL, SECONDS, SPARE, Want
from .replica import Replica
from .vexations import Vexations, Vexed
from .watcher import Killed, ViolationError, Watcher

BOUND = 700
"""Passes in which a cooperative cluster must be done."""


class History(Vexations):
    """A cluster of NODES nodes and one replica of the program."""

    def __init__(self, nodes: int = 3, *, installed: bool = True, limits: int = 0, kept: bool = False) -> None:
        self.world = World(Server(history_limit=200))
        self.watcher = Watcher(self.world)
        # Partials, and no closures: a copy of a history is one of all that it holds (explore.py).
        self.replica, self.other = (
            Replica(
                self.world, partial(self.watcher.client, name), partial(self._begun, name), m.SHARED if kept else ""
            )
            for name in ("one", "two")
        )
        self.kept, self.vexed = kept, Vexed()
        self.want, self.versions, self.plans, self.by_hand = Want(limits=limits), 1, 0, False
        self.world.install_stack("1")
        self.sync(0)
        for number in range(nodes):
            self.world.add_node(f"n{number}", POOL, "ab"[number % 2])
        add_workload(self.world, Workload("train", nodes, max_unavailable=1, ends_after=12))
        add_workload(self.world, Workload("web", 2, gpu=False))
        if installed:
            for _ in range(30):
                self.go(0)
                if self.problems() == []:
                    break

    # --- the program --------------------------------------------------------------------------------------------------

    def _begun(self, actor: str, known: Snapshot) -> None:
        self.watcher.saw(actor, known)
        self.plans += 1
        if self.plans % 8 == 0:  # I22: what is planned of a snapshot is what is done with it
            before = dict(known.seen.first), known.kept, dict(known.kept.views)
            first, again = engine.decide(known), engine.decide(known)
            if (dict(known.seen.first), known.kept, dict(known.kept.views)) != before:
                raise ViolationError("i22_plan: a plan has changed what it was made of")
            if first != again:
                raise ViolationError("i22_plan: two plans of one snapshot differ")

    def once(self, _: int = 0) -> bool:
        """A pass. Whether it wrote anything."""
        self.vex()
        before = self.watcher.writes.total()
        try:
            self.replica.run()
        except BaseExceptionGroup as group:
            if rest := group.split(Killed)[1]:
                raise rest.exceptions[0] from None
        except Killed:
            pass
        if self.watcher.killed("one"):
            self.replica.restart()
        self.watcher.quiet()
        return self.watcher.writes.total() != before

    def go(self, number: int) -> None:
        """Some passes, with time between."""
        for _ in range(6):
            self.once()
            self.world.tick(SECONDS[1 + number % 3])

    def lag(self, number: int) -> None:
        """Some watches do not catch up any more, or all do again."""
        self.replica.lag = (0, 0b1, 0b10, 0b1100, 0b100000, 0b1000000, 0b10000000, 0b11100000, 0b1000000000)[number % 9]

    def stall(self, number: int) -> None:
        """The leader stops within a request; another takes over; then the late request arrives."""
        gate = self.watcher.stall("one", number % 4)
        task = self.replica.stall()
        self.watcher.quiet()
        for _ in range(2 + number % 3):
            self.world.tick(20)
            self._turn_of_other()
        self.watcher.release("one", gate)
        drive(_end(task))
        self.watcher.quiet()
        self.replica.restart()
        drive(self.other.runner.elector.release())
        self.other.restart()

    def _turn_of_other(self) -> None:
        self.other.run()
        self.watcher.quiet()

    def tick(self, number: int) -> None:
        """Time passes without the program."""
        self.world.tick(SECONDS[number % len(SECONDS)])

    def kill(self, number: int) -> None:
        """The process is killed after some writes."""
        self.watcher.kill["one"] = number % 3
        self.once()
        self.watcher.kill.pop("one", None)

    def away(self, number: int) -> None:
        """The process is killed after some writes, and nobody takes its place for hours."""
        self.kill(number)
        for _ in range((60, 240, 480)[number // 3 % 3]):
            self.world.tick(30)
        self.replica.restart()

    def restart(self, _: int) -> None:
        """The process is restarted."""
        self.replica.restart()

    def jump(self, number: int) -> None:
        """The API server's clock jumps."""
        self.world.server.now += timedelta(seconds=(-3600, -60, 60, 3600)[number % 4])

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everybody cooperates from now on. Raises `ViolationError` where a node does not come to be as wanted."""
        self.watcher.kill.clear()
        self.watcher.denied.clear()
        self.watcher.unlisted.clear()
        self.want.window, self.want.soak, self.replica.lag, self.want.pods = False, 0, 0, {}
        self.fleet(paused=False)
        self.calm()
        self.want.limits = self.want.limits if LIMITS[self.want.limits][1] else 0
        if self.world.server.find(POLICIES, "other"):
            self.world.server.remove(POLICIES, "other")
        self.sync(0)
        nothing = {m.PAUSED: None, m.HOLD: None}
        self.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": nothing}})
        add_workload(self.world, Workload("train", 1, max_unavailable=1, ends_after=12))
        calm, moving, idle = 0, True, 0
        for count in range(BOUND):
            wrote, changes = self.once(), self.watcher.changes
            idle = 0 if wrote else idle + 1
            self.world.tick(5 if wrote or (moving and idle < 30) else 120)
            moving = changes != self.watcher.changes
            if count % 200 == 0:
                self.retry(1)
                for name in self.world.machines:
                    self._cooperate(name)
            calm = calm + 1 if not wrote and not self.problems() else 0
            if calm >= 3:
                return
        raise ViolationError(f"i5_liveness: {self.problems()}; {[str(wait) for wait in self.replica.decided.waits]}")

    def _cooperate(self, name: str) -> None:
        self.world.machines[name].faults.clear()
        self.world.set_works(name, True)
        if self.world.cordoned(name) and self.watcher.owners.get(name) != "us":
            self.world.cordon(name, False)
        labels: dict[str, str | None] = {m.HOLD: None, m.PCI: "true"}
        for key, value in self.world.labels(name).items():
            if key.startswith(m.DEPLOY) and value != "true" and not value.startswith("paused-for"):
                labels[key] = None
        self.world.label(name, labels)
        dropped = {"gpustack.dev/manual-mig": None, "gpustack.dev/optout": None, "gpustack.dev/retry": "now"}
        for key in (m.OP, m.LAST, m.MEMORY):
            if self.world.annotations(name).get(key) == "{":
                dropped[key] = None
        self.world.annotate(name, dropped)
        there = (self.world.node(name).get("spec") or {}).get("taints") or []
        left = [each for each in there if each["key"] == STARTUP["key"] and self.want.startup]
        self.world.server.edit(NODES, name, {"spec": {"taints": left or None}})
        for pod in self.world.gpu_pods(name):
            self.world.server.edit(PODS, pod["metadata"]["name"], {"metadata": {"labels": {"ends-after": "5"}}}, "work")

    def problems(self) -> list[str]:
        """What is not as wanted, node by node."""
        found = []
        for name, machine in self.world.machines.items():
            labels, driver = self.world.labels(name), self.world.operand("nvidia-driver-daemonset", name)
            if m.operation(self.world.node(name)):
                found.append(f"{name} has an operation in {m.operation(self.world.node(name)).get('phase')}")
            if self.world.cordoned(name):
                found.append(f"{name} is cordoned")
            if (self.world.node(name).get("spec") or {}).get("taints"):
                found.append(f"{name} has taints")
            if driver is None or not self.world.is_ready(driver):
                found.append(f"{name} has no driver")
            elif machine.loaded != (self.want.digest or f"digest-{self.want.version}"):
                found.append(f"{name} has driver {machine.loaded}")
            # What was cut by hand, or by default, or whose memory is gone, is taken as it is: nobody can tell which
            # content it was cut by.
            content = machine.geometry[1] if self.by_hand or self.want.mig == "all-disabled" else self.want.content
            if self.want.mig and machine.geometry != (self.want.mig, content):
                found.append(f"{name} has layout {machine.geometry}")
            if labels.get(f"{m.DEPLOY}device-plugin") != "true":
                found.append(f"{name} has no device plugin")
            lease = self.world.server.find(LEASES, f"node-{name}", m.SHARED) or {"spec": {}}
            if lease["spec"].get("holderIdentity") == HOLDER:
                found.append(f"{name} is still held for maintenance")
        return found


async def _end(task: asyncio.Task[Any]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await task


class _Writer(pickle.Pickler):
    """Writes a history down, but for what its copies have in common."""

    def __init__(self, file: io.BytesIO, shared: dict[int, Any]) -> None:
        super().__init__(file, 5)
        self.shared = shared

    def persistent_id(self, value: Any) -> int | None:
        if isinstance(value, FunctionType):
            self.shared[id(value)] = value
        return id(value) if id(value) in self.shared else None


class _Reader(pickle.Unpickler):
    """Reads it."""

    def __init__(self, file: io.BytesIO, shared: dict[int, Any]) -> None:
        super().__init__(file)
        self.shared = shared

    def persistent_load(self, pid: int) -> Any:
        return self.shared[pid]


def copied(history: History) -> History:
    """A copy that goes its own way."""
    return copies(history)()


def copies(history: History) -> Callable[[], History]:
    """What makes copies of HISTORY as it is now. Objects of the API are never changed, so all have the same."""
    server = history.world.server
    server.history.clear()
    server.writes.clear()
    server._selected.clear()
    shared: list[Any] = [one for of in server._objects.values() for names in of.values() for one in names.values()]
    shared.append(server._decoded)  # what it has is looked up by the object, which it keeps alive
    for replica in (history.replica, history.other):
        runner = replica.runner
        runner.sources.kept = Kept()
        shared += [runner.log, runner.metrics, runner.decided]
        for watch in runner.sources.watches:
            shared += [watch.kind, watch.which, *watch.items.values()]
        refusals, elector = runner.sources.refusals, runner.elector
        shared += [each for of in (refusals.pods, refusals.nodes, refusals.writes) for each in of.values()]
        shared += [runner.sources.bounds, elector.terms, elector.seen, *elector._open.values()]
        shared += elector.admitting.values()
    shared += [*history.watcher.seen.values(), history.want]
    file, by_id = io.BytesIO(), {id(each): each for each in shared}
    _Writer(file, by_id).dump(history)
    text, want = file.getvalue(), copy.copy(history.want)

    def copy_of() -> History:
        made: History = _Reader(io.BytesIO(text), by_id).load()
        made.want = copy.copy(want)
        return made

    return copy_of


@cache
def _begun(nodes: int, installed: bool, limits: int, kept: bool) -> History:
    return History(nodes, installed=installed, limits=limits, kept=kept)


def halved(history: History) -> None:
    """Every other node of HISTORY goes to a second pool, with a policy of its own."""
    history.want.spare = True
    history.sync(0)
    for name in sorted(history.world.machines)[1::2]:
        history.world.label(name, {KEY: SPARE})
    for _ in range(10):
        history.go(0)
        if not history.problems():
            return


def begun(nodes: int = 3, *, installed: bool = True, limits: int = 0, kept: bool = False) -> History:
    """As `History`, which takes its time to install a cluster: the same of a copy, where one was made before."""
    return copied(_begun(nodes, installed, limits, kept))


Step = Callable[[History, int], Any]
STEPS: dict[str, Step] = {
    name: getattr(History, name)
    for name in (
        "once go tick kill away restart lag stall jump sync driver revert mig content limits window mode drop_policy "
        "cordon hold pause retry manual record forge opt_out works nfd replace foreign taint fault workload bind "
        "operator everything labelling manager parts startup rename pool driver_gone register lies rival uninstall "
        "maintain lock deny unlist soak prepull reboot pods spare ledger undo marks edit ill asked reporting"
    ).split()
}
"""By name; the number goes to the step."""
WEIGHTS: dict[str, int] = {
    "go": 30,
    "once": 6,
    "kill": 4,
    "stall": 3,
    "fault": 2,
    "driver": 3,
    "mig": 3,
    "tick": 3,
    "ill": 4,
    "asked": 2,
}
"""How often a step comes, 1 where it isn't here."""
