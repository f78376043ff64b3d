"""What the DRA components render of a policy, and finding one's way in it."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components.dra import dra_dcgm, dra_dcgm_exporter, dra_driver, dra_inputs, dra_validator
from gpustack.components.dra import dra_driver_inputs as driver_inputs
from gpustack.components.parts.common_inputs import Inputs
from gpustack.model import Body
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
from tests.components.common import render

COMPONENTS: tuple[tuple[Any, Any], ...] = (
    (dra_driver.DraDriver, driver_inputs.from_cluster),
    (dra_dcgm.DraDcgm, dra_inputs.dra_dcgm),
    (dra_dcgm_exporter.DraDcgmExporter, dra_inputs.dra_dcgm_exporter),
    (dra_validator.DraValidator, dra_inputs.dra_validator),
)


def policy(**sections: Any) -> ClusterPolicySpec:
    """The effective spec of a policy that says SECTIONS, on Kubernetes 1.34.2, with drivers."""
    cluster = {"kubernetesVersion": "1.34.2", "monitoring": True, **sections.pop("cluster", {})}
    written = {"release": "v26.7.0", "drivers": [{"name": "default", "default": True}], "cluster": cluster, **sections}
    merged, findings = assemble([Part("policy", "test", written)])
    assert findings == []
    return ClusterPolicySpec.model_validate(merged.spec)


def inputs(**sections: Any) -> list[tuple[Any, Inputs]]:
    """The DRA components that the policy turns on, each with its inputs."""
    spec = policy(**sections)
    return [(construct, found) for construct, made in COMPONENTS if (found := made(resolve(spec))) is not None]


def rendered(**sections: Any) -> dict[str, Body]:
    """The bodies of all DRA components, by "Kind/name"."""
    bodies: dict[str, Body] = {}
    for construct, found in inputs(**sections):
        bodies |= render(construct, found)
    return bodies
