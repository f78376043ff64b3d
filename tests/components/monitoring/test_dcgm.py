"""The stand-alone DCGM host engine (operator.md 7.7, 9.1)."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components import Dcgm
from gpustack.components.monitoring.monitoring_inputs import dcgm
from gpustack.components.parts.common_inputs import OperandInputs
from gpustack.model import Body
from tests.components.common import common, container, env, grants, pod_of, render, spec


def rendered(changes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Body]:
    """All objects, with CHANGES to what all components share and FIELDS of the engine's inputs."""
    return render(Dcgm, OperandInputs(common=common(**(changes or {})), image="dcgm:1", **fields))


def test_service_leads_to_the_own_node() -> None:
    """An exporter that asks the Service for the engine gets the one of its own node, never another's."""
    service = rendered()["Service/nvidia-dcgm"]["spec"]
    assert service["internalTrafficPolicy"] == "Local"
    assert [(port["name"], port["port"]) for port in service["ports"]] == [("dcgm", 5555)]
    assert service["selector"] == {"app": "nvidia-dcgm"}


def test_command_line_is_the_images_own() -> None:
    """Without `dcgm.args` neither command nor arguments are set; with them, only the arguments are (case 18)."""
    plain = container(pod_of(rendered(), "nvidia-dcgm"), "nvidia-dcgm-ctr")
    assert "command" not in plain
    assert "args" not in plain
    own = container(
        pod_of(rendered(args=("-n", "-b", "ALL"), env=(("DCGM_X", "1"),)), "nvidia-dcgm"), "nvidia-dcgm-ctr"
    )
    assert (own["args"], env(own)) == (["-n", "-b", "ALL"], {"DCGM_X": "1"})


def test_probes() -> None:
    """Both probes ask the engine's port, from 15 s on."""
    found = container(pod_of(rendered(), "nvidia-dcgm"), "nvidia-dcgm-ctr")
    assert found["livenessProbe"] == found["readinessProbe"] == {"tcpSocket": {"port": 5555}, "initialDelaySeconds": 15}


def test_rights() -> None:
    """The engine needs no right but the SCC, so outside OpenShift it has a ServiceAccount and no Role (6)."""
    assert {key for key in rendered() if "Role" in key} == set()
    assert grants(rendered({"openshift": True})["Role/nvidia-dcgm"]) == {"securitycontextconstraints=privileged:use"}


def test_policy() -> None:
    """The chart's default is off; `hostPort` has no effect."""
    assert dcgm(resolve(spec())) is None
    assert dcgm(resolve(spec(dcgm={"enabled": True, "hostPort": 1}))) == dcgm(resolve(spec(dcgm={"enabled": True})))
