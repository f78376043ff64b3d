"""Rules over drivers that serve some of a cluster's nodes (operator.md 2.3, 8.1, 10.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from gpustack.model import Finding
from tests.components.common import spec

RULES = {rule.id: rule for rule in all_rules()}
A, B = ({"name": name, "os": "ubuntu22.04", "nodeSelector": {"p": name}} for name in ("a", "b"))
CRD = {"useNvidiaDriverCRD": True}
OWNER = "nvidia.com/gpu-operator.driver.owner"
OLD, NEW = "418.94.202501221327-0", "418.94.202502100215-0"


def findings(rule: str, **sections: Any) -> list[Finding]:
    """What RULE finds in a policy with two pools on Ubuntu and SECTIONS."""
    return list(RULES[rule].findings(spec(**{"nodePools": [A, B], **sections})))


def paths(rule: str, *drivers: dict[str, Any], **sections: Any) -> list[str]:
    """Where RULE finds something about DRIVERS, which are in charge."""
    listed = [{"name": f"d{index}", **driver} for index, driver in enumerate(drivers)]
    return [finding.path for finding in findings(rule, **{"drivers": listed, "driver": CRD, **sections})]


def test_two_drivers_for_one_pool() -> None:
    """Both select the nodes of a pool: an error, once per pair, before anything is rendered (10.1, case 81)."""
    assert paths("GPU130", {"nodeSelector": {"p": "a"}}, {"nodeSelector": {"p": "b"}}) == []
    assert paths("GPU130", {"nodeSelector": {"p": "a"}}, {}) == ["spec.drivers[1]"]
    assert paths("GPU130", {}, {"nodeSelector": {"p": "a"}}) == ["spec.drivers[1].nodeSelector"]
    assert len(paths("GPU130", {}, {}, {})) == 2
    (found,) = findings("GPU130", driver=CRD, drivers=[{"name": "x"}, {"name": "y"}])
    assert all(word in found.what for word in ("x", "y", "pool a"))


def test_the_default_driver_overlaps_with_nobody() -> None:
    """It takes what the others leave (2.3); in older releases there is no such driver, and the message says so."""
    both = ({"default": True}, {"nodeSelector": {"p": "a"}})
    assert paths("GPU130", *both) == []
    listed = [{"name": "x", "default": True}, {"name": "y", "nodeSelector": {"p": "a"}}]
    (found,) = findings("GPU130", release="v26.3.1", driver=CRD, drivers=listed)
    assert "v26.3.1 knows no default driver" in found.why


def test_more_than_one_default_driver() -> None:
    """One at most, and without a nodeSelector (10.1)."""
    assert paths("GPU131", {"default": True}, {"default": True}) == ["spec.drivers[1].default"]
    assert paths("GPU131", {"default": True, "nodeSelector": {"p": "a"}}) == ["spec.drivers[0].nodeSelector"]
    assert paths("GPU131", {"default": True}, {"nodeSelector": {"p": "a"}}) == []


def test_the_owner_label_is_reserved() -> None:
    """No driver selects by the label that says which one a node has (10.1); its name must fit into that label."""
    assert paths("GPU132", {"nodeSelector": {OWNER: "x"}}) == ["spec.drivers[0].nodeSelector"]
    assert paths("GPU132", {"name": "x" * 64}) == ["spec.drivers[0].name"]
    assert paths("GPU132", {"name": "x" * 63}) == []


def test_a_driver_for_nobody() -> None:
    """Nothing is rendered for it: a warning, as its nodes may be added later (10.1)."""
    assert paths("GPU133", {"nodeSelector": {"p": "c"}}) == ["spec.drivers[0]"]
    assert paths("GPU133", {"default": True}, {"nodeSelector": {"p": "a"}}, {"nodeSelector": {"p": "b"}}) == [
        "spec.drivers[0]"
    ]
    assert paths("GPU133", {"nodeSelector": {"p": "c"}}, nodePools=[]) == []


def test_a_pool_without_driver() -> None:
    """Its nodes never get ready for GPUs: a warning, unless they serve virtual machines."""
    assert paths("GPU134", {"nodeSelector": {"p": "a"}}) == ["spec.nodePools[1]"]
    assert paths("GPU134", {"default": True}) == []
    vms = [A, {**B, "workload": "vm-passthrough"}]
    selecting = {"nodeSelector": {"p": "a"}}
    assert paths("GPU134", selecting, nodePools=vms, sandboxWorkloads={"enabled": True}) == []


def test_overrides_of_pools_beside_drivers() -> None:
    """A pool's driver overrides the section `driver`, which describes nothing while `drivers` are in charge."""
    pools = [A, {**B, "driver": {"version": "1.0.0"}}]
    assert paths("GPU135", {"default": True}, nodePools=pools) == ["spec.nodePools[1].driver"]
    assert paths("GPU135", {"default": True}, nodePools=pools, driver={}) == []
    assert paths("GPU135", {"default": True}, nodePools=pools, driver={}, gpuCluster={}) == ["spec.nodePools[1].driver"]


def test_drivers_that_nobody_reads() -> None:
    """`drivers` without useNvidiaDriverCRD, that without `drivers`, and a pool's driver where none is installed."""
    assert paths("GPU136", {"default": True}, driver={}) == ["spec.drivers"]
    assert paths("GPU136", {"default": True}) == []
    assert paths("GPU136") == ["spec.driver.useNvidiaDriverCRD"]
    pools = [A, {**B, "driver": {"version": "1.0.0"}}]
    assert paths("GPU136", nodePools=pools, driver={"enabled": False}) == ["spec.nodePools[1].driver"]
    assert paths("GPU136", nodePools=pools, driver={}) == []
    vms = [A, {**pools[1], "workload": "vm-vgpu"}]
    sandbox = {"enabled": True}
    assert paths("GPU136", nodePools=vms, driver={}, sandboxWorkloads=sandbox) == ["spec.nodePools[1].driver"]


def test_nodes_of_two_pools_with_different_drivers() -> None:
    """Where all nodes of a pool belong to another one too, both must say the same about the driver."""
    other = {"version": "1.0.0"}
    everything = {"name": "all", "os": "ubuntu22.04"}
    assert paths("GPU137", driver={}, nodePools=[everything, {**A, "driver": other}]) == ["spec.nodePools[1].driver"]
    assert paths("GPU137", driver={}, nodePools=[{**everything, "driver": other}, A]) == ["spec.nodePools[0].driver"]
    assert paths("GPU137", driver={}, nodePools=[{**everything, "driver": other}, {**A, "driver": other}]) == []
    assert paths("GPU137", driver={}, nodePools=[A, {**B, "driver": other}]) == []
    twins = [{**A, "gpuProduct": "x"}, {**A, "name": "c", "gpuProduct": "y", "driver": other}]
    assert paths("GPU137", driver={}, nodePools=twins) == ["spec.nodePools[1].driver"]
    systems = [{"name": "a", "os": "ubuntu22.04"}, {"name": "b", "os": "ubuntu24.04", "driver": other}]
    assert paths("GPU137", driver={}, nodePools=systems) == []


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"driver": {"licensingConfig": {"configMapName": "x"}}}, "spec.driver.licensingConfig.configMapName"),
        ({"driver": {"licensingConfig": {"configMapName": "x", "secretName": "y"}}}, None),
        ({"driver": {"licensingConfig": {"secretName": "y"}}}, None),
        ({"drivers": [{"name": "a", "licensingConfig": {"name": "x"}}]}, "spec.drivers[0].licensingConfig.name"),
        ({"drivers": [{"name": "a", "licensingConfig": {"name": "x", "secretName": "y"}}]}, None),
        (
            {"nodePools": [{**A, "driver": {"licensingConfig": {"configMapName": "x"}}}]},
            "spec.nodePools[0].driver.licensingConfig.configMapName",
        ),
    ],
)
def test_licences_in_config_maps(sections: dict[str, Any], path: str | None) -> None:
    """A licence's token is a credential: a ConfigMap is a warning, unless a Secret wins over it (7.1)."""
    assert [finding.path for finding in findings("GPU138", **sections)] == ([path] if path else [])


def test_versions_of_rhcos() -> None:
    """A pool that doesn't say its version gets no driver, one without image builds without the toolkit (8.1, 10.1)."""
    openshift = {"platform": "openshift", "openshift": {"version": "4.18.1", "driverToolkitImages": {OLD: "r/x:1"}}}
    pools = [{**A, "ostreeVersion": OLD}, {**B, "ostreeVersion": NEW}, {"name": "c", "os": "rhcos4.18"}]
    expected = ["spec.nodePools[1].ostreeVersion", "spec.nodePools[2].ostreeVersion"]
    assert paths("GPU139", driver={}, cluster=openshift, nodePools=pools) == expected
    assert paths("GPU139", {"default": True}, cluster=openshift, nodePools=pools) == expected
    off = {"use_ocp_driver_toolkit": False}
    assert paths("GPU139", driver={}, cluster=openshift, nodePools=pools, operator=off) == []
    precompiled = {"usePrecompiled": True, "version": "595"}
    assert paths("GPU139", driver=precompiled, cluster=openshift, nodePools=pools) == []
    assert paths("GPU139", driver={}, nodePools=pools) == []
    plain = {"platform": "openshift", "openshift": {"version": "4.18.1"}}
    assert paths("GPU139", driver={}, cluster=plain, nodePools=pools) == []


def test_fields_that_nothing_acts_on() -> None:
    """nodeAffinity, two probes, useOpenKernelModules and the modules' args do nothing in any release (10.3)."""
    driver = {
        "nodeAffinity": {},
        "livenessProbe": {"periodSeconds": 5},
        "readinessProbe": {"periodSeconds": 5},
        "useOpenKernelModules": True,
        "gds": {"args": ["x"], "imagePullPolicy": "Always"},
        "gdrcopy": {"args": ["x"]},
    }
    fields = ("nodeAffinity", "livenessProbe", "readinessProbe", "useOpenKernelModules", "gds.args")
    modules = ("gds.imagePullPolicy", "gdrcopy.args")
    assert paths("GPU140", driver) == [f"spec.drivers[0].{field}" for field in (*fields, *modules)]
    assert paths("GPU140", {"gds": {"imagePullPolicy": "IfNotPresent"}}) == []
    assert paths("GPU140", {"kernelModuleType": "open", "default": True}) == []
    assert paths("GPU140", {"default": True}, release="v26.3.1") == ["spec.drivers[0].default"]
    off = {"use_ocp_driver_toolkit": False}
    assert paths("GPU140", {}, operator=off) == ["spec.operator.use_ocp_driver_toolkit"]
    assert paths("GPU140", driver={}, operator=off) == []


def test_who_sets_the_label() -> None:
    """Nothing that is rendered labels nodes, so the policy's author is told what a driver waits for (2.3)."""
    assert paths("GPU141", {"default": True}) == ["spec.drivers"]
    assert paths("GPU141", {"default": True}, release="v26.3.1") == []
    assert paths("GPU141", driver={}) == []
    (found,) = findings("GPU141", nodePools=[A, {**B, "driver": {"version": "1.0.0"}}])
    assert found.path == "spec.nodePools[1].driver"
    assert f"{OWNER}=b" in found.remedy
