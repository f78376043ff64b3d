"""KubeVirt's permission for GPUs (bug-reports.md B57)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.components import KubeVirt
from gpustack.components.sandbox.kubevirt_inputs import KubeVirtInputs, from_cluster
from gpustack.model import Body, FindingsError
from tests.components.common import render, spec
from tests.components.sandbox.common import POOLS, machines

PARTS = {**POOLS[2], "vgpu": {"config": "A10-12Q"}}
L40S = {"resourceName": "nvidia.com/AD102GL_L40S", "externalResourceProvider": True}
A10 = {
    "mdevNameSelector": "NVIDIA A10-12Q",
    "resourceName": "nvidia.com/NVIDIA_A10-12Q",
    "externalResourceProvider": True,
}


def inputs(section: dict[str, Any] | None = None, **sections: Any) -> KubeVirtInputs:
    """The inputs for a policy with SECTION `kubevirt`, one pool per workload, and SECTIONS."""
    pools = [*POOLS[:2], PARTS]
    found = from_cluster(resolve(machines(**{"kubevirt": section or {}, "nodePools": pools, **sections})))
    assert found is not None
    return found


def body(section: dict[str, Any] | None = None, **sections: Any) -> Body:
    """The one object for such a policy; the API server's schema takes it."""
    (only,) = render(KubeVirt, inputs(section, **sections)).values()
    assert validate(only, "1.34") == []
    return only


def refusals(section: dict[str, Any] | None = None, **sections: Any) -> list[str]:
    """The paths of what is said against such a policy."""
    with pytest.raises(FindingsError) as caught:
        inputs(section, **sections)
    return [finding.path for finding in caught.value.findings]


def test_left_alone_without_the_section() -> None:
    """No `kubevirt`, no object."""
    assert from_cluster(resolve(machines())) is None


def test_devices_of_the_pools() -> None:
    """PCI ids in capitals of pools for passthrough, type names of pools with vGPUs; ours is the provider (B57)."""
    found = body()
    assert (found["apiVersion"], found["kind"]) == ("kubevirt.io/v1", "KubeVirt")
    assert found["spec"] == {
        "configuration": {
            "permittedHostDevices": {
                "pciHostDevices": [{"pciVendorSelector": "10DE:26B9", **L40S}],
                "mediatedDevices": [A10],
            }
        }
    }


def test_hyperconverged() -> None:
    """The same under that operator's names; KubeVirt is told to leave mediated devices alone."""
    found = body({"target": "hyperconverged"})
    assert (found["apiVersion"], found["kind"]) == ("hco.kubevirt.io/v1beta1", "HyperConverged")
    assert found["spec"] == {
        "featureGates": {"disableMDevConfiguration": True},
        "permittedHostDevices": {
            "pciHostDevices": [{"pciDeviceSelector": "10DE:26B9", **L40S}],
            "mediatedDevices": [A10],
        },
    }


@pytest.mark.parametrize(
    ("section", "cluster", "place"),
    [
        ({}, {}, ("KubeVirt", "kubevirt", "kubevirt")),
        ({}, {"platform": "openshift"}, ("HyperConverged", "kubevirt-hyperconverged", "openshift-cnv")),
        ({"target": "hyperconverged"}, {}, ("HyperConverged", "kubevirt-hyperconverged", "kubevirt-hyperconverged")),
        ({"name": "kv", "namespace": "vms"}, {}, ("KubeVirt", "kv", "vms")),
    ],
)
def test_place(section: dict[str, Any], cluster: dict[str, Any], place: tuple[str, str, str]) -> None:
    """Where the object is by default, and where the policy says it is."""
    pools = [{**pool, "os": "rhcos4.18"} for pool in (POOLS[1], PARTS)]
    found = body(section, cluster=cluster, nodePools=pools)
    assert (found["kind"], found["metadata"]["name"], found["metadata"]["namespace"]) == place


def test_it_is_never_deleted_along() -> None:
    """Both engines merge it into the owner's object and keep their hands off when it leaves the render."""
    found = body()["metadata"]["annotations"]
    assert found["argocd.argoproj.io/sync-options"].split(",") == [
        "ServerSideApply=true",
        "Prune=false",
        "Delete=false",
    ]
    assert found["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
    assert found["kustomize.toolkit.fluxcd.io/ssa"] == "Merge"


def test_the_provider_follows_our_plugin() -> None:
    """externalResourceProvider is true exactly when our device plugin runs (B57)."""
    assert not any(device.external for device in inputs(sandboxDevicePlugin={"enabled": False}).pci)
    assert all(device.external for device in inputs().mediated)


def test_feature_gates_are_a_whole_list() -> None:
    """Only a list that the policy gives is rendered, with what GPUs need: the API replaces it as one."""
    gates = body({"featureGates": ["LiveMigration", "HostDevices"]})["spec"]["configuration"]["developerConfiguration"]
    assert gates == {"featureGates": ["LiveMigration", "HostDevices", "DisableMDEVConfiguration"]}
    without_vgpus = body({"featureGates": []}, nodePools=[POOLS[1]])["spec"]["configuration"]
    assert without_vgpus["developerConfiguration"] == {"featureGates": ["HostDevices"]}
    assert "developerConfiguration" not in body()["spec"]["configuration"]
    assert refusals({"target": "hyperconverged", "featureGates": ["X"]}) == ["spec.kubevirt.featureGates"]


def test_further_devices() -> None:
    """The policy's come on top, one of the same id wins, and the order is that of the ids."""
    mine = [
        {"selector": "10DE:26B9", "resourceName": "example.com/l40s", "externalResourceProvider": True},
        {"selector": "10DE:22BA", "resourceName": "example.com/audio"},
    ]
    found = inputs({"pciDevices": mine}).pci
    assert [(device.selector, device.resource, device.external) for device in found] == [
        ("10DE:22BA", "example.com/audio", False),
        ("10DE:26B9", "example.com/l40s", True),
    ]


def test_names_of_vgpu_types() -> None:
    """GRID up to Turing, NVIDIA after, and what the policy says where a driver writes another name."""
    pools = [{**PARTS, "gpuProduct": "Tesla-T4", "vgpu": {"config": "T4-8Q"}}]
    assert [device.selector for device in inputs(nodePools=pools).mediated] == ["GRID T4-8Q"]
    named = inputs({"vgpuNames": {"T4-8Q": "NVIDIA Tesla T4-8Q"}}, nodePools=pools).mediated
    assert [(device.selector, device.resource) for device in named] == [
        ("NVIDIA Tesla T4-8Q", "nvidia.com/NVIDIA_Tesla_T4-8Q")
    ]


def test_the_default_set_by_product() -> None:
    """A pool that chooses no set has what the release's default makes of its GPU (9.4)."""
    assert [device.selector for device in inputs(nodePools=[POOLS[2]]).mediated] == ["NVIDIA A10-12Q"]


def test_own_sets() -> None:
    """Types come from the configuration that the policy brings, inline or as an extra object."""
    text = "version: v1\nvgpu-configs:\n  half:\n  - devices: all\n    vgpu-devices: {A10-8Q: 3}\n"
    pools = [{**PARTS, "vgpu": {"config": "half"}}]
    for sections in (
        {"vgpuDeviceManager": {"config": {"data": {"config.yaml": text}}}},
        {
            "vgpuDeviceManager": {"config": {"name": "mine"}},
            "extraObjects": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"config.yaml": text}}
            ],
        },
    ):
        assert [device.selector for device in inputs(nodePools=pools, **sections).mediated] == ["NVIDIA A10-8Q"]


def test_what_a_pool_must_say() -> None:
    """The GPU of a pool for passthrough and the types of one with vGPUs, unless devices are listed."""
    unknown = [{"name": "a", "workload": "vm-passthrough"}, {"name": "b", "workload": "vm-vgpu"}]
    assert refusals(nodePools=unknown) == ["spec.nodePools[0].gpuProduct", "spec.nodePools[1].vgpu.config"]
    assert refusals(nodePools=[{**POOLS[1], "gpuProduct": "NVIDIA-X1"}]) == ["spec.nodePools[0].gpuProduct"]
    listed = {
        "pciDevices": [{"selector": "10DE:2236", "resourceName": "nvidia.com/GA102GL_A10"}],
        "mediatedDevices": [{"name": "NVIDIA A10-8Q", "resourceName": "nvidia.com/NVIDIA_A10-8Q"}],
    }
    assert len(inputs(listed, nodePools=unknown).pci) == 1


def test_nothing_to_permit() -> None:
    """A section without a device is a mistake: no pool serves virtual machines, or they are Kata's."""
    assert refusals(nodePools=POOLS[:1]) == ["spec.kubevirt"]
    assert refusals(sandboxWorkloads={"mode": "kata"}) == ["spec.kubevirt"]
    with pytest.raises(FindingsError):
        from_cluster(resolve(spec(kubevirt={})))
