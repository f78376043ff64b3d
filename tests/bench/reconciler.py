"""The reconciler's core with 5,000 nodes: a pass in which nothing is due, one in which all are, one with 300 of them
under way, and what it holds.

Run in a process of its own (`python -m tests.bench.reconciler`), so that its memory is that of nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpustack.api import keys
from gpustack.api.node_policy import NodePolicy
from gpustack.api.objects import Node
from gpustack.api.pods import DaemonSet, Pod
from gpustack.reconciler.core import engine, record
from gpustack.reconciler.core.actions import PatchNode, PatchStatus
from gpustack.reconciler.core.snapshot import DriverSet, Precheck, Snapshot
from tests.reconciler.world.stack import COMPONENTS, DRIVER, NAMESPACE, POOL, driver_set, node_policy
from tests.reconciler.world.world import template_hash

if TYPE_CHECKING:
    from tests.bench.scenarios import Bench, Figure

NODES, UNDER_WAY, PASS_SECONDS, MEMORY_MB = 5000, 300, 1.0, 150
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def figures(_: Bench) -> Iterator[Figure]:
    """Seconds of processor for a pass, writes when idle, and the peak memory of the process."""
    from tests.bench.scenarios import Figure

    command = [sys.executable, "-m", "tests.bench.reconciler"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for what in ("idle", "due", "under way"):
        seconds, writes, target = found[what]["seconds"], found[what]["writes"], PASS_SECONDS
        verdict = "ok" if seconds <= target and (what != "idle" or writes == 0) else "MISSED"
        yield Figure(
            f"a pass over {NODES:,} nodes, {what}: {seconds:.2f} s of processor, {writes} writes to nodes "
            f"(target {target:.0f} s, {verdict})",
            [],
        )
    verdict = "ok" if found["memory"] <= MEMORY_MB else "MISSED"
    yield Figure(f"resident with {NODES:,} nodes: {found['memory']:.0f} MB (target {MEMORY_MB} MB, {verdict})", [])


def node(number: int) -> bytes:
    """A node that is as wanted, about as large as a real one."""
    name = f"gpu-{number:04d}"
    features = {f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{each}": "true" for each in range(60)}
    deploy = {f"{keys.DEPLOY}{component}": "true" for component in COMPONENTS}
    mig = {keys.PRESENT: "true", keys.MIG_CONFIG: "all-disabled", keys.MIG_STATE: "success"}
    memory = {"policy": f"policy-{number % 10}", "name": f"pool-{number % 10}", "uid": name, "machine": name}
    last = {"id": "0123456789ab", "kind": "install", "target": "-", "outcome": "done", "at": "2026-01-01T00:00:00Z"}
    zone = {"topology.kubernetes.io/zone": "abc"[number % 3]}
    images = [{"names": [f"registry.example.com/some/image-{each}@sha256:{'0' * 64}"] * 3} for each in range(60)]
    made: dict[str, Any] = {
        "metadata": {
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "labels": {POOL: f"pool-{number % 10}", keys.GPU_FEATURES[0]: "true", **zone, **features, **deploy, **mig},
            "annotations": {
                keys.MEMORY: json.dumps(memory),
                keys.LAST: json.dumps(last),
                keys.UPGRADES_ENABLED: "true",
            },
            "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:{key}": {} for key in features}}] * 2,
        },
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"machineID": name},
            "allocatable": {"cpu": "64", "nvidia.com/gpu": "2"},
            "images": images,
        },
    }
    return json.dumps(made).encode()


def pod(app: str, number: int, mark: str) -> bytes:
    """A ready pod of an operand."""
    status = {"phase": "Running", "containerStatuses": [{"name": app, "ready": True, "state": {"running": {}}}]}
    labels = {"app": app, keys.HASH: mark}
    metadata = {"name": f"{app}-{number}", "namespace": NAMESPACE, "uid": f"{app}-{number}", "labels": labels}
    spec = {"nodeName": f"gpu-{number:04d}", "containers": [{"name": app}]}
    return json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()


def snapshot(version: str) -> Snapshot:
    """Ten pools; the driver of every node was made from version 1, and VERSION is rendered."""
    daemons = {**driver_set(version), "status": {"observedGeneration": 1}}
    apps = {"driver_pods": DRIVER, "validators": "nvidia-operator-validator", "mig_managers": "nvidia-mig-manager"}
    decode = msgspec.json.Decoder(Pod).decode
    pods: dict[str, Any] = {
        field: {
            f"gpu-{number:04d}": (decode(pod(app, number, template_hash(driver_set("1")))),) for number in range(NODES)
        }
        for field, app in apps.items()
    }
    policies = []
    for number in range(10):
        document = node_policy(f"pool-{number}", version=version)
        document["metadata"]["uid"] = f"policy-{number}"
        policies.append(msgspec.convert(document, NodePolicy))
    decode_node = msgspec.json.Decoder(Node).decode
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        nodes=[decode_node(node(number)) for number in range(NODES)],
        policies=policies,
        driver_sets=[DriverSet(msgspec.convert(daemons, DaemonSet), template_hash(daemons))],
        **pods,
    )


def begun(known: Snapshot, count: int) -> Snapshot:
    """KNOWN with COUNT nodes that are cordoned for the newest driver, and wait for pods to finish."""
    driver, nodes, ledger = known.driver_sets[0], list(known.nodes), dict[str, record.Entry]()
    for at, node in enumerate(nodes[:count]):
        operation = record.Operation(
            id=f"operation-{at}",
            acts=["driver"],
            phase="Held",
            target=record.Target(revision=driver.newest),
            policy=f"policy-{at % 10}",
            since=known.now,
            started=known.now,
            cordon=True,
            finish=record.Finish(daemonSet=driver.object.name),
        )
        ours = {keys.OPERATION: record.write(operation), keys.CORDONED: operation.id}
        metadata = msgspec.structs.replace(node.metadata, annotations={**node.annotations, **ours})
        spec = msgspec.structs.replace(node.spec, unschedulable=True)
        nodes[at] = msgspec.structs.replace(node, metadata=metadata, spec=spec)
        ledger[node.uid] = record.Entry(operation.id, int(known.now.timestamp()))
    return replace(known, nodes=nodes, ledger=ledger)


def measure(version: str, under_way: int = 0) -> dict[str, float]:
    """A pass, after one that wrote the statuses, with so many nodes UNDER_WAY."""
    known = begun(snapshot(version), under_way)
    before = engine.decide(known)
    known = replace(known, kept=before.kept)
    for action in before.actions:
        if isinstance(action, PatchStatus):
            action.policy.status = action.status
    began = time.process_time()
    wanted = engine.survey(known)
    free = dict.fromkeys(wanted.candidates, Precheck())
    known = replace(known, pods=dict.fromkeys(wanted.pods, ()), prechecks=free, kept=wanted.kept)
    decision = engine.decide(known)
    seconds = time.process_time() - began
    writes = sum(isinstance(action, PatchNode) for action in decision.actions)
    return {"seconds": seconds, "writes": writes, "actions": len(decision.actions)}


def peak_mb() -> float:
    """The most memory that this program held. getrusage would also count what its parent held before it was started."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    made = {"idle": measure("1"), "due": measure("2"), "under way": measure("2", UNDER_WAY)}
    print(json.dumps({**made, "memory": peak_mb()}))
