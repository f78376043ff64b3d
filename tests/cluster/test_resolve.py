"""What a policy means: one answer to each question, with the policy path that says so."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster import resolve as module
from gpustack.cluster.resolve import Cluster, resolve
from tests.components.common import spec

POOL = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H200", "gpusPerNode": 8}
CRD = {"useNvidiaDriverCRD": True}


def cluster(**sections: Any) -> Cluster:
    """What a policy with SECTIONS means."""
    return resolve(spec(**sections))


def test_a_spec_is_resolved_once() -> None:
    """The same spec has the same cluster, and its answers are computed once; a copy with changes has its own."""
    found = spec(nodePools=[POOL])
    assert resolve(found) is resolve(found)
    assert resolve(found).pools[0].selection is resolve(found).pools[0].selection
    copy = found.model_copy(update={"nodePools": []})
    assert resolve(found).pools
    assert resolve(copy).pools == ()


def test_clusters_are_not_kept_for_ever() -> None:
    """A fleet of any size costs the memory of the clusters asked about last."""
    specs = [spec(nodePools=[{**POOL, "name": f"p{number}"}]) for number in range(3)]
    first = resolve(specs[0])
    for _ in range(module.KEPT):
        resolve(specs[1].model_copy())
    assert len(module._kept) <= module.KEPT
    assert resolve(specs[0]) is not first


@pytest.mark.parametrize(
    ("sections", "allocation", "by"),
    [
        ({}, "plugin", "section"),
        ({"driver": {"enabled": False}}, "plugin", "host"),
        ({"drivers": [{"name": "d"}]}, "plugin", "section"),
        ({"driver": CRD}, "plugin", "list"),
        ({"driver": {**CRD, "enabled": False}}, "plugin", "list"),
        ({"gpuCluster": {}}, "dra", "list"),
        ({"gpuCluster": {}, "driver": {"enabled": False}}, "dra", "list"),
    ],
    ids=str,
)
def test_who_allocates_and_who_describes(sections: dict[str, Any], allocation: str, by: str) -> None:
    """A `gpuCluster` excludes the device plugin and takes its drivers from the list, as does the field of the section
    (operator.md 10.1, 11.1)."""
    found = cluster(**sections)
    assert (found.allocation, found.drivers_by) == (allocation, by)
    assert (found.dra, found.listed) == (allocation == "dra", by == "list")


def test_which_driver_and_why() -> None:
    """Each pool's driver has the number, the label's value, the reason and the place that decides (operator.md 2.3)."""
    listed = [{"name": "stable", "default": True}, {"name": "next", "nodeSelector": {"ring": "early"}}]
    pools = [{**POOL, "name": "early", "nodeSelector": {"ring": "early", "p": "a"}}, {**POOL, "name": "rest"}]
    first, second = (pool.driver for pool in cluster(driver=CRD, drivers=listed, nodePools=pools).pools)
    assert first is not None
    assert second is not None
    assert (first.number, first.owner, first.path) == (1, "next", "spec.drivers[1].nodeSelector")
    assert "matches the labels of pool early" in first.why
    assert (second.number, second.owner, second.path) == (0, "stable", "spec.drivers[0].default")
    assert first.paths["version"] == "spec.drivers[1].version"


def test_the_section_and_what_a_pool_overrides() -> None:
    """A pool's own driver is called like the pool; one from the section needs no label (operator.md 2.3)."""
    pools = [POOL, {**POOL, "name": "b", "driver": {"version": "580.126.20"}}]
    first, second = (pool.driver for pool in cluster(nodePools=pools).pools)
    assert first is not None
    assert second is not None
    assert (first.path, first.owner, first.number) == ("spec.driver", "", None)
    assert (second.path, second.owner, second.version) == ("spec.nodePools[1].driver", "b", "580.126.20")
    assert second.paths["version"] == "spec.nodePools[1].driver.version"
    assert second.paths["repository"] == "spec.driver.repository"


def test_nodes_without_a_driver_of_ours() -> None:
    """None where nodes bring it, where no driver of the list selects them, and where they serve virtual machines."""
    assert cluster(driver={"enabled": False}, nodePools=[POOL]).pools[0].driver is None
    listed = [{"name": "next", "nodeSelector": {"ring": "early"}}]
    assert cluster(driver=CRD, drivers=listed, nodePools=[POOL]).pools[0].driver is None
    machines = cluster(sandboxWorkloads={"enabled": True}, nodePools=[{**POOL, "workload": "vm-passthrough"}])
    assert machines.pools[0].driver is None
    assert machines.pools[0].workload == "vm-passthrough"


def test_a_host_manager_is_no_driver_for_containers() -> None:
    """The vGPU host manager is the driver of its nodes, and none of those that containers wait for (10.3)."""
    host = [{"name": "host", "driverType": "vgpu-host-manager", "image": "r.example/vgpu:1"}]
    found = cluster(driver=CRD, drivers=host, nodePools=[POOL])
    assert found.pools[0].driver is not None
    assert [*found.drivers] == []
    assert found.container_drivers == []


def test_without_pools_all_nodes_are_one() -> None:
    """Nothing is known of them: no selection, no driver to choose, no labels of a configuration."""
    found = cluster(sandboxWorkloads={"enabled": True, "defaultWorkload": "vm-vgpu"})
    (everywhere,) = found.nodes
    assert (everywhere.index, everywhere.selection, everywhere.labels) == (None, {}, {})
    assert everywhere.driver is None
    assert everywhere.workload == "vm-vgpu"
    assert everywhere.budget.path == "spec.driver.upgradePolicy"


def test_budgets() -> None:
    """A pool's own budget replaces its driver's; over all pools drivers allow together what each allows, as the
    operator's limits are each driver's own (reconciler.md U22, 6.3)."""
    policies = [{"maxParallelUpgrades": 2, "maxUnavailable": 1}, {"maxParallelUpgrades": 3, "maxUnavailable": 2}, {}]
    listed = [
        {"name": f"d{number}", "nodeSelector": {"p": str(number)}, "upgradePolicy": policy}
        for number, policy in enumerate(policies)
    ]
    pools = [{**POOL, "name": f"p{number}", "nodeSelector": {"p": str(number)}} for number in range(2)]
    pools[1]["upgrade"] = {"maxParallel": 7, "windows": [{"start": "22:00", "hours": 2}]}
    found = cluster(driver=CRD, drivers=listed, nodePools=pools)
    one, two = (pool.budget for pool in found.pools)
    assert (one.parallel, one.unavailable, one.path) == (2, 1, "spec.drivers[0].upgradePolicy")
    assert (two.parallel, two.unavailable, len(two.windows)) == (7, 2, 1)
    assert (found.fleet.parallel, found.fleet.unavailable) == (5, 3)
    assert one.automatic


def test_an_unused_driver_of_the_list_allows_the_operators_defaults() -> None:
    """One node at a time, a quarter unavailable: what the operator takes for absent fields (reconciler.md U22)."""
    found = cluster(driver=CRD, drivers=[{"name": "d"}])
    assert (found.fleet.parallel, found.fleet.unavailable) == (1, "25%")


def test_no_driver_rolls_by_itself_where_nodes_serve_machines() -> None:
    """There the driver manager takes the node out of service itself (reconciler.md U6, D6)."""
    found = cluster(sandboxWorkloads={"enabled": True}, nodePools=[POOL])
    assert not found.pools[0].budget.automatic
    assert cluster(nodePools=[POOL]).pools[0].budget.automatic


@pytest.mark.parametrize(
    ("sharing", "sevenths"),
    [
        ({}, 7),
        ({"mig": {"layout": {"1g.18gb": 7}}}, 7),
        ({"mig": {"layout": {"3g.71gb": 1, "2g.35gb": 1}}}, 5),
        ({"mig": {"config": "all-3g.71gb"}}, 6),
        ({"mig": {"config": "all-enabled"}}, 0),
        ({"mig": {"config": "all-disabled"}}, 7),
        ({"mig": {"devices": [{"indices": [0], "layout": {"3g.71gb": 1}}]}}, 3),
    ],
)
def test_what_a_layout_hands_out(sharing: dict[str, Any], sevenths: int) -> None:
    """The compute slices of the GPU with the fewest, however the layout is said: a profile begins with how many it has,
    and a GPU that stays whole has all seven (gpus/mig.yaml)."""
    assert cluster(nodePools=[{**POOL, "sharing": sharing}]).pools[0].handed_out == sevenths
