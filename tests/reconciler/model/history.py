"""A history: a cluster, the program, and what anybody may do to them, step by step.

Steps are methods of `History` in `STEPS`, each with one small number, so that Hypothesis and a plain random generator
draw from the same. After every write `watcher` looks; at the end `settle` makes everybody cooperate, and every node must
come to be as wanted (I5), after which nothing is written any more (I10).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from gpustack.reconciler import engine
from gpustack.reconciler.cluster import LEASES, NODES, PODS, POLICIES
from gpustack.reconciler.lease import NAME
from gpustack.reconciler.snapshot import Snapshot
from gpustack.reconciler.testing import drive
from gpustack.reconciler.testing.server import Server
from gpustack.reconciler.testing.stack import NAMESPACE
from gpustack.reconciler.testing.workloads import Workload, add_workload, start
from gpustack.reconciler.testing.world import World

from . import moment as m
from .replica import Replica
from .watcher import Killed, Violation, Watcher

POOL = "gpus"
SECONDS = (1, 5, 15, 60, 300, 900, 3600)
LAYOUTS = ("", "halves", "small", "all-disabled")
FAULTS = ("driver", "mig", "validator", "stuck")
FOREIGN = ("false", "custom", "pre-installed", "paused-for-driver-upgrade", "")
PARTS = ("driver", "device-plugin", "mig-manager", "operator-validator")
LIMITS: Sequence[tuple[int, int | str]] = ((1, 1), (2, 1), (2, "50%"), (0, "25%"), (3, 2), (1, 0))
BOUND = 700
"""Passes in which a cooperative cluster must be done."""


@dataclass
class Want:
    """What was last committed to Git."""

    version: str = "1"
    digest: str = ""
    mig: str = ""
    content: str = "1"
    limits: int = 0
    zone: bool = False
    drain: bool = False
    window: bool = False
    labels: tuple[tuple[str, str], ...] = ()

    def options(self) -> dict[str, Any]:
        """As `World.set_policy` takes them."""
        parallel, unavailable = LIMITS[self.limits]
        upgrade: dict[str, Any] = {"maxParallel": parallel, "maxUnavailable": unavailable, "breakerFailures": 2}
        if self.zone:
            upgrade["zoneMaxUnavailable"] = 1
        if self.drain:
            upgrade["drain"] = {"enable": True, "force": True, "podSelector": "app=web"}
        if self.window:
            upgrade["windows"] = [{"start": "22:00", "hours": 3}]
        made = {"mig": self.mig, "content": self.content, "version": self.version, "digest": self.digest}
        return {**made, "upgrade": upgrade, "labels": dict(self.labels)}


class History:
    """A cluster of NODES nodes and one replica of the program."""

    def __init__(self, nodes: int = 3, *, installed: bool = True) -> None:
        self.world = World(Server(history_limit=200))
        self.watcher = Watcher(self.world)
        self.replica = Replica(self.world, lambda: self.watcher.client("one"), lambda known: self._begun("one", known))
        self.other = Replica(self.world, lambda: self.watcher.client("two"), lambda known: self._begun("two", known))
        self.want, self.versions, self.plans, self.by_hand = Want(), 1, 0, False
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
        self.watcher.seen[actor] = known
        self.plans += 1
        if self.plans % 8 == 0:  # I22: what is planned of a snapshot is what is done with it
            first, again = (engine.decide(copy.copy(known)) for known in (_frozen(known), _frozen(known)))
            if first != again:
                raise Violation("i22_plan: two plans of one snapshot differ")

    def once(self, _: int = 0) -> bool:
        """A pass. Whether it wrote anything."""
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
        self.replica.lag = (0, 0b1, 0b10, 0b1100, 0b100000, 0b1000000, 0b10000000, 0b11100000)[number % 8]

    def fleet(self, *, paused: bool) -> None:
        """The fleet is paused, or no longer."""
        if self.world.server.find(LEASES, NAME, NAMESPACE):
            body = {"metadata": {"annotations": {m.PAUSED: "tests" if paused else None}}}
            self.world.server.edit(LEASES, NAME, body, NAMESPACE)

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

    def restart(self, _: int) -> None:
        """The process is restarted."""
        self.replica.restart()

    def jump(self, number: int) -> None:
        """The API server's clock jumps."""
        self.world.server.now += timedelta(seconds=(-3600, -60, 60, 3600)[number % 4])

    # --- Git ----------------------------------------------------------------------------------------------------------

    def sync(self, number: int) -> None:
        """What was committed is synced: both, or the policy first, or the driver first."""
        if number % 3 != 1:
            self.world.set_driver(self.want.version, self.want.digest)
        if number % 3 != 2:
            self.world.content = self.want.content
            self.world.set_policy(POOL, **self.want.options())

    def driver(self, number: int) -> None:
        """Another driver; every third installs nothing anew."""
        self.versions += 1
        if number % 3 == 2 and self.want.digest:
            self.want.version = f"{self.versions}"
        else:
            self.want.version, self.want.digest = f"{self.versions}", f"digest-{self.versions}"
        self.sync(number // 3)

    def revert(self, number: int) -> None:
        """Back to the first driver."""
        self.want.version, self.want.digest = "1", ""
        self.sync(number)

    def mig(self, number: int) -> None:
        """Another MIG layout, perhaps with another driver."""
        self.want.mig = LAYOUTS[number % len(LAYOUTS)]
        if number >= 4:
            self.driver(0)
        self.sync(0)

    def content(self, number: int) -> None:
        """The layout has another content under the same name."""
        self.want.content = str(1 + number % 3)
        self.sync(0)

    def limits(self, number: int) -> None:
        """Another budget."""
        self.want.limits, self.want.zone, self.want.drain = number % 6, number % 2 == 1, number % 3 == 2
        self.sync(0)

    def window(self, number: int) -> None:
        """A maintenance window, or none."""
        self.want.window = number % 2 == 0
        self.sync(0)

    def mode(self, number: int) -> None:
        """Another workload type."""
        self.want.labels = (("nvidia.com/gpu.workload.config", ("container", "vm-vgpu")[number % 2]),)
        self.sync(0)

    def drop_policy(self, number: int) -> None:
        """The policy is deleted, or another one matches the nodes as well."""
        if self.world.server.find(POLICIES, POOL) is None:
            self.sync(0)
        elif number % 2:
            self.world.server.remove(POLICIES, POOL)
        else:
            self.world.set_policy("other", nodeSelector={"example.com/pool": POOL})

    # --- people -------------------------------------------------------------------------------------------------------

    def _node(self, number: int) -> str | None:
        names = sorted(self.world.machines)
        return names[number % len(names)] if names else None

    def cordon(self, number: int) -> None:
        """Somebody cordons a node, or uncordons it."""
        if node := self._node(number):
            self.world.cordon(node, not self.world.cordoned(node))

    def hold(self, number: int) -> None:
        """A node is put on hold, or taken off it."""
        if node := self._node(number):
            self.world.label(node, {m.HOLD: None if m.HOLD in self.world.labels(node) else "true"})

    def pause(self, number: int) -> None:
        """The pool is paused or held, or no longer; so is the fleet."""
        if number % 3 == 0:
            self.fleet(paused=m.PAUSED not in m.annotations(self.world.server.find(LEASES, NAME, NAMESPACE)))
        elif found := self.world.server.find(POLICIES, POOL):
            key = m.PAUSED if number % 3 == 1 else m.HOLD
            value = None if key in m.annotations(found) else "tests"
            self.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": {key: value}}})

    def retry(self, number: int) -> None:
        """Somebody asks for another attempt, or closes the breaker."""
        node = self._node(number)
        if number % 2 and self.world.server.find(POLICIES, POOL):
            key = "gpustack.dev/reset-breaker"
            self.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": {key: str(self.world.elapsed)}}})
        elif node:
            self.world.annotate(node, {"gpustack.dev/retry": "now"})

    def manual(self, number: int) -> None:
        """Somebody sets a MIG layout by hand, and may say that it is to stay."""
        if node := self._node(number):
            self.by_hand = True
            self.world.label(node, {"nvidia.com/mig.config": LAYOUTS[1 + number % 3]})
            if number % 2:
                until = (self.world.server.now + timedelta(hours=1)).isoformat()
                self.world.annotate(node, {"gpustack.dev/manual-mig": until})

    def record(self, number: int) -> None:
        """Somebody removes or spoils what is remembered on a node."""
        if node := self._node(number):
            key = (m.OP, m.OP, m.LAST, m.MEMORY, m.CORDONED)[number % 5]
            self.world.annotate(node, {key: "{" if number % 2 and number % 5 < 4 else None})

    def opt_out(self, number: int) -> None:
        """A component is not to run on a node."""
        if node := self._node(number):
            part = PARTS[1:][number % 3]
            self.world.annotate(node, {"gpustack.dev/optout": part if number % 2 else None})

    # --- the cluster --------------------------------------------------------------------------------------------------

    def works(self, number: int) -> None:
        """A node's kubelet falls silent, or is back."""
        if node := self._node(number):
            self.world.set_works(node, not self.world.works(node))

    def nfd(self, number: int) -> None:
        """NFD loses the GPU of a node or of all, or finds it."""
        for node in list(self.world.machines) if number % 2 else [self._node(number)]:
            if node:
                self.world.label(node, {m.PCI: None if m.PCI in self.world.labels(node) else "true"})

    def replace(self, number: int) -> None:
        """A node is deleted, and may come again under its name; or another one joins."""
        node = self._node(number)
        if number % 3 == 0 and len(self.world.machines) < 5:
            self.world.add_node(f"n{len(self.world.machines) + 10 * self.versions}", POOL, "a")
        elif node:
            self.world.remove_node(node)
            if number % 3 == 1:
                self.world.add_node(node, POOL, "b")

    def foreign(self, number: int) -> None:
        """Somebody writes a deploy label."""
        if node := self._node(number):
            value = FOREIGN[number % len(FOREIGN)]
            self.world.label(node, {f"{m.DEPLOY}{PARTS[number % 4]}": value})

    def taint(self, number: int) -> None:
        """Somebody taints a node, or removes all taints."""
        if node := self._node(number):
            taints = [{"key": "example.com/repair", "effect": "NoSchedule"}]
            spec = self.world.node(node).get("spec") or {}
            self.world.server.edit(NODES, node, {"spec": {"taints": None if spec.get("taints") else taints}})

    def fault(self, number: int) -> None:
        """Something no longer works on a machine, or works again."""
        if node := self._node(number):
            self.world.machines[node].faults ^= {FAULTS[number % 4]}

    def workload(self, number: int) -> None:
        """The workload grows, shrinks, ends slowly, gets a strict budget or none."""
        budget, slow = (1, 0, None)[number % 3], (5.0, 40.0, 400.0)[number // 3 % 3]
        add_workload(self.world, Workload("train", number % 6, max_unavailable=budget, ends_after=slow))

    def bind(self, number: int) -> None:
        """A pod lands on a node, cordoned or not."""
        if (node := self._node(number)) and self.world.machines[node].loaded:
            start(self.world, self.world.workloads["train"], node)

    def operator(self, number: int) -> None:
        """The operator left a node in the middle of its upgrade."""
        node = self._node(number)
        if node and not m.operation(self.world.node(node)):
            states = ("pod-deletion-required", "pod-restart-required", "validation-required", "upgrade-done")
            self.world.cordon(node, number % 4 != 3)
            self.watcher.owners[node] = "operator"
            self.world.label(node, {m.UPSTREAM: states[number % 4]})

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everybody cooperates from now on. Raises `Violation` where a node does not come to be as wanted."""
        self.watcher.kill.clear()
        self.want.window, self.replica.lag = False, 0
        self.fleet(paused=False)
        self.want.limits = self.want.limits if LIMITS[self.want.limits][1] else 0
        if self.world.server.find(POLICIES, "other"):
            self.world.server.remove(POLICIES, "other")
        self.sync(0)
        nothing = {m.PAUSED: None, m.HOLD: None}
        self.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": nothing}})
        add_workload(self.world, Workload("train", 1, max_unavailable=1, ends_after=12))
        calm, moving = 0, True
        for count in range(BOUND):
            wrote, changes = self.once(), self.watcher.changes
            self.world.tick(5 if wrote or moving else 120)
            moving = changes != self.watcher.changes
            if count % 200 == 0:
                self.retry(1)
                for name in self.world.machines:
                    self._cooperate(name)
            calm = calm + 1 if not wrote and not self.problems() else 0
            if calm >= 3:
                return
        raise Violation(f"i5_liveness: {self.problems()}; {[str(wait) for wait in self.replica.decided.waits]}")

    def _cooperate(self, name: str) -> None:
        self.world.machines[name].faults.clear()
        self.world.set_works(name, True)
        if self.world.cordoned(name) and self.watcher.owners.get(name) != "us":
            self.world.cordon(name, False)
        labels: dict[str, str | None] = {m.HOLD: None, m.PCI: "true"}
        for key, value in self.world.labels(name).items():
            if key.startswith(m.DEPLOY) and value not in {"true"} and not value.startswith("paused-for"):
                labels[key] = None
        self.world.label(name, labels)
        dropped = {"gpustack.dev/manual-mig": None, "gpustack.dev/optout": None, "gpustack.dev/retry": "now"}
        for key in (m.OP, m.LAST, m.MEMORY):
            if self.world.annotations(name).get(key) == "{":
                dropped[key] = None
        self.world.annotate(name, dropped)
        self.world.server.edit(NODES, name, {"spec": {"taints": None}})
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
            if driver is None or not self.world.is_ready(driver):
                found.append(f"{name} has no driver")
            elif machine.loaded != (self.want.digest or f"digest-{self.want.version}"):
                found.append(f"{name} has driver {machine.loaded}")
            # What was cut by hand, or by default, is taken as it is: nobody can tell which content it was cut by.
            content = machine.geometry[1] if self.by_hand or self.want.mig == "all-disabled" else self.want.content
            if self.want.mig and machine.geometry != (self.want.mig, content):
                found.append(f"{name} has layout {machine.geometry}")
            if labels.get(f"{m.DEPLOY}device-plugin") != "true":
                found.append(f"{name} has no device plugin")
        return found


async def _end(task: asyncio.Task[Any]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _frozen(known: Snapshot) -> Snapshot:
    made = copy.copy(known)
    object.__setattr__(made, "seen", copy.deepcopy(known.seen))
    return made


def last_problem(history: History) -> str:
    """For reports."""
    return "; ".join(history.problems())


Step = Callable[[History, int], Any]
STEPS: dict[str, Step] = {
    name: getattr(History, name)
    for name in (
        "once go tick kill restart lag stall jump sync driver revert mig content limits window mode drop_policy cordon hold pause "
        "retry manual record opt_out works nfd replace foreign taint fault workload bind operator"
    ).split()
}
"""By name; the number goes to the step."""
WEIGHTS: dict[str, int] = {"go": 30, "once": 6, "kill": 4, "driver": 3, "mig": 3, "tick": 3}
"""How often a step comes, 1 where it isn't here."""

__all__ = ["NAMESPACE", "STEPS", "WEIGHTS", "History", "last_problem"]
