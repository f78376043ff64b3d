"""The rule about objects of the GPU operator that a policy brings along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster

GROUP = "nvidia.com"
SECTIONS = {
    "ClusterPolicy": "its sections stand in the policy under spec, by the same names",
    "NVIDIADriver": "what it says goes into an entry of spec.drivers",
    "GPUCluster": "what it says goes into spec.gpuCluster",
}
"""Kinds of the operator, and where a policy says what they say."""


@rule("GPU208", "error")
def object_of_the_operator(cluster: Cluster) -> Iterator[Hit]:
    """An object that only the GPU operator reads."""
    for index, body in enumerate(cluster.spec.extraObjects):
        kind, group = str(body["kind"]), str(body["apiVersion"]).rpartition("/")[0]
        if group == GROUP and kind in SECTIONS:
            yield hit(f"spec.extraObjects[{index}]", kind=kind, name=body["metadata"]["name"], instead=SECTIONS[kind])
