"""Inputs of the DCGM host engine of a `gpuCluster`."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..monitoring import dcgm_inputs as dcgm
from .dra_inputs import common_of


class DraDcgmInputs(dcgm.DcgmInputs):
    """As without DRA: the claim that stands for the RuntimeClass is always the same."""


def from_cluster(cluster: Cluster) -> DraDcgmInputs | None:
    """None without a `gpuCluster`, and where each of its exporters runs an engine of its own."""
    spec, section = cluster.spec, cluster.spec.gpuCluster
    without_dra = dcgm.from_cluster(cluster) if section is not None else None
    if section is None or without_dra is None:
        return None
    return DraDcgmInputs(**{**dict(without_dra), "common": common_of(spec, section)})
