"""gpustack nodes: what nodes are made with, as text that can be pasted; refused where it would be half of it."""

from __future__ import annotations

import yaml

from tests.project import Project

POOL = {"name": "a", "os": "ubuntu24.04", "gpuProduct": "NVIDIA-L4", "gpusPerNode": 1, "count": 2}
GROUP = {**POOL, "autoscaling": {"nodeGroup": {"kind": "aws"}}}
HOST = {**POOL, "name": "b", "nodeSelector": {"example.com/pool": "b"}, "host": {"blockNouveau": True}}


def test_what_is_printed(project: Project) -> None:
    """Each text says whose it is; one of a pool that is named is a document of its own."""
    project.policy("one", nodePools=[GROUP, HOST], driver={"enabled": False}, devicePlugin={"enabled": True})
    ran = project.run("nodes", "one")
    assert (ran.code, ran.err) == (0, "")
    assert "# Nodes of the pool a: tags of the Auto Scaling group" in ran.out
    assert "#cloud-config\n# Nodes of the pool b: " in ran.out
    only = yaml.safe_load(project.run("nodes", "one", "a").out)
    assert only["k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"] == "1"
    assert project.run("nodes", "one", "b", "--as", "shell").out.startswith("#!/bin/sh\n")
    assert project.run("nodes", "one", "a", "--as", "shell").out == "# the pool a of one has no host\n"
    assert project.run("nodes", "one", "b", "--as", "node-group").out == "# the pool b of one has no nodeGroup\n"


def test_each_text_alone(project: Project) -> None:
    """Of several texts each has a line above it with the command that prints it alone, as a file that can be used as it
    is: tags are one mapping, and cloud-init reads a file by its first line. A pool that has neither is told as that.
    """
    both = {**HOST, "autoscaling": {"nodeGroup": {"kind": "aws"}}}
    pools = [both, {**POOL, "nodeSelector": {"example.com/pool": "a"}}]
    project.policy("one", nodePools=pools, driver={"enabled": False}, devicePlugin={"enabled": True})
    printed = project.run("nodes", "one", "b").out
    commands = [line.split("`")[1].split()[1:] for line in printed.splitlines() if "prints this alone" in line]
    assert commands == [["nodes", "one", "b", "--as", "node-group"], ["nodes", "one", "b", "--as", "cloud-init"]]
    tags, host = (project.run(*words).out for words in commands)
    assert tags in printed
    assert host in printed
    assert all(key.startswith("k8s.io/cluster-autoscaler/") for key in yaml.safe_load(tags))
    assert host.startswith("#cloud-config\n")
    assert project.run("nodes", "one", "a").out == "# the pool a of one has no nodeGroup or host\n"


def test_what_is_refused(project: Project) -> None:
    """A pool that isn't there, a form that can't hold what is said, and a node group of which too little is known: with
    what to do, and nothing is printed.
    """
    lacking = {**GROUP, "gpusPerNode": None}
    project.policy(
        "one",
        nodePools=[lacking, {**HOST, "host": {"pinKernel": True}}],
        driver={"enabled": False},
        devicePlugin={"enabled": True},
    )
    for words, what in (
        (("c",), "its pools are: a, b"),
        (("b", "--as", "talos"), "keep machine.install.image at one version"),
        (("a",), "run `gpustack lint`"),
    ):
        ran = project.run("nodes", "one", *words)
        assert (ran.code, ran.out) == (4, "")
        assert "GPU095" in ran.err
        assert what in ran.err
