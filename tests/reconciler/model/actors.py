"""What people and the cluster do in a history: commits and syncs, hands on nodes and labels, machines that fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gpustack.reconciler.shell.cluster import LEASES, NODES, POLICIES, ApiError, Conflict, Forbidden
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.world.machine import reboot
from tests.reconciler.world.stack import COMPONENTS, NAMESPACE, STARTUP
from tests.reconciler.world.workloads import Workload, add_workload, start
from tests.reconciler.world.world import World

from . import moment as m
from .watcher import Watcher

POOL, SPARE = "gpus", "spare"
SECONDS = (1, 5, 15, 60, 300, 900, 3600)
LAYOUTS = ("", "halves", "small", "all-disabled")
FAULTS = ("driver", "mig", "validator", "stuck", "registry", "pull", "slow")
FOREIGN = ("false", "custom", "pre-installed", "paused-for-driver-upgrade", "")
PARTS = ("driver", "device-plugin", "mig-manager", "operator-validator")
DENIALS = (
    Forbidden("a policy refuses it", 403),
    ApiError("failed calling webhook", 500),
    Conflict("the object has been modified", 409),
)
HEALTH = {
    "rules": [
        {"type": "GpuFatal", "then": "drain", "request": "reboot", "heartbeatSeconds": 900},
        {"type": "GpuLost", "then": "drain"},
        {"type": "GpuBad", "then": "cordon", "request": "reset"},
        {"type": "GpuNote", "then": "report"},
    ],
    "reportOnlyUntil": "2020-01-01T00:00:00Z",
    "maxNodes": 1,
    "maxShare": "50%",
    "breakerShare": "50%",
    "holdSeconds": 60,
    "settleSeconds": 120,
    "requestSeconds": 600,
}
"""What conditions mean; every fifth time that something is said of a fault it is of all nodes at once."""
SAID = ("True", "Unknown", "False", "stale")
LIMITS: Sequence[tuple[int, int | str]] = ((1, 1), (2, 1), (2, "50%"), (1, 3), (3, 2), (1, 0))


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
    labelling: bool = True
    manager: bool = True
    without: str = ""
    startup: bool = False
    together: bool = False
    """Whether nodes go without waiting for the first one of a rollout."""
    soak: int = 0
    """Seconds between one node of a rollout and the next."""
    prepull: str = ""
    """Whether nodes wait for the images of their next driver, and what becomes of them after a while."""
    pods: dict[str, Any] = field(default_factory=dict)
    """Rules for pods, and when budgets are ignored."""
    least: bool = False
    """Whether the least used nodes go first."""
    report: bool = False
    """Whether faults are only reported."""
    spare: bool = False
    """Whether there is a second pool, with a policy of its own that says the same."""

    def options(self) -> dict[str, Any]:
        """As `World.set_policy` takes them."""
        parallel, unavailable = LIMITS[self.limits]
        upgrade: dict[str, Any] = {"maxParallel": parallel, "maxUnavailable": unavailable, "breakerFailures": 2}
        if self.together:
            upgrade["firstAlone"] = False
        if self.soak:
            upgrade["soakSeconds"] = self.soak
        if self.prepull:
            upgrade["prepull"] = {"timeoutSeconds": 300, "then": self.prepull}
        upgrade |= self.pods
        if self.least:
            upgrade["leastUsed"] = True
        if self.zone:
            upgrade["zoneMaxUnavailable"] = 1
        if self.drain:
            upgrade["drain"] = {"enable": True, "force": True, "podSelector": "app=web"}
        if self.window:
            upgrade["windows"] = [{"start": "22:00", "hours": 3}]
        times = {"driver": 900, "mig": 900, "verifying": 400}
        parts = [name for name in COMPONENTS if name != self.without and (self.manager or name != "mig-manager")]
        made = {
            "labelling": self.labelling,
            "migManager": self.manager,
            "components": parts,
            "startupTaints": [STARTUP] if self.startup else [],
            "deadlines": times,
            "mig": self.mig if self.manager else "",
            "content": self.content,
            "version": self.version,
            "digest": self.digest,
            "health": {**HEALTH, **({"reportOnlyUntil": "2099-01-01T00:00:00Z"} if self.report else {})},
        }
        return {**made, "upgrade": upgrade, "labels": dict(self.labels)}


class Actors:
    """Everybody but the program. Each takes a small number that says which node, which value."""

    world: World
    watcher: Watcher
    want: Want
    versions: int
    by_hand: bool
    kept: bool
    """Whether the program writes the file of the MIG managers."""

    # --- Git ----------------------------------------------------------------------------------------------------------

    def sync(self, number: int) -> None:
        """What was committed is synced: both, or the policy first, or the driver first."""
        if number % 3 != 1:
            self.world.set_driver(self.want.version, self.want.digest)
            self.world.pull(self.want.version if self.want.prepull else "")
        if number % 3 != 2:
            self.world.content = self.want.content
            if self.kept:
                self.world.keep_layouts()
            for name in (POOL, SPARE) if self.want.spare else (POOL,):
                self.world.set_policy(name, **self.want.options())

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

    def soak(self, number: int) -> None:
        """A time between one node and the next, or none."""
        self.want.soak = 300 * (number % 3)
        self.sync(0)

    def prepull(self, number: int) -> None:
        """Nodes wait for the images of their next driver, for as long as that takes or a while, or not any more."""
        self.want.prepull = ("wait", "begin", "")[number % 3]
        self.sync(number // 3)

    def pods(self, number: int) -> None:
        """Another rule for the workload's pods; budgets are ignored after a while, or never; another order."""
        rules = [{"podSelector": "app=train", "then": ("delete", "wait", "evict")[number % 3]}]
        self.want.pods = {"podRules": rules} if number % 2 else {}
        self.want.pods |= {"ignoreBudgetsAfter": 300} if number >= 6 else {}
        self.want.least = number % 4 == 1
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
            self.fleet(paused=m.PAUSED not in m.annotations_of(self.world.server.find(LEASES, NAME, NAMESPACE)))
        elif found := self.world.server.find(POLICIES, POOL):
            key = m.PAUSED if number % 3 == 1 else m.HOLD
            value = None if key in m.annotations_of(found) else "tests"
            self.world.server.edit(POLICIES, POOL, {"metadata": {"annotations": {key: value}}})

    def fleet(self, *, paused: bool) -> None:
        """The fleet is paused, or no longer."""
        if self.world.server.find(LEASES, NAME, NAMESPACE):
            body = {"metadata": {"annotations": {m.PAUSED: "tests" if paused else None}}}
            self.world.server.edit(LEASES, NAME, body, NAMESPACE)

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
            self.by_hand = self.by_hand or key == m.MEMORY
            self.world.annotate(node, {key: "{" if number % 2 and number % 5 < 4 else None})

    def forge(self, number: int) -> None:
        """Whoever owns a node writes a record of an operation that nobody began, with all the time that there is."""
        node = self._node(number)
        if node and not m.annotations_of(self.world.node(node)).get(m.OP):
            policy = self.world.server.find(POLICIES, POOL)
            until = (self.world.server.now + timedelta(days=3650)).isoformat()
            phase = ("Held", "Evicting", "Acting", "Verifying")[number % 4]
            uid = policy["metadata"]["uid"] if policy else ""
            times = dict.fromkeys(("since", "started", "deadline"), until)
            text = {"v": 1, "id": m.FORGED, "acts": ["driver"], "phase": phase, "policy": uid, **times}
            self.world.annotate(node, {m.OP: json.dumps(text)})

    def opt_out(self, number: int) -> None:
        """A component is not to run on a node."""
        if node := self._node(number):
            part = PARTS[1:][number % 3]
            self.world.annotate(node, {"gpustack.dev/optout": part if number % 2 else None})

    def deny(self, number: int) -> None:
        """The API server refuses each change of a node to the program, in one of its ways, or no longer does."""
        if (node := self._node(number)) and self.watcher.denied.pop(node, None) is None:
            self.watcher.denied[node] = DENIALS[number // 4 % len(DENIALS)]

    def unlist(self, number: int) -> None:
        """The pods of a node can't be listed, or can again."""
        if (node := self._node(number)) and self.watcher.unlisted.pop(node, None) is None:
            self.watcher.unlisted[node] = ApiError("internal error", 500)

    # --- the cluster --------------------------------------------------------------------------------------------------

    def works(self, number: int) -> None:
        """A node's kubelet falls silent, or is back."""
        if node := self._node(number):
            self.world.set_works(node, not self.world.works(node))

    def reboot(self, number: int) -> None:
        """A machine restarts."""
        if node := self._node(number):
            reboot(self.world, self.world.machines[node])

    def ill(self, number: int) -> None:
        """Somebody says of a node, or of all, that its GPU is at fault, that nobody knows, or that it is well."""
        kind = HEALTH["rules"][number % 4]["type"]  # type: ignore[index]
        status = SAID[number // 4 % 4] if number % 5 else "True"
        more = {"lastHeartbeatTime": "2020-01-01T00:00:00Z"} if status == "stale" else {}
        for node in list(self.world.machines) if number % 5 == 4 else [self._node(number)]:
            if node:
                self.world.tell(node, kind, status.replace("stale", "True"), reason="Xid", **more)

    def asked(self, number: int) -> None:
        """Whoever can does what nodes ask for: resets or reboots them; the fault has gone, or comes again."""
        for node, machine in self.world.machines.items():
            if m.REQUESTED in self.world.annotations(node):
                if number % 2:
                    reboot(self.world, machine)
                self.world.annotate(node, {m.REQUESTED: None})
                if number % 3:
                    self.well(node)

    def well(self, node: str) -> None:
        """Nobody says anything bad of a node any more."""
        for rule in HEALTH["rules"]:  # type: ignore[attr-defined]
            self.world.tell(node, rule["type"], "False")

    def reporting(self, number: int) -> None:
        """Faults are only reported from now on, or acted on."""
        self.want.report = number % 2 == 0
        self.sync(0)

    def nfd(self, number: int) -> None:
        """NFD loses the GPU of a node or of all, or finds it."""
        for node in list(self.world.machines) if number % 2 else [self._node(number)]:
            if node:
                self.world.label(node, {m.PCI: None if m.PCI in self.world.labels(node) else "true"})

    def replace(self, number: int) -> None:
        """A node is deleted, and may come again under its name; or another one joins."""
        node = self._node(number)
        if number % 3 == 0 and len(self.world.machines) < 5:
            self._add(f"m{self.world.server.version}", "a")
        elif node:
            self.world.remove_node(node, lingering=number >= 6)
            if number % 3 == 1:
                self._add(node, "b")

    def _add(self, name: str, zone: str) -> None:
        self.world.add_node(name, POOL, zone)
        if self.want.startup:
            self.world.server.edit(NODES, name, {"spec": {"taints": [STARTUP]}})

    def foreign(self, number: int) -> None:
        """Somebody writes a deploy label."""
        if node := self._node(number):
            value = FOREIGN[number % len(FOREIGN)]
            self.world.label(node, {f"{m.DEPLOY}{PARTS[number % 4]}": value})

    def taint(self, number: int) -> None:
        """Somebody taints a node, or removes all taints."""
        if node := self._node(number):
            taints = [{"key": "example.com/repair", "effect": "NoSchedule"}]
            there = (self.world.node(node).get("spec") or {}).get("taints") or []
            others = [each for each in there if each["key"] == STARTUP["key"]]
            made = others if len(there) > len(others) else [*others, *taints]
            self.world.server.edit(NODES, node, {"spec": {"taints": made or None}})

    def fault(self, number: int) -> None:
        """Something no longer works on a machine or on all, or works again."""
        if number >= 9:
            for machine in self.world.machines.values():
                machine.faults ^= {FAULTS[number % len(FAULTS)]}
        elif node := self._node(number):
            self.world.machines[node].faults ^= {FAULTS[number % len(FAULTS)]}

    def workload(self, number: int) -> None:
        """The workload grows, shrinks, ends slowly, gets a strict budget or none."""
        budget, slow = (1, 0, None)[number % 3], (5.0, 40.0, 400.0)[number // 3 % 3]
        client = {"nvidia.com/gpu.deploy.client": "true"} if number % 4 == 3 else {}  # as if others took its pods away
        made = Workload("train", number % 6, max_unavailable=budget, ends_after=slow, selector=client)
        add_workload(self.world, made)

    def bind(self, number: int) -> None:
        """A pod lands on a node, cordoned or not."""
        if (node := self._node(number)) and self.world.machines[node].loaded:
            start(self.world, self.world.workloads["train"], node)

    def operator(self, number: int) -> None:
        """The operator left a node in the middle of its upgrade."""
        node = self._node(number)
        if node and m.CORDONED not in self.world.annotations(node) and not m.operation(self.world.node(node)):
            states = ("pod-deletion-required", "pod-restart-required", "validation-required", "upgrade-done")
            self.world.cordon(node, number % 4 != 3)
            self.watcher.owners[node] = "operator"
            if number >= 8:  # the user had cordoned it before
                self.world.annotate(node, {"nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable": "true"})
                self.watcher.owners[node] = "others"
            self.world.label(node, {m.UPSTREAM: states[number % 4]})
