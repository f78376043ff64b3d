"""Tenants' objects without pods beside what a cluster offers: quotas, queues, virtual machines, patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpustack.checks.rule import rules_over
from gpustack.cluster.offer import Offer
from gpustack.cluster.resolve import resolve
from gpustack.model import Finding
from gpustack.tenants.tenants import TenantObject, findings, pods_in
from tests.components.common import spec
from tests.tenants.test_workloads import H100, cluster, pod

A10 = {"name": "v", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-A10", "gpusPerNode": 4, "workload": "vm-passthrough"}
MACHINES: dict[str, Any] = {"sandboxWorkloads": {"enabled": True}, "nodePools": [A10]}
KUEUE = "kueue.x-k8s.io/v1beta1"
OFFERED = "nvidia.com/GA102GL_A10"
"""How the device plugin for KubeVirt calls an A10 (bug-reports.md B57)."""


def machines(**sections: Any) -> Offer:
    """What a cluster for virtual machines offers."""
    return resolve(spec(**{**MACHINES, **sections})).offer


def of(offer: Offer, kind: str, api: str, content: Any) -> list[Finding]:
    """What the rules over manifests say about an object."""
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": content}
    before = copy.deepcopy(body)
    found = [finding for rule in rules_over("manifest") for finding in rule.findings(TenantObject(body, offer))]
    assert body == before
    return found


def groups(*names: str) -> dict[str, Any]:
    """Kueue's resource groups over NAMES."""
    flavors = [{"name": "f", "resources": [{"name": name, "nominalQuota": 8} for name in names]}]
    return {"resourceGroups": [{"coveredResources": list(names), "flavors": flavors}]}


@pytest.mark.parametrize(
    ("kind", "api", "content", "place"),
    [
        ("ResourceQuota", "v1", {"hard": {"requests.nvidia.com/gpu.shared": 8}}, 'spec.hard["requests'),
        ("ResourceQuota", "v1", {"hard": {"nvidia.com/gpu": 8}}, 'spec.hard["nvidia.com/gpu"]'),
        ("ResourceQuota", "v1", {"hard": {"limits.nvidia.com/gpu": 8}}, 'spec.hard["limits.nvidia.com/gpu"]'),
        ("LimitRange", "v1", {"limits": [{"default": {"nvidia.com/mig-1g.10gb": 1}}]}, "spec.limits[0]"),
        ("ClusterQueue", KUEUE, groups("cpu", "nvidia.com/gpu.shared"), "spec.resourceGroups[0].coveredResources[1]"),
        ("Cohort", KUEUE, groups("nvidia.com/mig-1g.10gb"), "spec.resourceGroups[0].coveredResources[0]"),
        ("Queue", "scheduling.volcano.sh/v1beta1", {"capability": {"nvidia.com/gpus": 8}}, "spec.capability"),
    ],
)  # fmt: skip
def test_quotas_over_what_nobody_offers(kind: str, api: str, content: Any, place: str) -> None:
    """Each is told once, where the resource is named first."""
    (found,) = of(cluster("plain"), kind, api, content)
    assert (found.rule, found.path.startswith(place)) == ("GPU720", True)


@pytest.mark.parametrize(
    ("kind", "api", "content"),
    [
        ("ResourceQuota", "v1", {"hard": {"requests.nvidia.com/gpu": 8, "requests.cpu": 4, "count/jobs.batch": 3}}),
        ("ResourceQuota", "v1", {"hard": {"requests.nvidia.com/gpu.shared": 0}}),
        ("ResourceQuota", "v1", {"hard": {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 2}}),
        ("LimitRange", "v1", {"limits": [{"type": "Container", "max": {"nvidia.com/gpu": 2}}]}),
        ("ClusterQueue", KUEUE, groups("cpu", "nvidia.com/gpu")),
        ("ResourceFlavor", KUEUE, {"nodeLabels": {"nvidia.com/gpu.product": H100, "example.com/a": "b"}}),
        ("ResourceFlavor", KUEUE, {}),
        ("ResourceQuota", "v1", None),
        ("ClusterQueue", KUEUE, {"resourceGroups": "odd"}),
    ],
)  # fmt: skip
def test_quotas_over_what_there_is(kind: str, api: str, content: Any) -> None:
    """What nodes offer, zero of anything, other counts and odd objects pass."""
    assert of(cluster("plain"), kind, api, content) == []


def test_a_remedy_of_a_quota_passes() -> None:
    """The name that the remedy gives is counted."""
    (found,) = of(cluster("plain"), "ResourceQuota", "v1", {"hard": {"limits.nvidia.com/gpu": 8}})
    assert found.remedy == "write requests.nvidia.com/gpu"
    (found,) = of(cluster("two"), "ResourceQuota", "v1", {"hard": {"requests.nvidia.com/gpus": 8}})
    assert "requests.nvidia.com/gpu" in found.remedy


def test_flavors_of_no_nodes() -> None:
    """A flavor for a product that no pool has is told with what the nodes have."""
    (found,) = of(cluster("plain"), "ResourceFlavor", KUEUE, {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-L40S"}})
    assert (found.rule, "NVIDIA-H100-80GB-HBM3" in found.remedy) == ("GPU721", True)


def devices(name: str, key: str = "gpus") -> dict[str, Any]:
    """The spec of a VirtualMachine with a device."""
    return {"template": {"spec": {"domain": {"devices": {key: [{"name": "d", "deviceName": name}]}}}}}


@pytest.mark.parametrize("key", ["gpus", "hostDevices"])
@pytest.mark.parametrize("kubevirt", [{}, {"kubevirt": {"target": "kubevirt"}}])
def test_devices_of_virtual_machines(key: str, kubevirt: dict[str, Any]) -> None:
    """A name that no node offers, or that KubeVirt isn't told to permit, is told with the right one."""
    offer = machines(**kubevirt)
    (found,) = of(offer, "VirtualMachine", "kubevirt.io/v1", devices("nvidia.com/A10", key))
    assert (found.rule, found.remedy) == ("GPU722", f"write {OFFERED}")
    assert of(offer, "VirtualMachine", "kubevirt.io/v1", devices(OFFERED, key)) == []


def test_devices_of_instance_types_and_others() -> None:
    """Instance types have devices too. Where our list is KubeVirt's, it is the whole list; the HyperConverged
    operator merges others into it."""
    content = {
        "gpus": [{"name": "g", "deviceName": "nvidia.com/A10"}],
        "hostDevices": [{"name": "c", "claimName": "c"}],
    }
    api = "instancetype.kubevirt.io/v1beta1"
    assert [one.rule for one in of(machines(), "VirtualMachineInstancetype", api, content)] == ["GPU722"]
    card = devices("example.com/card", "hostDevices")
    ours = machines(kubevirt={"target": "kubevirt"})
    assert [one.rule for one in of(ours, "VirtualMachine", "kubevirt.io/v1", card)] == ["GPU722"]
    merged = machines(kubevirt={"target": "hyperconverged"})
    assert of(merged, "VirtualMachine", "kubevirt.io/v1", card) == []
    (found,) = of(cluster("plain"), "VirtualMachine", "kubevirt.io/v1", devices(OFFERED))
    assert "no node pool serves virtual machines" in found.why


def test_devices_that_are_permitted_and_nowhere() -> None:
    """A permitted GPU that no pool has leaves the virtual machine pending (bug-reports.md B57); one of another vendor
    may be on any node, and gets no advice about NVIDIA's."""
    device = {"selector": "10DE:26B9", "resourceName": "nvidia.com/AD102GL_L40S", "externalResourceProvider": True}
    qat = {"selector": "8086:4940", "resourceName": "intel.com/qat"}
    ours = machines(kubevirt={"target": "kubevirt", "pciDevices": [device, qat]})
    (found,) = of(ours, "VirtualMachine", "kubevirt.io/v1", devices("nvidia.com/AD102GL_L40S"))
    assert (found.rule, found.remedy) == ("GPU722", f"write {OFFERED}")
    assert of(ours, "VirtualMachine", "kubevirt.io/v1", devices("intel.com/qat", "hostDevices")) == []
    (found,) = of(ours, "VirtualMachine", "kubevirt.io/v1", devices("intel.com/sriov", "hostDevices"))
    assert "nvidia" not in found.why + found.remedy
    own = {**device, "externalResourceProvider": False, "resourceName": "example.com/l40s"}
    both = {"nodePools": [A10, {**A10, "name": "w", "gpuProduct": "NVIDIA-L40S"}]}
    there = machines(kubevirt={"target": "kubevirt", "pciDevices": [own]}, **both)
    assert of(there, "VirtualMachine", "kubevirt.io/v1", devices("example.com/l40s")) == []


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        (["kubectl", "patch", "clusterpolicy", "cluster-policy", "--type=merge"], "spec, by the same names"),
        (["sh", "-c", "sleep 5; oc patch clusterpolicies.nvidia.com/gpus -p x"], "spec, by the same names"),
        (["kubectl", "delete", "nvidiadriver", "old"], "spec.drivers"),
        (["kubectl", "get", "clusterpolicy"], ""),
        (["kubectl", "patch", "configmap", "a"], ""),
    ],
)  # fmt: skip
def test_patches_of_the_operators_objects(command: list[str], kinds: str) -> None:
    """A CronJob that changes an object of the operator is told where that goes; one that reads it is not."""
    template = {"spec": {"containers": [{"name": "main", "image": "a", "command": command}]}}
    job = {"spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, **job}
    told = [one for one in findings(body, pods_in(body), cluster("plain")) if one.rule == "GPU723"]
    assert bool(told) == bool(kinds)
    assert all(kinds in one.remedy for one in told)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\nkubectl patch clusterpolicy x -p '{}'\n", True),
        ("kubectl edit \\\n  nvidiadriver default\n", True),
        ("kubectl get clusterpolicy\nkubectl patch node x\n", False),
        ("kubectl " * 100_000 + "clusterpolicy", False),  # a line that takes long to read
    ],
)
def test_scripts_that_patch_the_operators_objects(script: str, told: bool) -> None:
    """The script of such a CronJob is often in a ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"run.sh": script}}
    found = [one.path for one in findings(body, pods_in(body), cluster("plain")) if one.rule == "GPU723"]
    assert found == (['data["run.sh"]'] if told else [])


def test_workloads_are_looked_at_once() -> None:
    """An object with pods gets what the rules over workloads say, and no rule over manifests speaks of it."""
    assert [
        one.rule for one in findings(pod("nvidia.com/gpus"), pods_in(pod("nvidia.com/gpus")), cluster("plain"))
    ] == ["GPU701"]
