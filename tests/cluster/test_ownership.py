"""Whose driver a node gets (operator.md 2.3, 10.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.drivers import Features
from gpustack.cluster.ownership import node_labels
from gpustack.cluster.resolve import resolve
from tests.components.common import spec

OS = "feature.node.kubernetes.io/system-os_release."


def names(drivers: list[dict[str, Any]], pools: list[dict[str, Any]], **sections: Any) -> list[str | None]:
    """The driver of each of POOLS."""
    listed = [{"name": f"d{index}", **driver} for index, driver in enumerate(drivers)]
    numbered = [{"name": f"p{index}", **pool} for index, pool in enumerate(pools)]
    policy = spec(drivers=listed, nodePools=numbered, driver={"useNvidiaDriverCRD": True}, **sections)
    numbers = [pool.driver.number if pool.driver else None for pool in resolve(policy).pools]
    return [None if number is None else policy.drivers[number].name for number in numbers]


def test_a_driver_that_selects_comes_before_the_default_one() -> None:
    """The default driver takes what no other one selects; without it such nodes have none (2.3)."""
    pools = [{"nodeSelector": {"p": "a"}}, {"nodeSelector": {"p": "b", "q": "c"}}, {}]
    own = {"nodeSelector": {"p": "b"}}
    assert names([{"default": True}, own], pools) == ["d0", "d1", "d0"]
    assert names([own], pools) == [None, "d0", None]


def test_without_a_selector_all_nodes_are_selected() -> None:
    """A driver that is not the default one and selects nothing takes every node with a GPU (2.3)."""
    assert names([{}], [{"nodeSelector": {"p": "a"}}, {}]) == ["d0", "d0"]


@pytest.mark.parametrize(
    "selector",
    [
        {"nvidia.com/gpu.present": "true"},
        {f"{OS}ID": "rhel", f"{OS}VERSION_ID": "9.4"},
        {f"{OS}VERSION_ID.major": "9"},
        {"feature.node.kubernetes.io/kernel-version.full": "5.14.0"},
        {"kubernetes.io/arch": "arm64"},
        {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB"},
        {"nvidia.com/gpu.workload.config": "vm-vgpu"},
    ],
    ids=lambda selector: next(iter(selector)),
)
def test_labels_that_nodes_get_without_the_policys_help(selector: dict[str, str]) -> None:
    """Labels of NFD, Kubernetes and NVIDIA follow from what a pool says about its nodes."""
    pool = {
        "os": "rhel9.4",
        "kernel": "5.14.0",
        "arch": "arm64",
        "gpuProduct": "NVIDIA-GH200-480GB",
        "workload": "vm-vgpu",
    }
    assert names([{"nodeSelector": selector}], [pool, {"nodeSelector": {"p": "a"}}])[0] == "d0"
    wrong = {key: f"{value}-not" for key, value in selector.items()}
    assert names([{"nodeSelector": wrong}], [pool]) == [None]


def test_a_major_version_says_nothing_about_the_minor_one() -> None:
    """`os: rhel9` is any RHEL 9, whose VERSION_ID is not known; Debian has no minor version."""
    (rhel, debian) = spec(nodePools=[{"name": "a", "os": "rhel9"}, {"name": "b", "os": "debian12"}]).nodePools
    policy = spec()
    assert f"{OS}VERSION_ID" not in node_labels(policy, rhel)
    assert node_labels(policy, rhel)[f"{OS}VERSION_ID.major"] == "9"
    assert node_labels(policy, debian)[f"{OS}VERSION_ID"] == "12"


def test_older_releases_know_no_default_driver() -> None:
    """Before v26.7.0 the API drops the field: one without nodeSelector takes all nodes (operator-releases.md 7)."""
    pools: list[dict[str, Any]] = [{"nodeSelector": {"p": "a"}}]
    drivers: list[dict[str, Any]] = [{"default": True}, {"nodeSelector": {"p": "a"}}]
    assert names(drivers, pools, release="v26.7.0") == ["d1"]
    assert names(drivers, pools, release="v26.3.1") == ["d0"]


def test_who_is_in_charge() -> None:
    """`drivers` with useNvidiaDriverCRD, and with gpuCluster, where there is no ClusterPolicy (10.1)."""
    assert not resolve(spec(drivers=[{"name": "a"}])).listed
    assert resolve(spec(driver={"useNvidiaDriverCRD": True})).listed
    assert resolve(spec(gpuCluster={})).listed


def test_drivers_of_containers() -> None:
    """Who waits for a driver has to know whether there is one for containers, and which modules any of them loads."""
    crd = {"useNvidiaDriverCRD": True}
    host = {"name": "host", "driverType": "vgpu-host-manager"}
    assert (
        resolve(spec(driver=crd)).container_drivers == resolve(spec(driver=crd, drivers=[host])).container_drivers == []
    )
    own = {"name": "a", "rdma": {"enabled": True}, "gdrcopy": {"enabled": True}}
    assert resolve(spec(driver=crd, drivers=[host, own], gds={"enabled": True})).container_drivers == [
        Features(rdma=True, gds=False, gdrcopy=True)
    ]
    assert resolve(spec(driver={"enabled": False})).container_drivers == []
    pools = [{"name": "a", "driver": {"rdma": {"enabled": True}}}, {"name": "b", "driver": {"version": "1.0.0"}}]
    found = resolve(spec(nodePools=pools, gds={"enabled": True})).container_drivers
    assert found == [Features(rdma=False, gds=True, gdrcopy=False), Features(rdma=True, gds=True, gdrcopy=False)]
