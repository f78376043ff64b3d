"""What is done to the program again and again: refusals of single requests, hands that undo what it did before each
pass, a kubelet that rewrites the record of its node, a Lease that somebody empties."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from gpustack.reconciler.shell.cluster import DAEMONSETS, LEASES, ApiError, Forbidden, TooMany, Unreachable
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.world.stack import DRIVER, NAMESPACE, daemon_set
from tests.reconciler.world.workloads import Workload, start

from . import moment as m
from .upheavals import Upheavals

ANSWERS: tuple[ApiError, ...] = (
    Forbidden('admission webhook "x" denied the request: pinned', 403),
    TooMany("Cannot evict", 0.0, ("The disruption budget train needs 1 healthy pods and has 1 currently",)),
    TooMany("too many requests", 1.0),
    Unreachable("no answer within 30 s"),
)
MARKS = {"weave.works/kured-reboot-in-progress": "now"}
UNDONE = ("cordon", "label", "pod")
EDITS: tuple[dict[str, Any], ...] = (
    {"deadline": "2099-01-01T00:00:00Z"},
    {"deadline": None, "recordons": 0},
    {"finish": {"wait": {"podSelector": "app=train", "timeoutSeconds": 10**9}}},
    {"finish": {"driverSeconds": 10**9, "verifySeconds": 10**9, "maxAttempts": 900}},
    {"notBefore": "2020-01-01T00:00:00Z"},
)


@dataclass
class Vexed:
    """What is undone before each pass, by node."""

    nodes: dict[str, str] = field(default_factory=dict)


class Vexations(Upheavals):
    """Steps; each takes a small number that says which node, which value."""

    vexed: Vexed

    def spare(self, number: int) -> None:
        """The API server lets nobody evict the pods that use a node's GPUs, or delete its driver pod; or again."""
        if self.watcher.spared:
            self.watcher.spared.clear()
        elif node := self._node(number):
            answer = ANSWERS[number // 4 % len(ANSWERS)]
            pods = [("create", str(pod["metadata"]["name"])) for pod in self.world.gpu_pods(node)]
            driver = self.world.operand(DRIVER, node)
            if number % 4 == 3 and driver:
                pods = [("delete", str(driver["metadata"]["name"]))]
            self.watcher.spared = dict.fromkeys(pods, answer)

    def ledger(self, number: int) -> None:
        """Somebody empties or garbles the ledger, or deletes the Lease."""
        if self.world.server.find(LEASES, NAME, NAMESPACE) is None:
            return
        if number % 3 == 2:
            self.world.server.remove(LEASES, NAME, NAMESPACE)
        else:
            body = {"metadata": {"annotations": {"gpustack.dev/open": (None, "{oops")[number % 3]}}}
            self.world.server.edit(LEASES, NAME, body, NAMESPACE)

    def undo(self, number: int) -> None:
        """Before each pass a node is uncordoned, loses a label or gets a pod that tolerates its cordon; or no more."""
        if (node := self._node(number)) and self.vexed.nodes.pop(node, None) is None:
            self.vexed.nodes[node] = UNDONE[number // 4 % len(UNDONE)]

    def vex(self) -> None:
        """Do what is done before a pass."""
        for node, what in self.vexed.nodes.items():
            if node not in self.world.machines or m.operation(self.world.node(node)).get("phase", "") == "":
                continue
            if what == "cordon" and self.world.cordoned(node) and self.watcher.owners.get(node) == "us":
                self.world.cordon(node, on=False)
            elif what == "label":
                self.world.label(node, {f"{m.DEPLOY}operator-validator": None})
            elif what == "pod" and self.world.machines[node].loaded and not list(self.world.gpu_pods(node)):
                start(self.world, Workload("tolerant", 1, ends_after=1), node)

    def marks(self, number: int) -> None:
        """kured says that it reboots a node, or has done so."""
        if node := self._node(number):
            there = self.world.annotations(node).keys() & MARKS.keys()
            self.world.annotate(node, dict.fromkeys(MARKS, None) if there else dict(MARKS))

    def maintain(self, number: int) -> None:
        """Another one takes the Lease of a node where it is free, for an hour, or gives back its own."""
        if not (self.kept and (node := self._node(number))):
            return
        lease = self.world.server.find(LEASES, f"node-{node}", m.SHARED)
        spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600}
        spec["renewTime"] = self.world.server.now.isoformat()
        if lease is None:
            made = {"metadata": {"name": f"node-{node}", "namespace": m.SHARED}, "spec": spec}
            self.world.server.put(LEASES, made)
        elif m.holds(lease, self.world.server.now) == "node-maintenance":
            self.world.server.remove(LEASES, f"node-{node}", m.SHARED)
        elif not m.holds(lease, self.world.server.now):
            self.world.server.edit(LEASES, f"node-{node}", {"spec": spec}, m.SHARED)

    def lock(self, number: int) -> None:
        """kured takes its lock for a node, gives it back, or has left one that is over or that nobody can read."""
        if not (self.kept and (node := self._node(number))):
            return
        space, name = m.KURED
        if self.world.server.find(DAEMONSETS, name, space) is None:
            made = daemon_set(name, "kured", {"name": name})
            self.world.server.put(DAEMONSETS, {**made, "metadata": {"name": name, "namespace": space}})
        lock = {"nodeID": node, "metadata": {"unschedulable": False}, "created": "2020-01-01T00:00:00.5Z", "TTL": 0}
        several = {"maxOwners": 2, "locks": [lock, {**lock, "nodeID": "elsewhere"}]}
        held = (None, lock, {**lock, "TTL": 60 * 10**9}, several, {**several, "maxOwners": 3}, "?")[number // 2 % 6]
        text = json.dumps(held) if held else None
        self.world.server.edit(DAEMONSETS, name, {"metadata": {"annotations": {m.LOCK: text}}}, space)

    def edit(self, number: int) -> None:
        """Whoever owns a node gives its open operation other times, attempts and waits."""
        node = self._node(number)
        record = m.operation(self.world.node(node)) if node else {}
        if not node or not record or "unreadable" in record or record.get("id") == m.FORGED:
            return
        change = dict(EDITS[number % len(EDITS)])
        finish = {**record.get("finish", {}), **change.pop("finish", {})}
        made = {key: value for key, value in {**record, **change, "finish": finish}.items() if value is not None}
        self.world.annotate(node, {m.OP: json.dumps(made)})

    def calm(self) -> None:
        """None of it any more."""
        super().calm()
        self.watcher.spared.clear()
        self.vexed.nodes.clear()
        self.lock(0)
        for name in self.world.machines:
            self.world.annotate(name, dict.fromkeys(MARKS, None))
            lease = self.world.server.find(LEASES, f"node-{name}", m.SHARED)
            if lease and lease["spec"].get("holderIdentity") == "node-maintenance":
                self.world.server.remove(LEASES, f"node-{name}", m.SHARED)
