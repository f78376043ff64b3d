"""Rules about pools that have nodes in common."""

from __future__ import annotations

import pytest

from tests.checks.spec_rules import paths

SHARED = "sharing: {timeSlicing: {replicas: 4}}"
CUT = "sharing: {mig: {layout: {1g.10gb: 7}}}"
POOLS = "nodePools: [{name: a, os: ubuntu22.04, %s}, {name: b, os: %s, %s}]\n"
VIRTUAL = "sandboxWorkloads: {enabled: true}\n"


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("arch: amd64", SHARED, [1]),  # all nodes of a are nodes of b too
        (SHARED, SHARED, []),
        (SHARED, CUT, [0]),
        (SHARED, "sharing: {timeSlicing: {replicas: 2}}", [0]),
        ("nodeSelector: {p: a}", f"nodeSelector: {{p: b}}, {SHARED}", []),
        ("nodeSelector: {p: a}", f"nodeSelector: {{p: a, q: b}}, {SHARED}", [1]),
        ("nodeSelector: {p: a}", f"nodeSelector: {{q: b}}, {SHARED}", []),
        ("gpuProduct: NVIDIA-L4", f"gpuProduct: NVIDIA-L40S, {SHARED}", [1]),  # never a selector (docs/policy.md)
        (
            "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}",
            f"nodeSelector: {{nvidia.com/gpu.product: NVIDIA-L40S}}, {SHARED}",
            [],
        ),
        ("kernel: 5.15.0-1-generic", f"kernel: 5.15.0-2-generic, {SHARED}", []),
    ],
)
def test_one_way_of_sharing(first: str, second: str, found: list[int]) -> None:
    """Pools whose nodes are the same by nodeSelector, os, kernel and ostreeVersion share their GPUs in one way."""
    assert paths("GPU147", POOLS % (first, "ubuntu22.04", second)) == [f"spec.nodePools[{i}].sharing" for i in found]


def test_systems_tell_nodes_apart() -> None:
    """Pools of two operating systems have no node in common."""
    assert paths("GPU147", POOLS % ("arch: amd64", "ubuntu24.04", SHARED)) == []


def test_nothing_is_shared_by_pools_of_dra() -> None:
    """With gpuCluster, sharing by pool is refused as such (GPU175)."""
    dra = "gpuCluster: {}\ndrivers: [{name: default, default: true}]\n"
    assert paths("GPU147", dra + POOLS % ("arch: amd64", "ubuntu22.04", SHARED)) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("arch: amd64", "workload: vm-passthrough", ["[1].workload"]),
        ("workload: vm-passthrough", "workload: vm-passthrough", []),
        ("nodeSelector: {p: a}", "nodeSelector: {p: b}, workload: vm-passthrough", []),
        ("workload: vm-vgpu, vgpu: {config: A10-24Q}", "workload: vm-vgpu", ["[0].vgpu"]),
        ("workload: vm-vgpu, vgpu: {config: A10-24Q}", "workload: vm-vgpu, vgpu: {config: A10-24Q}", []),
    ],
)
def test_one_workload(first: str, second: str, found: list[str]) -> None:
    """Pools whose nodes are the same serve one workload, with one set of vGPU devices; a warning, as a label that is
    set by hand tells them apart."""
    assert paths("GPU148", VIRTUAL + POOLS % (first, "ubuntu22.04", second)) == [f"spec.nodePools{e}" for e in found]


def test_drivers_of_one_workload() -> None:
    """A pool for virtual machines runs no driver for containers, so the two have no driver to agree on."""
    pools = POOLS % ("driver: {version: 580.126.20}", "ubuntu22.04", "workload: %s")
    assert paths("GPU137", VIRTUAL + pools % "vm-passthrough") == []
    assert paths("GPU137", VIRTUAL + pools % "container") == ["spec.nodePools[0].driver"]
