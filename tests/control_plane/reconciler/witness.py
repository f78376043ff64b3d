"""Sees each change of each node as the API server tells it, so that a test can say "at no time"."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from gpustack.api import keys
from tests.control_plane.api import Api, Body
from tests.control_plane.reflector import Reflector


@dataclass(frozen=True)
class Sight:
    """A node at one moment."""

    node: str
    phase: str
    cordoned: bool
    owned: bool
    """Whether the mark says that the cordon is ours."""
    recorded: bool
    labels: dict[str, str]
    annotations: dict[str, str]
    taints: frozenset[str]
    """Their keys."""
    offers: dict[str, str]
    """What the kubelet offers of NVIDIA's resources."""
    at: float
    """When it was seen, by the steady clock."""


class Witness:
    """All that was seen, in order."""

    def __init__(self, api: Api) -> None:
        self.sights: list[Sight] = []
        self._reflector = Reflector(api, "Node", self._see)

    def start(self) -> None:
        """Begin."""
        self._reflector.start()

    def stop(self) -> None:
        """End."""
        self._reflector.stop()

    def _see(self, kind: str, body: Body) -> None:
        meta = body["metadata"]
        labels, annotations = meta.get("labels", {}), meta.get("annotations", {})
        there = kind != "DELETED"
        self.sights.append(
            Sight(
                meta["name"],
                labels.get(keys.PHASE, "") if there else "",
                bool(body["spec"].get("unschedulable")) and there,
                keys.CORDONED in annotations and there,
                keys.OPERATION in annotations and there,
                labels,
                annotations,
                frozenset(one["key"] for one in body["spec"].get("taints", [])),
                offers(body),
                time.monotonic(),
            )
        )

    def phases(self, node: str) -> list[str]:
        """The phases that a node went through, each once a visit."""
        found: list[str] = []
        for sight in self.sights:
            if sight.node == node and (not found or found[-1] != sight.phase):
                found.append(sight.phase)
        return found

    def saw(self, phase: str) -> bool:
        """Whether any node has been in PHASE, however shortly."""
        return any(sight.phase == phase for sight in self.sights)

    def most_cordoned(self, *nodes: str) -> int:
        """The most nodes that were cordoned at one time, of all or of those named."""
        return self.most(lambda sight: sight.cordoned, *nodes)

    def most(self, holds: Callable[[Sight], bool], *nodes: str) -> int:
        """The most nodes of which something held at one time, of all or of those named."""
        found: set[str] = set()
        most = 0
        for sight in list(self.sights):
            if holds(sight) and (not nodes or sight.node in nodes):
                found.add(sight.node)
            else:
                found.discard(sight.node)
            most = max(most, len(found))
        return most

    def torn(self) -> list[Sight]:
        """Nodes that were seen with the mark of an owned cordon and no record (I4)."""
        return [one for one in self.sights if one.owned and not one.recorded]


def offers(node: Body) -> dict[str, str]:
    """The resources of NVIDIA's that a node has for pods; those of which there are 0 are as good as absent."""
    found: dict[str, str] = node.get("status", {}).get("allocatable", {})
    return {name: count for name, count in found.items() if name.startswith("nvidia.com/") and count != "0"}
