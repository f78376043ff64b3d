"""Inputs of the DCGM exporter of a `gpuCluster`."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..monitoring import dcgm_exporter_inputs as dcgm_exporter
from .dra_inputs import common_of


class DraDcgmExporterInputs(dcgm_exporter.DcgmExporterInputs):
    """As without DRA: the claim that stands for the RuntimeClass is always the same."""


def from_cluster(cluster: Cluster) -> DraDcgmExporterInputs | None:
    """None without a `gpuCluster`, and where its exporter is off."""
    spec, section = cluster.spec, cluster.spec.gpuCluster
    without_dra = dcgm_exporter.from_cluster(cluster) if section is not None else None
    if section is None or without_dra is None:
        return None
    return DraDcgmExporterInputs(**{**dict(without_dra), "common": common_of(spec, section), "rules": False})
