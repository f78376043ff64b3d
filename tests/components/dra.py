"""What the DRA components render of a policy, and finding one's way in it."""

from __future__ import annotations

from typing import Any

from gpustack.components import dra_dcgm, dra_dcgm_exporter, dra_driver, dra_validator
from gpustack.components.inputs import dra_dcgm as dcgm_inputs
from gpustack.components.inputs import dra_dcgm_exporter as exporter_inputs
from gpustack.components.inputs import dra_driver as driver_inputs
from gpustack.components.inputs import dra_validator as validator_inputs
from gpustack.components.inputs.common import Inputs
from gpustack.model import Body
from gpustack.policy.defaults import assemble
from gpustack.policy.layers import Part
from gpustack.policy.spec import ClusterPolicySpec
from tests.components.common import render

COMPONENTS: tuple[tuple[Any, Any], ...] = (
    (dra_driver.DraDriver, driver_inputs),
    (dra_dcgm.DraDcgm, dcgm_inputs),
    (dra_dcgm_exporter.DraDcgmExporter, exporter_inputs),
    (dra_validator.DraValidator, validator_inputs),
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
    return [(construct, found) for construct, module in COMPONENTS if (found := module.from_spec(spec)) is not None]


def rendered(**sections: Any) -> dict[str, Body]:
    """The bodies of all DRA components, by "Kind/name"."""
    bodies: dict[str, Body] = {}
    for construct, found in inputs(**sections):
        bodies |= render(construct, found)
    return bodies
