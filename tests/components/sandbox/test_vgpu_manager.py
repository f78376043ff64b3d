"""The vGPU manager, and OpenShift's driver toolkit beside it (operator.md 7.11, 8.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import VgpuManager
from gpustack.components.driver.driver_pools_inputs import DriverToolkit, driver_toolkits
from gpustack.components.driver.driver_view import DriverView
from gpustack.components.sandbox.sandbox_inputs import VgpuManagerInputs, vgpu_manager
from gpustack.model import Body, FindingsError
from tests.components.common import container, env, mounts, pod_of, render, spec
from tests.components.sandbox.common import MANAGER, POOLS, machines

BASE = "nvidia-vgpu-manager-daemonset"
MAIN, SIDECAR = "nvidia-vgpu-manager-ctr", "openshift-driver-toolkit-ctr"
OS_RELEASE = "feature.node.kubernetes.io/system-os_release."
OPENSHIFT: dict[str, Any] = {
    "platform": "openshift",
    "openshift": {"version": "4.18.1", "driverToolkitImages": {"418.94.1": "registry.example/toolkit:1"}},
}
RHCOS = [
    {"name": "a", "os": "rhcos4.18", "ostreeVersion": "418.94.1"},
    {"name": "b", "os": "rhcos4.18", "ostreeVersion": "418.94.2", "workload": "vm-vgpu"},
]


def inputs(**sections: Any) -> VgpuManagerInputs:
    """The inputs for a policy with virtual machines and SECTIONS."""
    found = vgpu_manager(
        resolve(machines(**{**sections, "vgpuManager": {**MANAGER, **sections.get("vgpuManager", {})}}))
    )
    assert found is not None
    return found


def rendered(**sections: Any) -> dict[str, Body]:
    """All objects for a policy with SECTIONS."""
    return render(VgpuManager, inputs(**sections))


def test_when_it_is_there() -> None:
    """With sandboxWorkloads and its own switch on; `drivers` replaces it (1.3)."""
    assert vgpu_manager(resolve(spec(vgpuManager=MANAGER))) is None
    assert vgpu_manager(resolve(machines())) is None
    assert vgpu_manager(resolve(machines(vgpuManager=MANAGER, driver={"useNvidiaDriverCRD": True}))) is None
    assert inputs().pods


def test_pools_with_vgpus_choose_the_image() -> None:
    """Only they need an OS, and the image is for theirs (3, 4)."""
    (only,) = inputs().pods
    assert (only.name, only.image) == (BASE, "registry.example/vgpu-manager:580.1-ubuntu24.04")
    without_os = [{**POOLS[2], "os": None}]
    with pytest.raises(FindingsError) as refused:
        inputs(nodePools=without_os)
    assert [finding.path for finding in refused.value.findings] == ["spec.nodePools[0].os"]
    assert "spec.vgpuManager.enabled: false" in refused.value.findings[0].remedy


def test_several_systems_get_a_daemonset_each() -> None:
    """As with the driver: the first keeps the name, each selects its nodes."""
    further = {"name": "more", "workload": "vm-vgpu", "os": "rhel9.4"}
    first, second = inputs(nodePools=[*POOLS, further]).pods
    assert [first.name, second.name] == [BASE, f"{BASE}-rhel9"]
    assert first.node_selector == {f"{OS_RELEASE}ID": "ubuntu", f"{OS_RELEASE}VERSION_ID": "24.04"}
    assert second.app == second.name


def test_pod() -> None:
    """It shares the node's process and memory spaces, ends slowly, and rolls like other operands (7.11)."""
    body = rendered()[f"DaemonSet/{BASE}"]
    pod = body["spec"]["template"]["spec"]
    assert pod["hostPID"] is pod["hostIPC"] is True
    assert pod["terminationGracePeriodSeconds"] == 120
    assert body["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.deploy.vgpu-manager": "true"}


def test_kernel_module_parameters() -> None:
    """Each key of the ConfigMap is a file below /drivers (7.11); v25.10 knows no such field (row 30)."""
    sections: dict[str, Any] = {
        "vgpuManager": {"kernelModuleConfig": {"name": "modules"}},
        "references": [{"kind": "ConfigMap", "name": "modules", "keys": ["nvidia.conf", "a.conf"]}],
    }
    pod = pod_of(rendered(**sections), BASE)
    found = mounts(pod, MAIN)["/drivers/nvidia.conf"]
    assert found["readOnly"]
    assert found["subPath"] == "nvidia.conf"
    assert found["from"]["configMap"]["name"] == "modules"
    assert [pod.files for pod in inputs(**sections, release="v25.10.1").pods] == [()]


def test_the_environment_of_the_policy_wins() -> None:
    """OPENSHIFT_VERSION is major and minor version, and the policy may say otherwise (5.2)."""
    sections: dict[str, Any] = {"cluster": OPENSHIFT, "nodePools": RHCOS}
    assert inputs(**sections).openshift_version == "4.18"
    body = rendered(**sections, vgpuManager={"env": [{"name": "OPENSHIFT_VERSION", "value": "4.1"}]})
    assert env(container(pod_of(body, f"{BASE}-418.94.1"), MAIN))["OPENSHIFT_VERSION"] == "4.1"


def test_driver_toolkit_per_version() -> None:
    """One DaemonSet per RHCOS version of any pool, selected by it; arguments of the policy are overwritten (8.1)."""
    bodies = rendered(cluster=OPENSHIFT, nodePools=RHCOS, vgpuManager={"args": ["mine"]})
    body = bodies[f"DaemonSet/{BASE}-418.94.1"]
    assert (
        body["metadata"]["labels"]
        | {
            "app": f"{BASE}-418.94.1",
            "openshift.driver-toolkit": "true",
            "openshift.driver-toolkit.rhcos": "418.94.1",
        }
        == body["metadata"]["labels"]
    )
    pod = pod_of(bodies, f"{BASE}-418.94.1")
    assert pod["nodeSelector"][f"{OS_RELEASE}OSTREE_VERSION"] == "418.94.1"
    assert container(pod, MAIN)["command"] == ["ocp_dtk_entrypoint"]
    assert container(pod, MAIN)["args"] == ["nv-ctr-run-with-dtk"]
    assert container(pod, SIDECAR)["image"] == "registry.example/toolkit:1"
    assert env(container(pod, SIDECAR)) == {"RHCOS_VERSION": "418.94.1", "NVIDIA_VISIBLE_DEVICES": "void"}
    shared = "/mnt/shared-nvidia-driver-toolkit"
    assert mounts(pod, MAIN)[shared]["from"] == mounts(pod, SIDECAR)[shared]["from"]


def test_a_version_without_image() -> None:
    """The sidecar runs the manager's image, and both are told (8.1)."""
    bodies = rendered(cluster=OPENSHIFT, nodePools=RHCOS)
    name = f"{BASE}-418.94.2"
    pod = pod_of(bodies, name)
    assert container(pod, SIDECAR)["image"] == container(pod, MAIN)["image"]
    assert env(container(pod, MAIN))["RHCOS_IMAGE_MISSING"] == "true"
    assert env(container(pod, MAIN))["RHCOS_VERSION"] == "418.94.2"
    mark = "openshift.driver-toolkit.rhcos-image-missing"
    assert bodies[f"DaemonSet/{name}"]["spec"]["template"]["metadata"]["labels"][mark] == "true"


def test_resources_of_the_sidecar_are_the_drivers() -> None:
    """Not the manager's own (7.11)."""
    theirs, own = {"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}
    bodies = rendered(cluster=OPENSHIFT, nodePools=RHCOS, driver={"resources": theirs}, vgpuManager={"resources": own})
    pod = pod_of(bodies, f"{BASE}-418.94.1")
    assert container(pod, SIDECAR)["resources"] == theirs
    assert container(pod, MAIN)["resources"] == own


@pytest.mark.parametrize(
    ("changes", "used"),
    [
        ({}, True),
        ({"operator": {"use_ocp_driver_toolkit": False}}, False),
        ({"operator": {"use_ocp_driver_toolkit": True}}, True),
        ({"driver": {"usePrecompiled": True}}, False),
        ({"cluster": {"platform": "openshift", "openshift": {"version": "4.18"}}}, False),
        ({"nodePools": [{"name": "a", "os": "rhcos4.18"}]}, False),
    ],
)
def test_when_the_toolkit_is_used(changes: dict[str, Any], used: bool) -> None:
    """With images and versions known, unless it is declined or a precompiled driver turns it off (3)."""
    policy = machines(**{"cluster": OPENSHIFT, "nodePools": RHCOS, **changes})
    expected = [DriverToolkit(rhcos="418.94.1", image="registry.example/toolkit:1"), DriverToolkit(rhcos="418.94.2")]
    assert driver_toolkits(DriverView.section(resolve(policy))) == (expected if used else [])
