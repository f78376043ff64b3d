"""The sandbox validator (operator.md 7.13)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import SandboxValidator
from gpustack.components.sandbox.sandbox_inputs import SandboxValidatorInputs, sandbox_validator
from gpustack.model import Body
from tests.components.common import container, env, mounts, pod_of, render, spec
from tests.components.sandbox.common import machines

NAME = "nvidia-sandbox-validator"
CHECKS = ["vfio-pci-validation", "vgpu-manager-validation", "vgpu-devices-validation"]


def inputs(**sections: Any) -> SandboxValidatorInputs:
    """The inputs for a policy with virtual machines and SECTIONS."""
    found = sandbox_validator(resolve(machines(**sections)))
    assert found is not None
    return found


def pod(**sections: Any) -> Body:
    """The validator's pod for a policy with SECTIONS."""
    return pod_of(render(SandboxValidator, inputs(**sections)), NAME)


def names(body: Body) -> list[str]:
    """The names of the checks of a pod."""
    return [each["name"] for each in body["initContainers"]]


@pytest.mark.parametrize("mode", ["kubevirt", "kata"])
def test_the_check_of_confidential_computing_follows_its_switch(mode: str) -> None:
    """ccManager.enabled alone decides, also where no cc-manager runs; the check comes first (1.3, 7.13)."""
    on = pod(sandboxWorkloads={"mode": mode}, ccManager={"enabled": True})
    assert names(on) == ["cc-manager-validation", *CHECKS]
    assert names(pod(sandboxWorkloads={"mode": mode}, ccManager={"enabled": False})) == CHECKS


def test_there_by_default_since_v26_3() -> None:
    """The chart's default of ccManager changed (operator-releases.md 6.13)."""
    assert inputs(release="v26.3.1").cc_manager
    assert not inputs(release="v25.10.1").cc_manager


def test_the_default_workload() -> None:
    """Three checks are told what an unlabelled node serves, and the policy's env of each follows (7.13)."""
    section = {"vfioPCI": {"env": [{"name": "DEFAULT_GPU_WORKLOAD_CONFIG", "value": "x"}, {"name": "A", "value": "1"}]}}
    body = pod(sandboxWorkloads={"defaultWorkload": "vm-vgpu"}, validator=section)
    found = {name: env(container(body, name))["DEFAULT_GPU_WORKLOAD_CONFIG"] for name in CHECKS}
    assert found == dict(zip(CHECKS, ["x", "vm-vgpu", "vm-vgpu"], strict=True))
    assert "DEFAULT_GPU_WORKLOAD_CONFIG" not in env(container(body, "cc-manager-validation"))
    assert env(container(pod(), CHECKS[0]))["DEFAULT_GPU_WORKLOAD_CONFIG"] == "container"


def test_the_driver_folder_is_fixed() -> None:
    """hostPaths.driverInstallDir doesn't move where the vGPU manager installs; rootFS reaches each container (5.4)."""
    body = pod(hostPaths={"driverInstallDir": "/opt/nvidia", "rootFS": "/host-root"})
    found = mounts(body, "vgpu-manager-validation")["/run/nvidia/driver"]
    assert found["from"]["hostPath"] == {"path": "/run/nvidia/driver"}
    assert {env(container(body, name)).get("HOST_ROOT") for name in [NAME, *names(body)]} == {"/host-root"}


def test_the_end_removes_every_file() -> None:
    """Its preStop empties the folder, so that nothing waits for a node that serves something else (7.13)."""
    stop = container(pod(), NAME)["lifecycle"]["preStop"]["exec"]["command"]
    assert stop == ["sh", "-c", "rm -f /run/nvidia/validations/*"]


def test_when_it_is_there() -> None:
    """Wherever nodes may serve virtual machines (1.3)."""
    assert sandbox_validator(resolve(spec())) is None
    assert inputs().image
