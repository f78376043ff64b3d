"""The objects by which nodes are made and let in.

Solves: Karpenter takes what an instance type has for what a node offers, and for shared or cut GPUs would start a node
for each pod, or none. A NodeOverlay says what the device plugin makes of them. A MachineConfig is rendered, so that who
reviews sees what is written onto hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ...model import Body, Stage
from ..component import Component
from .nodes_inputs import NodesInputs


class Nodes(Component[NodesInputs]):
    """After what nodes need: a node that comes up finds it there, and nothing waits for programs of others."""

    stage: ClassVar[Stage] = "operands"

    def manifests(self, inputs: NodesInputs) -> Iterator[Body]:
        yield from map(dict, inputs.bodies)
