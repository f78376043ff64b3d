"""gpustack capacity: tables for people, numbers for programs."""

from __future__ import annotations

from typing import Any

from tests.project import Project

POOL = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}
SHARED = {**POOL, "count": 4, "sharing": {"timeSlicing": {"replicas": 4}}}
PLUGIN: dict[str, Any] = {"devicePlugin": {"enabled": True}}


def test_text(project: Project) -> None:
    """Each pool with what a node and all nodes advertise, the cluster's sums, and the sums of all clusters."""
    project.policy("one", nodePools=[SHARED], dcgmExporter={"enabled": True}, **PLUGIN)
    project.policy("two", nodePools=[{**POOL, "count": {"min": 0, "max": 2}}, {**POOL, "name": "b"}], **PLUGIN)
    ran = project.run("capacity")
    assert ran.code == 0
    assert (
        ran.out
        == """\
one
  a: 4 nodes with 8 x NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu       32 a node      128 in total
    metrics: 200 series a node, 800 in total
  total
    nvidia.com/gpu  128

two
  a: 0 to 2 nodes with 8 x NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu        8 a node  0 to 16 in total
  b: nodes with 8 x NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu        8 a node  unknown in total
    unknown: count isn't said, so the number of nodes isn't known
  total
    nvidia.com/gpu  0 to 16, beside what b has

2 clusters
  total
    nvidia.com/gpu (NVIDIA-H100-80GB-HBM3)               0 to 16, beside what two/b has
    nvidia.com/gpu (NVIDIA-H100-80GB-HBM3, shared by 4)  128
"""
    )


def test_json(project: Project) -> None:
    """The same as data: null for what isn't known."""
    project.policy("one", nodePools=[{**SHARED, "count": None}], **PLUGIN)
    data = project.run("capacity", "one", "--format", "json").json
    (pool,) = data["clusters"][0]["pools"]
    assert (data["version"], pool["nodes"], pool["perNode"]) == (2, None, {"nvidia.com/gpu": 32})
    assert pool["total"] == {"nvidia.com/gpu": None}
    unit = {"gpuProduct": "NVIDIA-H100-80GB-HBM3", "migProfile": None, "sharedBy": 4}
    assert pool["units"] == {"nvidia.com/gpu": unit}
    assert data["total"] == {"nvidia.com/gpu": [{"unit": unit, "without": ["one/a"]}]}


T4 = {**POOL, "name": "t4", "gpuProduct": "Tesla-T4", "gpusPerNode": 1, "count": 2}
CUT: dict[str, Any] = {"mig": {"strategy": "single"}, "migManager": {"enabled": True}}


def test_one_name_for_different_things(project: Project) -> None:
    """With the strategy single an instance of MIG is a nvidia.com/gpu (plugin-config.yaml), as a whole GPU and a
    share of one are: a sum over several of these is of nothing. What is the same is added up, across clusters as well.
    """
    whole, quarter = {**POOL, "count": 1}, {**T4, "sharing": {"timeSlicing": {"replicas": 4}}}
    instances = {**POOL, "name": "cut", "count": 1, "sharing": {"mig": {"layout": {"1g.10gb": 7}}}}
    pools = [{**pool, "nodeSelector": {"pool": pool["name"]}} for pool in (whole, quarter, instances)]
    project.policy("one", nodePools=pools, **PLUGIN, **CUT)
    project.policy("two", nodePools=[whole], **PLUGIN)
    _, fleet = project.run("capacity").out.split("2 clusters\n")
    assert [line.rsplit(maxsplit=1) for line in fleet.splitlines()[1:]] == [
        ["    nvidia.com/gpu (1g.10gb of NVIDIA-H100-80GB-HBM3)", "56"],
        ["    nvidia.com/gpu (NVIDIA-H100-80GB-HBM3)", "16"],
        ["    nvidia.com/gpu (Tesla-T4, shared by 4)", "8"],
    ]
    total = project.run("capacity", "--format", "json").json["total"]
    assert [(each["unit"]["migProfile"], each["max"]) for each in total["nvidia.com/gpu"]] == [
        ("1g.10gb", 56),
        (None, 16),
        (None, 8),
    ]
    project.policy("one", nodePools=[{**T4, "name": "a"}, {**T4, "name": "b", "nodeSelector": {"b": "b"}}], **PLUGIN)
    assert project.run("capacity", "one").out.splitlines()[-2].split() == ["nvidia.com/gpu", "4"]


def test_policies_that_cannot_be_read(project: Project) -> None:
    """All mistakes of all policies are said, and nothing is counted."""
    project.policy("one", nodePools=[{**POOL, "gpusPerNode": 0}])
    project.policy("two", nodePool=[])
    ran = project.run("capacity")
    assert (ran.code, ran.out) == (4, "")
    assert "policies/one.yaml" in ran.err
    assert "policies/two.yaml" in ran.err
    project.policy("three")
    assert "unknown: the policy has no node pools" in project.run("capacity", "three").out
