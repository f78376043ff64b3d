"""A cluster around the server in memory: nodes, DaemonSets, kubelets, the stack's programs, workloads.

Moved on by `tick`, in which each of them looks once at what is there, in a fixed order, so that a history is the same
whenever it is run. Two clocks: `elapsed` is the time that has really passed, the server's is what the API says and may
jump.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpustack.api import keys
from gpustack.reconciler.memory.server import Document
from gpustack.reconciler.shell.cluster import CONFIG_MAPS, DAEMONSETS, NODES, PODS, POLICIES, REVISIONS, Selection
from tests.reconciler.memory.eviction import settle_budgets
from tests.reconciler.memory.server import Server
from tests.reconciler.world.machine import Machine, offer, run_driver, run_operand, run_puller, status_of
from tests.reconciler.world.stack import (
    DRIVER,
    LAYOUTS,
    MIG_MANAGER,
    NAMESPACE,
    OPERANDS,
    POOL,
    PULLER,
    STARTUP,
    driver_set,
    layouts_map,
    node_policy,
    operand_sets,
    puller_set,
)
from tests.reconciler.world.workloads import Workload, run_workloads

LINGER = 40.0
"""Seconds until nothing is left of the pods of a machine that went: its kubelet can't end them."""
ZONE = "topology.kubernetes.io/zone"


@dataclass
class World:
    """The cluster. What happens in it is up to `tick` and to whoever calls the other methods."""

    server: Server = field(default_factory=Server)
    machines: dict[str, Machine] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    content: str = "1"
    """The digest of the MIG manager's configuration."""
    refresh: float = 0.0
    """Seconds after which a kubelet brings a mounted ConfigMap up to date."""
    uncommanded: list[str] = field(default_factory=list)
    """GPUs that were cut anew though nobody had changed the label of their node."""
    elapsed: float = 0.0
    operands: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name of the pod of a DaemonSet on a node."""
    _ends: dict[str, float] = field(default_factory=dict)
    """When a pod that was told to end has ended, by UID."""
    _lingering: dict[str, float] = field(default_factory=dict)
    """Until when a pod is still there whose machine went, by UID."""
    _made: int = 0

    # --- what there is ------------------------------------------------------------------------------------------------

    def add_node(self, name: str, pool: str = "gpus", zone: str = "a", *, capable: bool = True) -> Machine:
        """A bare node with GPUs, as a cluster autoscaler adds it: nothing but NFD has seen it."""
        self._made += 1
        machine = Machine(name, f"machine-{self._made}", capable)
        self.machines[name] = machine
        self.server.put(
            NODES,
            {
                "metadata": {"name": name, "labels": {POOL: pool, ZONE: zone, keys.GPU_FEATURES[0]: "true"}},
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"machineID": machine.id, "bootID": machine.id},
                    "allocatable": {"cpu": "64"},
                },
            },
        )
        return machine

    def remove_node(self, name: str, *, lingering: bool = False) -> None:
        """The machine goes, and all pods with it; those of workloads perhaps only while time goes on (`LINGER`)."""
        self.server.remove(NODES, name)
        for pod in self.pods(name):
            if lingering and pod["metadata"].get("namespace") != NAMESPACE:
                self._lingering[pod["metadata"]["uid"]] = self.elapsed + LINGER
            else:
                self._gone(pod)
        self.machines.pop(name, None)

    def install_stack(self, version: str = "1") -> None:
        """The DaemonSets, as they are synced into a cluster."""
        self.set_driver(version)
        for document in operand_sets():
            self.server.put(DAEMONSETS, document)

    def set_driver(self, version: str, digest: str = "") -> None:
        """Another driver is synced; the NodePolicies that go with it are another matter."""
        old = self.server.find(DAEMONSETS, DRIVER, NAMESPACE)
        made = driver_set(version, digest)
        self.server.put(DAEMONSETS, {**made, "status": old.get("status", {})} if old else made)

    def pull(self, version: str) -> None:
        """What pulls the images of a driver beforehand is synced; "" for nothing any more."""
        old = self.server.find(DAEMONSETS, PULLER, NAMESPACE)
        if version:
            made = puller_set(version)
            self.server.put(DAEMONSETS, {**made, "status": old.get("status", {})} if old else made)
        elif old:
            self.server.remove(DAEMONSETS, PULLER, NAMESPACE)
            for name in self.machines:
                self.delete_operand(PULLER, name)

    def set_policy(self, name: str = "gpus", **options: Any) -> None:
        """A NodePolicy is synced: `node_policy` says what the OPTIONS are."""
        made = node_policy(name, **options)
        old = self.server.find(POLICIES, name)
        self.server.put(POLICIES, {**made, "status": old.get("status", {})} if old else made)

    def roll(self, version: str, digest: str = "", **options: Any) -> None:
        """Driver and policy at once."""
        self.set_driver(version, digest)
        self.set_policy(version=version, digest=digest, **options)

    def keep_layouts(self) -> None:
        """The ConfigMap of layouts is synced, whose file the program writes: over what is there, as an apply does."""
        self.refresh = 75.0
        old = self.server.find(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE)
        made = layouts_map(self.content)
        data = {**(old["data"] if old else {}), **made["data"]}
        self.server.put(CONFIG_MAPS, {**made, "data": data})
        volume = {"name": "mig-parted-config", "configMap": {"name": keys.LAYOUTS}}
        template = {"template": {"spec": {"volumes": [volume]}}}
        self.server.edit(DAEMONSETS, MIG_MANAGER, {"spec": template}, NAMESPACE)

    def layouts(self) -> dict[str, str]:
        """The contents that a MIG manager reads which starts now, by name; empty where there is no file yet."""
        config_map = self.server.find(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE)
        if config_map is None:
            return dict.fromkeys(LAYOUTS, self.content)
        file = json.loads(config_map["data"].get(keys.LAYOUTS_FILE) or '{"mig-configs": {}}')
        return {name: entry[0]["devices"] for name, entry in file["mig-configs"].items()}

    # --- questions ----------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Document:
        """A node."""
        return self.server.get(NODES, name)

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node."""
        return self.node(name)["metadata"].get("labels") or {}

    def annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a node."""
        return self.node(name)["metadata"].get("annotations") or {}

    def cordoned(self, name: str) -> bool:
        """Whether a node is unschedulable."""
        return bool((self.node(name).get("spec") or {}).get("unschedulable"))

    def works(self, name: str) -> bool:
        """Whether a node is Ready."""
        conditions = (self.node(name).get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def pods(self, node: str) -> list[Document]:
        """All pods of a node."""
        return list(self.server.all(PODS, Selection(fields=f"spec.nodeName={node}")))

    def gpu_pods(self, node: str) -> Iterator[Document]:
        """The pods of workloads that use a GPU of a node, those included that were told to end."""
        for pod in self.pods(node):
            if pod["metadata"].get("labels", {}).get("uses-gpu") == "true" and pod["status"]["phase"] == "Running":
                yield pod

    def operand(self, name: str, node: str) -> Document | None:
        """The pod of a DaemonSet on a node."""
        pod = self.operands.get((name, node))
        return self.server.find(PODS, pod, NAMESPACE) if pod else None

    def is_ready(self, pod: Document) -> bool:
        """Whether a pod works and was not told to end."""
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        return "deletionTimestamp" not in pod["metadata"] and any(each["ready"] for each in statuses)

    # --- what simulated programs do -----------------------------------------------------------------------------------

    def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        """Merge labels into a node."""
        now = self.labels(node)
        if any(now.get(key) != value for key, value in labels.items()):
            self.server.edit(NODES, node, {"metadata": {"labels": dict(labels)}})

    def annotate(self, node: str, annotations: Mapping[str, str | None]) -> None:
        """Merge annotations into a node."""
        self.server.edit(NODES, node, {"metadata": {"annotations": dict(annotations)}})

    def cordon(self, node: str, on: bool = True) -> None:
        """What `kubectl cordon` and `kubectl uncordon` do."""
        self.server.edit(NODES, node, {"spec": {"unschedulable": on or None}})

    def set_works(self, node: str, works: bool) -> None:
        """The kubelet says Ready, or is silent."""
        self.tell(node, "Ready", "True" if works else "Unknown")

    def tell(self, node: str, kind: str, status: str, **more: str) -> None:
        """Somebody says in a condition of the node how it is; a heartbeat that isn't named is never too old."""
        there = (self.node(node).get("status") or {}).get("conditions") or []
        made = {"type": kind, "status": status, "lastHeartbeatTime": "2099-01-01T00:00:00Z", **more}
        conditions = [*(each for each in there if each["type"] != kind), made]
        self.server.edit(NODES, node, {"status": {"conditions": conditions}})

    def set_status(self, pod: Document, *, init: str = "", main: str = "", ready: bool = False) -> None:
        """What a kubelet says of a pod of the stack."""
        name = pod["spec"]["containers"][0]["name"]
        fails = sum(each["restartCount"] for each in pod["status"]["containerStatuses"])
        status = status_of(name, init=init, main=main, ready=ready, now=self.server.now)
        status["containerStatuses"][0]["restartCount"] = fails + (init + main).startswith("Crash")
        self.server.edit(PODS, pod["metadata"]["name"], {"status": status}, NAMESPACE)

    def delete_operand(self, name: str, node: str) -> None:
        """Delete the pod of a DaemonSet on a node."""
        if (pod := self.operand(name, node)) is not None:
            self.server.delete(PODS, pod)

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, seconds: float = 5.0) -> datetime:
        """Let time pass, and everybody look once."""
        self.elapsed += seconds
        self.server.tick(seconds)
        self._revisions()
        self._remnants()
        for name in list(self.machines):
            self._kubelet(name)
            self._daemons(name)
        for name, machine in self.machines.items():
            if self.works(name):
                self._operands(machine)
        run_workloads(self)
        settle_budgets(self.server)
        return self.server.now

    def _kubelet(self, node: str) -> None:
        """End the pods that were told to end and whose time has come."""
        if not self.works(node):
            return
        for pod in self.pods(node):
            if "deletionTimestamp" in pod["metadata"]:
                labels = pod["metadata"].get("labels") or {}
                ends = self._ends.setdefault(pod["metadata"]["uid"], self.elapsed + float(labels.get("ends-after", 0)))
                if self.elapsed >= ends:
                    self._gone(pod)

    def _remnants(self) -> None:
        """Pods whose machine went go too, also where another one has its name by now."""
        for uid in [uid for uid, until in self._lingering.items() if self.elapsed >= until]:
            del self._lingering[uid]
            if pod := next((each for each in self.server.all(PODS) if each["metadata"]["uid"] == uid), None):
                self._gone(pod)

    def _gone(self, pod: Document) -> None:
        self._ends.pop(pod["metadata"]["uid"], None)
        self.server.remove(PODS, pod["metadata"]["name"], pod["metadata"].get("namespace", ""))

    def _revisions(self) -> None:
        """The DaemonSet controller remembers templates. One that comes again has its old hash and a new number."""
        for each in list(self.server.all(DAEMONSETS, Selection(NAMESPACE))):
            generation = each["metadata"]["generation"]
            if (each.get("status") or {}).get("observedGeneration") == generation:
                continue
            owner = {"kind": "DaemonSet", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
            owned = [
                revision
                for revision in self.server.all(REVISIONS)
                if any(of["uid"] == owner["uid"] for of in revision["metadata"]["ownerReferences"])
            ]
            mark = template_hash(each)
            newest = max((revision["revision"] for revision in owned), default=0)
            labels = {**each["spec"]["template"]["metadata"]["labels"], keys.HASH: mark}
            metadata = {
                "name": f"{owner['name']}-{mark}",
                "namespace": NAMESPACE,
                "labels": labels,
                "ownerReferences": [{**owner, "controller": True}],
            }
            self.server.put(REVISIONS, {"metadata": metadata, "revision": newest + 1})
            self.server.edit(DAEMONSETS, owner["name"], {"status": {"observedGeneration": generation}}, NAMESPACE)

    def _daemons(self, node: str) -> None:
        """The DaemonSet controller: one pod where a DaemonSet belongs, none elsewhere."""
        labels, taints = self.labels(node), (self.node(node).get("spec") or {}).get("taints") or ()
        bars = any(
            taint["effect"] == "NoSchedule" and taint["key"] not in {"nvidia.com/gpu", STARTUP["key"]}
            for taint in taints
        )
        for each in self.server.all(DAEMONSETS, Selection(NAMESPACE)):
            name, spec = each["metadata"]["name"], each["spec"]["template"]["spec"]
            wanted = all(labels.get(key) == value for key, value in spec["nodeSelector"].items())
            pod = self.operand(name, node)
            rolls = each["spec"]["updateStrategy"]["type"] == "RollingUpdate" and each.get("status")
            old = rolls and pod is not None and pod["metadata"]["labels"][keys.HASH] != template_hash(each)
            if pod is not None and (old or not wanted):
                self.server.delete(PODS, pod)
            elif pod is None and wanted and not bars and each.get("status"):
                self._start(each, node)

    def _start(self, daemons: Document, node: str) -> None:
        self._made += 1
        name, template = daemons["metadata"]["name"], daemons["spec"]["template"]
        owner = {"kind": "DaemonSet", "name": name, "uid": daemons["metadata"]["uid"], "controller": True}
        pod = f"{name}-{self._made:05d}"
        self.operands[name, node] = pod
        container = template["spec"]["containers"][0]["name"]
        self.server.put(
            PODS,
            {
                "metadata": {
                    "name": pod,
                    "namespace": NAMESPACE,
                    "labels": {**template["metadata"]["labels"], keys.HASH: template_hash(daemons)},
                    "ownerReferences": [owner],
                },
                "spec": {
                    "nodeName": node,
                    "containers": template["spec"]["containers"],
                    "volumes": template["spec"].get("volumes", []),
                },
                "status": status_of(container, init="running", main="", ready=False, now=self.server.now),
            },
        )

    def _operands(self, machine: Machine) -> None:
        """The programs of the stack on one machine."""
        driver = self.operand(DRIVER, machine.name)
        if driver is not None and "deletionTimestamp" not in driver["metadata"] and not self.is_ready(driver):
            run_driver(self, machine, driver)
        puller = self.operand(PULLER, machine.name)
        if puller is not None and "deletionTimestamp" not in puller["metadata"]:
            run_puller(self, machine, puller)
        for name in OPERANDS:
            pod = self.operand(name, machine.name)
            if pod is not None and "deletionTimestamp" not in pod["metadata"]:
                run_operand(self, machine, pod)
            if name == "gpu-feature-discovery":
                offer(self, machine)


def template_hash(daemons: Document) -> str:
    """The hash of a DaemonSet's template."""
    text = json.dumps(daemons["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
