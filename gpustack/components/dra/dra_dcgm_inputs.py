"""Inputs of the DCGM host engine of a `gpuCluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..monitoring import dcgm_inputs as dcgm
from .dra_inputs import as_policy, common_of

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec


class DraDcgmInputs(dcgm.DcgmInputs):
    """As without DRA: the claim that stands for the RuntimeClass is always the same."""


def from_spec(spec: ClusterPolicySpec) -> DraDcgmInputs | None:
    """None without a `gpuCluster`, and where each of its exporters runs an engine of its own."""
    cluster = spec.gpuCluster
    found = dcgm.from_spec(as_policy(spec)) if cluster is not None else None
    if cluster is None or found is None:
        return None
    return DraDcgmInputs(**{**dict(found), "common": common_of(spec, cluster)})
