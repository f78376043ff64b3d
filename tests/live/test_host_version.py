"""`driver.hostVersion`: rules see the driver that nodes bring, and nothing is rendered of it."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.live.state import of_files
from gpustack.live.verify import verify
from tests.checks.snippets import loaded
from tests.components.common import spec
from tests.live.test_verify import POOLS, node
from tests.project import Project, cache, project

__all__ = ["cache", "project"]

HOST = "driver: {enabled: false, hostVersion: '%s'}\n"
POOL = "nodePools: [{name: a, os: ubuntu22.04, gpusPerNode: 8, gpuProduct: %s}]\n"


def told(snippet: str) -> set[tuple[str, str]]:
    """Ids and places of what the rules over the spec say about SNIPPET."""
    given = loaded(snippet).spec
    return {(hit.rule, hit.path) for each in all_rules() if each.over == "spec" for hit in each.findings(given)}


H100, L4, V100, H200 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4", "Tesla-V100-SXM2-16GB", "NVIDIA-H200"
CUDA = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-L4, cuda: '%s'}]\n"
CUT = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H200, sharing: {mig: {layout: {1g.18gb: 7}}}}]\n"
DRA = "gpuCluster: {}\n"
CASES: dict[str, tuple[str, str, bool]] = {
    "CUDA 13 on R570": ("GPU430", HOST % "570.211.01" + CUDA % "13.0", True),
    "CUDA 13 on R580": ("GPU430", HOST % "580.126.20" + CUDA % "13.0", False),
    "CUDA 13.2 on R580": ("GPU431", HOST % "580" + CUDA % "13.2", True),
    "Volta on R595": ("GPU420", HOST % "595.91.07" + POOL % V100, True),
    "Volta on R580": ("GPU420", HOST % "580.126.20" + POOL % V100, False),
    "Ada on R515": ("GPU420", HOST % "515.105.01" + POOL % L4, True),
    "MIG of an H200 before it": ("GPU423", HOST % "550.54.15" + CUT, True),
    "MIG of an H200": ("GPU423", HOST % "550.163.01" + CUT, False),
    "a branch that has ended": ("GPU412", HOST % "550.163.01" + POOL % H100, True),
    "no branch": ("GPU417", HOST % "581.10" + POOL % H100, True),
    "claims on R570": ("GPU173", HOST % "570.211.01" + POOL % H100 + DRA, True),
    "claims on R580": ("GPU173", HOST % "580.126.20" + POOL % H100 + DRA, False),
    "claims, without a pool": ("GPU173", HOST % "570.211.01" + "nodePools: []\n" + DRA, True),
    "whole GPUs beside cut ones": (
        "GPU415",
        HOST
        % "570.124.06"
        + "nodePools: [{name: a, gpuProduct: NVIDIA-H100-80GB-HBM3, gpusPerNode: 8, sharing: {mig: {devices: "
        "[{indices: [0], layout: {1g.10gb: 7}}, {indices: [1, 2, 3, 4, 5, 6, 7]}]}}}]\n",
        True,
    ),
}
"""NVIDIA's documentation: CUDA 13 needs R580; R580 is the last branch for Volta, and Ada came with R525; MIG on an H200
came with 550.90.07; DRA needs R580; R550 has ended; 570.124.06 can't schedule whole GPUs beside cut ones."""


@pytest.mark.parametrize("name", CASES)
def test_a_rule_sees_the_driver_that_nodes_bring(name: str) -> None:
    """As it sees one that is installed: at the version that is said, and blind where none is."""
    rule, snippet, expected = CASES[name]
    place = (rule, "spec.nodePools[0].cuda" if rule in {"GPU430", "GPU431"} else "spec.driver.hostVersion")
    assert (place in told(snippet)) is expected
    assert all(rule != each for each, _ in told(snippet.replace("hostVersion", "version")) if rule != "GPU173")


def test_a_pool_has_its_own() -> None:
    """The pool's word goes before the cluster's, and each finding has the place that says so."""
    pools = "nodePools: [{name: a, gpuProduct: Tesla-V100-SXM2-16GB, driver: {hostVersion: 595.91.07}}]"
    assert ("GPU420", "spec.nodePools[0].driver.hostVersion") in told(HOST % "580.126.20" + pools)
    assert not any(rule == "GPU136" for rule, _ in told(HOST % "580.126.20" + pools))
    more = pools.replace("595.91.07", "595.91.07, repository: example.com/x")
    assert ("GPU136", "spec.nodePools[0].driver") in told(HOST % "580.126.20" + more)


def test_where_it_says_nothing() -> None:
    """Of nodes that serve virtual machines, and of what only the driver's own container brings: GPUDirect Storage on
    Grace has a known fault with an installed driver (its release notes), and isn't there with one of the host."""
    host = {"enabled": False, "hostVersion": "580"}
    machines: dict[str, Any] = {"sandboxWorkloads": {"enabled": True}, "driver": host}
    cluster = resolve(spec(nodePools=[{"name": "a", "workload": "vm-passthrough"}], **machines))
    assert [pool.runs for pool in cluster.pools] == [None]
    storage = "gds: {enabled: true}\nnodePools: [{name: a, os: ubuntu24.04, gpuProduct: NVIDIA-GB200}]\n"
    known = {rule for rule, _ in told(f"driver: {{version: 580.126.20}}\n{storage}")}
    assert known & {"GPU414", "GPU415", "GPU416"}
    assert not {rule for rule, _ in told(HOST % "580.126.20" + storage)} & {"GPU414", "GPU415", "GPU416"}


REFUSED = {
    "spec.driver.hostVersion": "driver: {hostVersion: 580.126.20}\n",
    "spec.nodePools[0].driver.hostVersion": "nodePools: [{name: a, driver: {hostVersion: 580.126.20}}]\n",
}


@pytest.mark.parametrize("path", REFUSED)
def test_it_is_refused_where_a_driver_is_installed(path: str) -> None:
    """By the section; `drivers` that select no node of a pool leave it to the host."""
    assert ("GPU143", path) in told(REFUSED[path])
    listed = "driver: {useNvidiaDriverCRD: true, hostVersion: '580'}\ndrivers: [{name: x, nodeSelector: {x: '%s'}}]\n"
    pools = "nodePools: [{name: a, nodeSelector: {x: 'y'}, gpuProduct: NVIDIA-L4}]\n"
    assert ("GPU143", "spec.driver.hostVersion") in told(listed % "y" + pools)
    assert not any(rule == "GPU143" for rule, _ in told(listed % "z" + pools))


def test_lint_takes_that_of_a_pool(project: Project) -> None:
    """Said of a pool whose nodes bring their driver, it has an effect, also where the spec comes from the cache."""
    pool = {"name": "a", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "count": 1}
    project.policy("a", driver={"enabled": False}, nodePools=[{**pool, "driver": {"hostVersion": "580.95.05"}}])
    for _ in range(2):
        assert "GPU136" not in project.run("lint", "a").out


def test_nothing_is_rendered_of_it(project: Project) -> None:
    """The same bytes with and without it; `explain` knows the place."""
    said: dict[str, Any] = {"nodePools": [{"name": "a", "gpuProduct": "NVIDIA-L4"}], "driver": {"enabled": False}}
    outputs = []
    for version in ({}, {"hostVersion": "580.126.20"}):
        project.policy("c", **{**said, "driver": {**said["driver"], **version}})
        assert project.run("render", "--out", "dist").code == 0
        files = sorted(path for path in (project.folder / "dist" / "c").rglob("*.yaml"))
        outputs.append([(path.name, path.read_text(encoding="utf-8")) for path in files])
    assert outputs[0] == outputs[1]
    assert "hostVersion" not in project.run("lint", "c").out
    assert "policies/c.yaml:" in project.run("explain", "c", "driver.hostVersion").out


def test_verify_compares_it(project: Project) -> None:
    """With the label of GPU feature discovery; a branch fits each version of it."""
    for version, rules in (("580.126.20", []), ("580", []), ("570.86.15", ["LIV405"])):
        sections: dict[str, Any] = {"driver": {"enabled": False, "hostVersion": version}}
        expected = Expected.of(resolve(spec(nodePools=[{**POOLS[0], "count": 1}], **sections)), ())
        state = of_files([node("a")])
        found = [each for each in verify(expected, state) if each.rule in {"LIV402", "LIV405"}]
        assert [each.rule for each in found] == rules
        assert all(each.path == "spec.driver.hostVersion" for each in found)
