"""What nodes advertise: the numbers of the device plugin, and a reason where there is none."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.cluster.capacity import PoolCapacity, Total, Unit, totals
from gpustack.cluster.resolve import resolve
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading import layers
from gpustack.policy.loading.defaults import assemble

H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB"


def spec(**sections: Any) -> ClusterPolicySpec:
    """The effective spec of a policy that says SECTIONS."""
    policy = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}, **sections}
    merged, findings = assemble([layers.Part("policy", "test", policy)])
    assert not findings
    return ClusterPolicySpec.model_validate(merged.spec)


def of(pool: dict[str, Any], **sections: Any) -> PoolCapacity:
    """The capacity of a pool of four nodes with eight H100, with what POOL says on top."""
    plain = {"name": "a", "os": "ubuntu22.04", "gpuProduct": H100, "gpusPerNode": 8, "count": 4}
    whole = {key: value for key, value in {**plain, **pool}.items() if value is not None}
    (found,) = resolve(spec(nodePools=[whole], **sections)).capacity
    return found


def mig(layout: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """The sharing of a pool with a MIG layout for every GPU."""
    return {"sharing": {"mig": {"layout": layout} if layout else more.pop("mig"), **more}}


SEVEN = {"1g.10gb": 7}
BALANCED = {"3g.40gb": 1, "2g.20gb": 2}
PLUGIN = yaml.safe_dump({"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 3}]}}})
MPS_WINS = yaml.safe_dump(
    {
        "version": "v1",
        "sharing": {
            "timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 3}]},
            "mps": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 5}]},
        },
    }
)


@pytest.mark.parametrize(
    ("pool", "sections", "per_node"),
    [
        ({}, {}, {"nvidia.com/gpu": 8}),
        ({"sharing": {"timeSlicing": {"replicas": 4}}}, {}, {"nvidia.com/gpu": 32}),
        (
            {"sharing": {"timeSlicing": {"replicas": 4, "renameByDefault": True}}},
            {},
            {"nvidia.com/gpu.shared": 32},
        ),
        ({"sharing": {"mps": {"replicas": 10}}}, {}, {"nvidia.com/gpu": 80}),
        # one profile: the release's strategy, single, offers instances as GPUs
        (mig(SEVEN), {}, {"nvidia.com/gpu": 56}),
        (mig(SEVEN), {"mig": {"strategy": "mixed"}}, {"nvidia.com/mig-1g.10gb": 56}),
        (mig(SEVEN), {"mig": {"strategy": "none"}}, {"nvidia.com/gpu": 8}),
        # several profiles: mixed follows from the layout
        (mig(BALANCED), {}, {"nvidia.com/mig-2g.20gb": 16, "nvidia.com/mig-3g.40gb": 8}),
        (mig({"1g.10gb+me": 1, "1g.10gb": 6}), {}, {"nvidia.com/mig-1g.10gb": 48, "nvidia.com/mig-1g.10gb.me": 8}),
        (
            mig(BALANCED, timeSlicing={"replicas": 2, "renameByDefault": True}),
            {},
            {"nvidia.com/mig-2g.20gb.shared": 32, "nvidia.com/mig-3g.40gb.shared": 16},
        ),
        (
            mig(mig={"devices": [{"indices": [0, 1, 2, 3], "layout": SEVEN}]}),
            {},
            {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": 28},
        ),
        (mig(mig={"config": "all-2g.20gb"}), {}, {"nvidia.com/gpu": 24}),
        (
            mig(mig={"config": "all-balanced"}),
            {"mig": {"strategy": "mixed"}},
            {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8},
        ),
        ({"nodeSelector": {"nvidia.com/mig.config": "all-1g.10gb"}}, {}, {"nvidia.com/gpu": 56}),
        ({"nodeSelector": {"nvidia.com/mig.config": "all-disabled"}}, {}, {"nvidia.com/gpu": 8}),
        # before v0.20.0 patterns fit parts of names, and in order
        (
            mig({"1c.3g.40gb": 3, "1g.10gb+me": 1}),
            {"devicePlugin": {"version": "v0.19.0"}, "mig": {"strategy": "mixed"}},
            {"nvidia.com/mig-3g.40gb": 24, "nvidia.com/mig-1g.10gb": 8},
        ),
        (mig({"1g.10gb+me": 1}), {"mig": {"strategy": "mixed"}}, {"nvidia.com/mig-1g.10gb.me": 8}),
        # sharing in the text of a configuration
        ({}, {"devicePlugin": {"config": {"default": "a", "data": {"a": PLUGIN}}}}, {"nvidia.com/gpu": 24}),
        ({}, {"devicePlugin": {"config": {"data": {"a": PLUGIN}}}}, {"nvidia.com/gpu": 8}),
        (
            {"nodeSelector": {"nvidia.com/device-plugin.config": "b"}},
            {"devicePlugin": {"config": {"default": "a", "data": {"a": PLUGIN, "b": MPS_WINS}}}},
            {"nvidia.com/gpu.shared": 40},
        ),
        # virtual machines
        (
            {"gpuProduct": "NVIDIA-L40S", "workload": "vm-passthrough"},
            {"sandboxWorkloads": {"enabled": True}},
            {"nvidia.com/AD102GL_L40S": 8},
        ),
        (
            {"gpuProduct": "NVIDIA-A10", "workload": "vm-vgpu", "vgpu": {"config": "A10-12Q"}},
            {"sandboxWorkloads": {"enabled": True}},
            {"nvidia.com/NVIDIA_A10-12Q": 16},
        ),
    ],
)
def test_per_node(pool: dict[str, Any], sections: dict[str, Any], per_node: dict[str, int]) -> None:
    """What a node with eight GPUs offers (plugin-config.yaml)."""
    found = of(pool, **sections)
    assert found.per_node == per_node
    assert found.unknown == ()
    assert found.total == {name: (4 * count, 4 * count) for name, count in per_node.items()}


@pytest.mark.parametrize(
    ("pool", "sections", "reason"),
    [
        ({}, {"devicePlugin": {"enabled": False}}, "devicePlugin is off"),
        (mig(BALANCED), {"mig": {"strategy": "single"}}, "aren't all cut alike"),
        (
            mig(mig={"devices": [{"indices": [0], "layout": SEVEN}]}),
            {"mig": {"strategy": "single"}},
            "aren't all cut alike",
        ),
        (mig({"3g.40gb": 3}), {}, "doesn't fit"),
        (mig({"1g.5gb": 3}), {}, "doesn't fit"),
        (mig(mig={"config": "ours"}), {"migManager": {"config": {"name": "others"}}}, "layout ours"),
        ({}, {"devicePlugin": {"config": {"name": "others", "default": "x"}}}, "x isn't in the policy"),
        ({}, {"devicePlugin": {"config": {"default": "b", "data": {"a": PLUGIN}}}}, "no configuration b"),
        (
            {},
            {"devicePlugin": {"config": {"default": "a", "data": {"a": "sharing: ["}}}},
            "refuses its configuration a",
        ),
        ({"sharing": {"mps": {"replicas": 2}}}, {"mig": {"strategy": "mixed"}}, "refuses MPS"),
        (mig({"1c.3g.40gb": 3}), {"mig": {"strategy": "mixed"}}, "no name for 1c.3g.40gb"),
        (
            {"workload": "vm-vgpu", "gpuProduct": None},
            {"sandboxWorkloads": {"enabled": True}},
            "which vGPUs the nodes have isn't known",
        ),
    ],
)
def test_reasons(pool: dict[str, Any], sections: dict[str, Any], reason: str) -> None:
    """Where nobody can say what nodes offer, a reason stands in its place, and no number."""
    found = of(pool, **sections)
    assert found.per_node == {}
    assert [reason in text for text in found.unknown] == [True]


def test_dynamic_resource_allocation() -> None:
    """With a gpuCluster there is no device plugin, and nothing is counted."""
    found = of({}, gpuCluster={})
    assert found.per_node == {}
    assert "resource slices" in found.unknown[0]


def test_numbers_that_are_missing() -> None:
    """Without gpusPerNode the resources are known and their number is not; without count the sum is not."""
    found = of({"gpusPerNode": None})
    assert found.per_node == {"nvidia.com/gpu": None}
    assert found.unknown == ("gpusPerNode isn't said, so the number of GPUs isn't known",)
    found = of({"count": None})
    assert (found.per_node, found.total) == ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": None})
    assert found.unknown == ("count isn't said, so the number of nodes isn't known",)
    found = of({"gpusPerNode": None, **mig(mig={"devices": [{"indices": [0, 1], "layout": SEVEN}]})}, **MIXED)
    assert found.per_node == {"nvidia.com/gpu": None, "nvidia.com/mig-1g.10gb": 14}


MIXED = {"mig": {"strategy": "mixed"}}


def test_totals() -> None:
    """Sums over pools: bounds under an autoscaler, and the pools whose part isn't known."""
    pool = {"os": "ubuntu22.04", "gpuProduct": A100, "gpusPerNode": 8}
    pools = resolve(
        spec(
            nodePools=[
                {**pool, "name": "a", "count": 2},
                {**pool, "name": "b", "count": {"min": 0, "max": 4}},
                {**pool, "name": "c"},
                {**pool, "name": "d", "count": 1, **mig({"1g.5gb": 7})},
            ],
            mig={"strategy": "mixed"},
        )
    ).capacity
    assert totals(pools) == {
        "nvidia.com/gpu": [Total(Unit(A100), (16, 48), ("c",))],
        "nvidia.com/mig-1g.5gb": [Total(Unit(A100, "1g.5gb"), (56, 56))],
    }
    assert totals(pools[2:3]) == {"nvidia.com/gpu": [Total(Unit(A100), None, ("c",))]}


def test_pools_of_which_one_shares() -> None:
    """Where one pool shares its GPUs, the others stay exclusive."""
    pool = {"os": "ubuntu22.04", "gpuProduct": A100, "gpusPerNode": 8, "count": 1}
    shares = {**pool, "name": "b", "sharing": {"timeSlicing": {"replicas": 2}}}
    found = resolve(spec(nodePools=[{**pool, "name": "a"}, shares])).capacity
    assert [one.per_node for one in found] == [{"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 16}]
