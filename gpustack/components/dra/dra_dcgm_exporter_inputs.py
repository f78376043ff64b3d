"""Inputs of the DCGM exporter of a `gpuCluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..monitoring import dcgm_exporter_inputs as dcgm_exporter
from .dra_inputs import as_policy, common_of

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec


class DraDcgmExporterInputs(dcgm_exporter.DcgmExporterInputs):
    """As without DRA: the claim that stands for the RuntimeClass is always the same."""


def from_spec(spec: ClusterPolicySpec) -> DraDcgmExporterInputs | None:
    """None without a `gpuCluster`, and where its exporter is off."""
    cluster = spec.gpuCluster
    found = dcgm_exporter.from_spec(as_policy(spec)) if cluster is not None else None
    if cluster is None or found is None:
        return None
    return DraDcgmExporterInputs(**{**dict(found), "common": common_of(spec, cluster), "rules": False})
