"""What people run on the nodes: replicated pods that use GPUs, and their disruption budgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpustack.reconciler.memory.eviction import BUDGETS
from gpustack.reconciler.memory.server import Document
from gpustack.reconciler.shell.cluster import PODS

if TYPE_CHECKING:
    from tests.reconciler.world.world import World

SPACE = "work"


@dataclass
class Workload:
    """Pods that a controller starts again, on nodes that take some."""

    name: str
    replicas: int
    gpu: bool = True
    ends_after: float = 0.0
    """Seconds from being told to end to the end."""
    grace: int | None = None
    """What its pods say that they may take to end."""
    max_unavailable: int | None = None
    """Of its PodDisruptionBudget; None: it has none."""
    owned: bool = True
    """Whether its pods have a controller, for all that anybody sees."""
    labels: dict[str, str] = field(default_factory=dict)
    selector: dict[str, str] = field(default_factory=dict)
    """The nodeSelector of its pods, for all that anybody sees: they start where there is room."""


def add_workload(world: World, workload: Workload) -> None:
    """Start WORKLOAD, or change it."""
    world.workloads[workload.name] = workload
    if world.server.find(BUDGETS, workload.name, SPACE):
        world.server.remove(BUDGETS, workload.name, SPACE)
    if workload.max_unavailable is not None:
        spec = {"selector": {"matchLabels": {"app": workload.name}}, "maxUnavailable": workload.max_unavailable}
        world.server.put(BUDGETS, {"metadata": {"name": workload.name, "namespace": SPACE}, "spec": spec})


def run_workloads(world: World) -> None:
    """Controllers and scheduler: pods that are missing start on the node with the most room."""
    present: dict[str, int] = {}
    used: dict[str, int] = {}
    for pod in world.server.all(PODS):
        if pod["metadata"]["namespace"] != SPACE:
            continue
        labels = pod["metadata"]["labels"]
        if "deletionTimestamp" not in pod["metadata"]:
            present[labels["app"]] = present.get(labels["app"], 0) + 1
        node = pod["spec"]["nodeName"]
        used[node] = used.get(node, 0) + (labels["uses-gpu"] == "true")
    for workload in world.workloads.values():
        for _ in range(workload.replicas - present.get(workload.name, 0)):
            rooms = [(_room(world, node, used), node) for node in world.machines]
            room, node = max(rooms, default=(0, ""))
            if room <= 0:
                return
            start(world, workload, node)
            used[node] = used.get(node, 0) + 1


def _room(world: World, node: str, used: dict[str, int]) -> int:
    if world.cordoned(node) or not world.works(node):
        return 0
    allocatable: dict[str, str] = world.node(node)["status"].get("allocatable") or {}
    total = sum(int(count) for name, count in allocatable.items() if name.startswith("nvidia.com/"))
    return total - used.get(node, 0)


def start(world: World, workload: Workload, node: str) -> Document:
    """A pod of WORKLOAD on NODE, which nobody asks."""
    world.server._uids += 1
    name = f"{workload.name}-{world.server._uids:05d}"
    allocatable: dict[str, str] = world.node(node)["status"].get("allocatable") or {}
    offered = sorted(key for key, count in allocatable.items() if key.startswith("nvidia.com/") and count != "0")
    container: Document = {"name": "main", "resources": {}}
    if workload.gpu:
        container["resources"] = {"limits": {offered[0] if offered else "nvidia.com/gpu": 1}}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": SPACE,
        "labels": {
            "app": workload.name,
            "uses-gpu": str(workload.gpu).lower(),
            "ends-after": str(workload.ends_after),
            **workload.labels,
        },
    }
    if workload.owned:
        metadata["ownerReferences"] = [
            {"kind": "ReplicaSet", "name": workload.name, "uid": workload.name, "controller": True}
        ]
    spec: Document = {"nodeName": node, "containers": [container], "nodeSelector": workload.selector}
    if workload.grace is not None:
        spec["terminationGracePeriodSeconds"] = workload.grace
    return world.server.put(
        PODS,
        {
            "metadata": metadata,
            "spec": spec,
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}],
            },
        },
    )
