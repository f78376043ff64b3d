"""A small cluster in memory, and what the shell's tests share."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpustack.reconciler.core.actions import PatchNode
from gpustack.reconciler.shell.clock import Clock
from gpustack.reconciler.shell.cluster import DAEMONSETS, NODES, PODS, REVISIONS
from gpustack.reconciler.shell.log import Log
from tests.reconciler.memory import FakeCluster, Request, Server

NAMESPACE = "gpu-operator"


@dataclass
class Steady:
    """A steady clock that tests move."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        """Now."""
        return self.seconds


@dataclass
class World:
    """An API server, a client of it, and clocks that go together."""

    server: Server = field(default_factory=Server)
    steady: Steady = field(default_factory=Steady)
    written: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.cluster = self.client("a")
        self.clock = self.clock_of()
        self.log = Log("debug", self.written)

    def client(self, actor: str) -> FakeCluster:
        """Another client."""
        return FakeCluster(self.server, actor)

    def clock_of(self) -> Clock:
        """Another process' idea of the time."""
        made = Clock(self.steady)
        made.observe(self.server.now)
        return made

    def tick(self, seconds: float) -> None:
        """Let time pass everywhere."""
        self.steady.seconds += seconds
        self.server.tick(seconds)

    def logged(self) -> list[dict[str, Any]]:
        """The log so far."""
        return [msgspec.json.decode(line) for line in self.written.getvalue().splitlines()]

    def node(self, name: str, **metadata: Any) -> dict[str, Any]:
        """Put a node there."""
        conditions = [{"type": "Ready", "status": "True"}]
        return self.server.put(
            NODES, {"metadata": {"name": name, **metadata}, "spec": {}, "status": {"conditions": conditions}}
        )

    def pod(self, name: str, node: str, namespace: str = "work", **more: Any) -> dict[str, Any]:
        """Put a running pod there that uses a GPU and has a controller."""
        owner = {"kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return self.server.put(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "ownerReferences": [owner],
                    "labels": more.pop("labels", {}),
                },
                "spec": {"nodeName": node, "containers": [{"name": "c", "resources": limits}], **more},
                "status": status,
            },
        )

    def driver_set(self, name: str, *, generation: int = 1, observed: int = 1) -> dict[str, Any]:
        """Put a driver DaemonSet there."""
        labels = {"app.kubernetes.io/component": "nvidia-driver"}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
        made = self.server.put(DAEMONSETS, {"metadata": metadata, "spec": {"template": {}}})
        return self.server.edit(
            DAEMONSETS,
            name,
            {"metadata": {"generation": generation}, "status": {"observedGeneration": observed}},
            made["metadata"]["namespace"],
        )

    def revision(self, name: str, owner: str, number: int, **labels: str) -> None:
        """Put a ControllerRevision there."""
        owners = [{"kind": "DaemonSet", "name": "x", "uid": owner, "controller": True}]
        found = {"app.kubernetes.io/component": "nvidia-driver", **labels}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": found, "ownerReferences": owners}
        self.server.put(REVISIONS, {"metadata": metadata, "revision": number})


def fail(error: Exception, when: str, test: Callable[[Request], bool]) -> Callable[[Request, str], None]:
    """A fault: ERROR, before or after, for the requests that TEST names."""

    def fault(request: Request, at: str) -> None:
        if at == when and test(request):
            raise error

    return fault


def label(world: World, node: str, admits: str = "", **labels: str | None) -> PatchNode:
    """An action that labels a node as it is now."""
    found = world.server.read(NODES, node)
    return PatchNode(node, found.uid, found.metadata.resourceVersion, "a reason", labels=labels, admits=admits)
