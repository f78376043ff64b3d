"""Rules about virtual machines (checks/sandbox/sandbox.py)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from tests.components.common import spec
from tests.components.sandbox.common import POOLS, machines

RULES = {rule.id: rule for rule in all_rules()}
PARTS = POOLS[2]
ON = [PARTS]


def hits(rule: str, **sections: Any) -> list[str]:
    """The paths of what RULE finds in a policy with virtual machines and SECTIONS."""
    return [finding.path for finding in RULES[rule].findings(machines(**sections))]


def test_a_workload_that_nothing_serves() -> None:
    """With sandboxWorkloads off every node serves containers, so another workload is a contradiction (2.2)."""
    off = spec(nodePools=POOLS)
    found = [finding.path for finding in RULES["GPU150"].findings(off)]
    assert found == ["spec.nodePools[1].workload", "spec.nodePools[2].workload"]
    assert hits("GPU150") == []


def test_vgpus_in_mode_kata() -> None:
    """Nothing offers them there; the path is what says it, the pool or the default (7.16)."""
    kata: dict[str, Any] = {"sandboxWorkloads": {"mode": "kata", "defaultWorkload": "vm-vgpu"}}
    assert hits("GPU151", **kata, nodePools=[PARTS, {"name": "b"}]) == [
        "spec.nodePools[0].workload",
        "spec.sandboxWorkloads",
    ]
    assert hits("GPU151") == []


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [("6.8.0-31-generic", "GPU152"), ("5.14.0-427.el9_4.x86_64", ""), ("6.12.0-1", "GPU152"), (None, "GPU153")],
)
def test_gpus_without_mediated_devices(kernel: str | None, rule: str) -> None:
    """From Ada on, devices are made only below Linux 6.8: an error where the kernel is known, else a warning (B58)."""
    pool = {**PARTS, "gpuProduct": "NVIDIA-L40S", **({"kernel": kernel} if kernel else {})}
    found = {each: hits(each, nodePools=[pool]) for each in ("GPU152", "GPU153")}
    assert found == {each: ["spec.nodePools[0].gpuProduct"] if each == rule else [] for each in found}
    assert hits("GPU153", nodePools=[{**PARTS, "gpuProduct": "NVIDIA-A10"}]) == []
    assert hits("GPU153", nodePools=[pool], vgpuDeviceManager={"enabled": False}) == []


def test_the_default_set_should_exist() -> None:
    """A name that no set has is told, unless the text of the sets is not ours to know (B58)."""
    assert hits("GPU154") == []
    assert hits("GPU154", vgpuDeviceManager={"config": {"default": "all-time-sliced"}}) == [
        "spec.vgpuDeviceManager.config.default"
    ]
    assert hits("GPU154", vgpuDeviceManager={"config": {"default": "A10-4Q"}}) == []
    assert hits("GPU154", vgpuDeviceManager={"config": {"name": "elsewhere", "default": "x"}}) == []
    text = "version: v1\nvgpu-configs:\n  mine: []\n"
    inline = {"config": {"data": {"config.yaml": text}}}
    assert hits("GPU154", vgpuDeviceManager=inline) == ["spec.vgpuDeviceManager.config.default"]


def test_the_set_of_a_pool_must_exist() -> None:
    """A pool's own set is refused where there is none of that name; sets of later releases are unknown to earlier."""
    assert hits("GPU155", nodePools=[{**PARTS, "vgpu": {"config": "A10-5Q"}}]) == ["spec.nodePools[0].vgpu.config"]
    newest = [{**PARTS, "gpuProduct": "NVIDIA-B300-SXM6-AC", "vgpu": {"config": "B300X-269C"}}]
    assert hits("GPU155", nodePools=newest) == []
    assert hits("GPU155", nodePools=newest, release="v26.3.1") == ["spec.nodePools[0].vgpu.config"]


def test_a_file_that_nobody_reads() -> None:
    """The file of the vGPU device manager is judged if there is a manager to read it."""
    broken: dict[str, Any] = {"config": {"create": True, "name": "own", "data": {"config.yaml": "version: v2\n"}}}
    assert hits("GPU540", vgpuDeviceManager=broken) == ['spec.vgpuDeviceManager.config.data["config.yaml"]']
    assert hits("GPU540", vgpuDeviceManager={**broken, "enabled": False}) == []


def test_types_of_another_gpu() -> None:
    """A set whose types the GPU doesn't have is told, as far as the default set knows the GPU."""
    assert hits("GPU156", nodePools=[{**PARTS, "vgpu": {"config": "A40-8Q"}}]) == ["spec.nodePools[0].vgpu.config"]
    assert hits("GPU156", nodePools=[{**PARTS, "vgpu": {"config": "A10-8Q"}}]) == []
    assert hits("GPU156", nodePools=[{"name": "a", "workload": "vm-vgpu", "vgpu": {"config": "A40-8Q"}}]) == []


def test_a_set_without_vgpus() -> None:
    """On nodes that make no vGPU devices a set of them does nothing."""
    assert hits("GPU157", nodePools=[{**POOLS[1], "vgpu": {"config": "L40S-8Q"}}]) == ["spec.nodePools[0].vgpu.config"]
    assert hits("GPU157", nodePools=[{**PARTS, "vgpu": {"config": "A10-8Q"}}]) == []


def test_the_feature_gate_is_somebody_elses() -> None:
    """Told where KubeVirt's own object is the target and the policy leaves the list alone (B57)."""
    assert hits("GPU158") == []
    assert hits("GPU158", kubevirt={}) == ["spec.kubevirt.featureGates"]
    assert hits("GPU158", kubevirt={"featureGates": []}) == []
    assert hits("GPU158", kubevirt={"target": "hyperconverged"}) == []
    openshift = {"platform": "openshift"}
    assert hits("GPU158", kubevirt={}, cluster=openshift, nodePools=[]) == []
    assert hits("GPU158", kubevirt={"target": "kubevirt"}, cluster=openshift, nodePools=[]) != []


def test_sharing_between_pods() -> None:
    """Time-slicing, MPS and MIG are for containers: on other nodes their programs don't run."""
    pool = {**POOLS[1], "sharing": {"timeSlicing": {"replicas": 2}}}
    assert hits("GPU159", nodePools=[pool]) == ["spec.nodePools[0].sharing"]
    assert hits("GPU159", nodePools=[{**pool, "workload": "container"}]) == []


def test_two_providers_of_a_device() -> None:
    """Our plugin offers every NVIDIA device on vfio-pci, so KubeVirt must not offer one of them too (B57)."""
    device = {"selector": "10DE:2236", "resourceName": "nvidia.com/GA102GL_A10"}
    vgpu = {"name": "NVIDIA A10-8Q", "resourceName": "nvidia.com/NVIDIA_A10-8Q"}
    section = {"pciDevices": [{"selector": "15B3:1017", "resourceName": "example.com/nic"}, device]}
    assert hits("GPU160", kubevirt={**section, "mediatedDevices": [vgpu]}) == [
        "spec.kubevirt.pciDevices[1]",
        "spec.kubevirt.mediatedDevices[0]",
    ]
    assert hits("GPU160", kubevirt=section, sandboxDevicePlugin={"enabled": False}) == []


def test_devices_of_another_provider_that_no_pool_has() -> None:
    """Our plugin offers what is on the nodes (B57): an A10 that no pool has leaves virtual machines pending."""
    device = {"selector": "10DE:2236", "resourceName": "nvidia.com/GA102GL_A10", "externalResourceProvider": True}
    kubevirt = {"pciDevices": [device]}
    pool = {"name": "vm", "os": "ubuntu22.04", "workload": "vm-passthrough", "gpusPerNode": 1}
    for product, found in (("NVIDIA-L40S", ["spec.kubevirt.pciDevices[0]"]), ("NVIDIA-A10", []), (None, [])):
        pools = [{**pool, "gpuProduct": product} if product else pool]
        assert hits("GPU210", kubevirt=kubevirt, nodePools=pools) == found
    assert hits("GPU210", kubevirt={"pciDevices": [{**device, "selector": "10DE:22A3"}]}, nodePools=[pool]) == []


def test_names_that_the_plugin_does_not_form() -> None:
    """A resource that nobody offers leaves virtual machines pending; devices that the list lacks are not judged."""
    outside = {"externalResourceProvider": True}
    section = {
        "pciDevices": [
            {"selector": "10DE:2236", "resourceName": "nvidia.com/A10", **outside},
            {"selector": "10DE:2235", "resourceName": "nvidia.com/GA102GL_A40", **outside},
            {"selector": "10DE:FFFF", "resourceName": "nvidia.com/NEW", **outside},
        ],
        "mediatedDevices": [{"name": "NVIDIA A100-40C", "resourceName": "nvidia.com/A100-40C", **outside}],
    }
    assert hits("GPU161", kubevirt=section) == [
        "spec.kubevirt.pciDevices[0].resourceName",
        "spec.kubevirt.mediatedDevices[0].resourceName",
    ]
