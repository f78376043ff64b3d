"""gpustack capacity: tables for people, numbers for programs."""

from __future__ import annotations

from typing import Any

from tests.project import Project

POOL = {"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}
SHARED = {**POOL, "count": 4, "sharing": {"timeSlicing": {"replicas": 4}}}
PLUGIN: dict[str, Any] = {"devicePlugin": {"enabled": True}}


def test_text(project: Project) -> None:
    """Each pool with what a node and all nodes advertise, the cluster's sums, and the sums of all clusters."""
    project.policy("one", nodePools=[SHARED], **PLUGIN)
    project.policy("two", nodePools=[{**POOL, "count": {"min": 0, "max": 2}}, {**POOL, "name": "b"}], **PLUGIN)
    ran = project.run("capacity")
    assert ran.code == 0
    assert (
        ran.out
        == """\
one
  a: 4 nodes with 8 x NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu       32 a node      128 in total
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
    nvidia.com/gpu  128 to 144, beside what two/b has
"""
    )


def test_json(project: Project) -> None:
    """The same as data: null for what isn't known."""
    project.policy("one", nodePools=[{**SHARED, "count": None}], **PLUGIN)
    data = project.run("capacity", "one", "--format", "json").json
    (pool,) = data["clusters"][0]["pools"]
    assert (data["version"], pool["nodes"], pool["perNode"]) == (1, None, {"nvidia.com/gpu": 32})
    assert pool["total"] == {"nvidia.com/gpu": None}
    assert data["total"] == {"nvidia.com/gpu": {"without": ["one/a"]}}


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
