"""Which pools count for the driver, where nodes may serve virtual machines (driver/driver_pools_inputs.py)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.driver.driver_pools_inputs import NAME, VGPU_MANAGER, targets
from gpustack.components.driver.driver_view import DriverView
from gpustack.model import FindingsError
from tests.components.sandbox.common import machines

KERNEL = "5.14.0-427.el9_4.x86_64"


def pool(name: str, workload: str, **facts: Any) -> dict[str, Any]:
    """A pool that serves WORKLOAD."""
    return {"name": name, "workload": workload, **facts}


def suffixes(*pools: dict[str, Any], **sections: Any) -> list[str]:
    """The image suffixes of the driver's DaemonSets for POOLS."""
    return [
        target.image_suffix
        for target in targets(DriverView.section(resolve(machines(nodePools=list(pools), **sections))))
    ]


def test_pools_for_containers_choose_the_driver() -> None:
    """A pool for virtual machines of another OS neither adds a DaemonSet nor a node selector."""
    (only,) = targets(
        DriverView.section(
            resolve(
                machines(
                    nodePools=[pool("a", "vm-passthrough", os="rhel9.4"), pool("b", "container", os="ubuntu22.04")]
                )
            )
        )
    )
    assert (only.name, only.node_selector, only.os.tag) == (NAME, {}, "ubuntu22.04")


def test_pools_for_virtual_machines_need_no_system() -> None:
    """Only a pool that serves containers must say its OS; what serves them is said by pool or default (2.2)."""
    assert suffixes(pool("a", "vm-passthrough"), pool("b", "container", os="ubuntu22.04")) == ["ubuntu22.04"]
    assert suffixes({"name": "a"}, sandboxWorkloads={"defaultWorkload": "vm-passthrough"}) == []
    with pytest.raises(FindingsError):
        suffixes({"name": "a"})


def test_without_pools_for_containers_all_count() -> None:
    """The DaemonSet is there as the operator's is, for a node that somebody labels for containers (cases 87, 88)."""
    assert suffixes(pool("a", "vm-passthrough", os="ubuntu22.04"), pool("b", "vm-vgpu")) == ["ubuntu22.04"]


def test_kernels_of_all_pools() -> None:
    """Precompiled: one per kernel of every pool, like the operator's; only pools for containers must say theirs."""
    driver = {"usePrecompiled": True}
    vm = pool("a", "vm-passthrough", os="rhel9.4", kernel=KERNEL)
    container = pool("b", "container", os="ubuntu22.04", kernel="5.15.0-1")
    assert suffixes(vm, container, driver=driver) == [f"{KERNEL}-rhel9", "5.15.0-1-ubuntu22.04"]
    assert suffixes({**vm, "kernel": None}, container, driver=driver) == ["5.15.0-1-ubuntu22.04"]
    with pytest.raises(FindingsError) as refused:
        suffixes(vm, {**container, "kernel": None}, driver=driver)
    assert [finding.path for finding in refused.value.findings] == ["spec.nodePools[1].kernel"]


def test_a_precompiled_driver_says_nothing_about_the_vgpu_manager() -> None:
    """Its image is for an OS, whatever the driver for containers is."""
    policy = machines(nodePools=[pool("a", "vm-vgpu", os="ubuntu22.04")], driver={"usePrecompiled": True})
    assert [target.image_suffix for target in targets(DriverView.section(resolve(policy)), VGPU_MANAGER)] == [
        "ubuntu22.04"
    ]
