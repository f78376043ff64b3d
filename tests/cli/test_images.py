"""gpustack images: everything a fleet pulls, where it comes from, and lists that programs read."""

from __future__ import annotations

import re
from typing import Any

from tests.project import Project

POOL = {"name": "a", "os": "rhel9.4", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}
DRIVER: dict[str, Any] = {"nodePools": [POOL], "driver": {"enabled": True}}
TOOL = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "tool", "namespace": "gpu-operator"},
    "spec": {"containers": [{"name": "tool", "image": "registry.example.com/tool:1"}]},
}
MIRROR = {"kubernetesVersion": "1.34", "registryMap": {"nvcr.io": "mirror.example.com/nvcr"}}


def data(project: Project, *words: str) -> dict[str, Any]:
    """The images by their source."""
    return {image["source"]: image for image in project.run("images", *words, "--format", "json").json["images"]}


def test_drivers_have_the_tag_of_the_nodes_system(project: Project) -> None:
    """The driver's image is the one of the pool's system, of RHEL the major version (operator.md 4)."""
    project.policy("one", **DRIVER)
    image = data(project)["nvcr.io/nvidia/driver:595.91.07-rhel9"]
    assert image["systems"] == [{"os": "rhel9.4", "kernel": None, "clusters": ["one"]}]
    assert {use["kind"] for use in image["uses"]} == {"DaemonSet"}
    assert "built for: rhel9.4" in project.run("images").out


def test_precompiled_drivers_have_the_kernel_too(project: Project) -> None:
    """<branch>-<kernel>-<system> is the tag of a precompiled driver (operator.md 4)."""
    pool = {**POOL, "os": "ubuntu22.04", "kernel": "5.15.0-105-generic"}
    project.policy("one", nodePools=[pool], driver={"enabled": True, "usePrecompiled": True, "version": "580"})
    image = data(project)["nvcr.io/nvidia/driver:580-5.15.0-105-generic-ubuntu22.04"]
    assert image["systems"] == [{"os": "ubuntu22.04", "kernel": "5.15.0-105-generic", "clusters": ["one"]}]


def test_variables_count(project: Project) -> None:
    """The validator starts pods of an image that it is told in a variable (operator.md 4, VALIDATOR_IMAGE)."""
    project.policy("one")
    (image,) = data(project).values()
    assert any(not use["pulled"] and ".env[" in use["path"] for use in image["uses"])


def test_mirrors_are_shown_with_their_source(project: Project) -> None:
    """What the manifests name is the mirror's; images of extraObjects are nobody's mirror."""
    project.policy("one", **DRIVER, cluster=MIRROR, extraObjects=[TOOL])
    lines = project.run("images", "--format", "list").out.splitlines()
    assert "nvcr.io/nvidia/driver:595.91.07-rhel9 mirror.example.com/nvcr/nvidia/driver:595.91.07-rhel9" in lines
    assert "registry.example.com/tool:1 registry.example.com/tool:1" in lines
    assert all(line.startswith(("nvcr.io/", "registry.example.com/tool")) for line in lines)
    assert "  mirror: mirror.example.com/nvcr/nvidia/driver:595.91.07-rhel9\n" in project.run("images").out


def test_clusters_are_told_apart(project: Project) -> None:
    """Each use says in which clusters; only the clusters that were asked for are looked at."""
    project.policy("one", **DRIVER)
    project.policy("two")
    driver = "nvcr.io/nvidia/driver:595.91.07-rhel9"
    assert {name for use in data(project)[driver]["uses"] for name in use["clusters"]} == {"one"}
    assert driver not in data(project, "two")
    assert "all 2 clusters: " in project.run("images").out


def test_bill_of_materials(project: Project) -> None:
    """The document is CycloneDX 1.6 as its schema has it: required keys, known words, unique and resolved references,
    and equal for equal fleets.
    """
    project.policy("one", **DRIVER, cluster=MIRROR)
    project.policy("two", extraObjects=[{**TOOL, "spec": {"containers": [{"name": "t", "image": DIGEST}]}}])
    first = project.run("images", "--format", "cyclonedx")
    assert first.out == project.run("images", "--format", "cyclonedx", "--no-cache").out
    bill = first.json
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert set(bill) <= {"bomFormat", "specVersion", "version", "metadata", "components", "dependencies"}
    components = [bill["metadata"]["component"], *bill["components"]]
    for component in components:
        assert set(component) <= {"type", "bom-ref", "name", "version", "purl", "hashes", "properties"}
        assert component["type"] in {"platform", "container"}
        assert component["name"]
        for digest in component.get("hashes", ()):
            assert digest["alg"] == "SHA-256"
            assert re.fullmatch("[0-9a-f]{64}", digest["content"])
        for one in component.get("properties", ()):
            assert set(one) == {"name", "value"}
    refs = [component["bom-ref"] for component in components]
    assert len(refs) == len(set(refs))
    for row in bill["dependencies"]:
        assert {row["ref"], *row["dependsOn"]} <= set(refs)
        assert len(row["dependsOn"]) == len(set(row["dependsOn"]))
    by_name = {component["name"]: component for component in components}
    assert by_name["nvcr.io/nvidia/driver"]["purl"] == (
        "pkg:oci/driver?repository_url=nvcr.io/nvidia/driver&tag=595.91.07-rhel9"
    )
    assert by_name["quay.io/team/tool"]["purl"].startswith("pkg:oci/tool@sha256%3Aaaaa")


DIGEST = "quay.io/team/tool@sha256:" + "a" * 64


def test_a_policy_that_is_refused(project: Project) -> None:
    """Nothing is listed of a fleet that can't be rendered."""
    project.policy("one", nodePools=[{**POOL, "os": None}], driver={"enabled": True})
    ran = project.run("images")
    assert (ran.code, ran.out) == (2, "")
    assert "GPU051" in ran.err
    assert "such as ubuntu22.04" in ran.err


def test_an_os_for_openshift(project: Project) -> None:
    """Nodes of OpenShift have its own system, so that is the example of an os."""
    cluster = {"platform": "openshift", "containerRuntime": "cri-o", "kubernetesVersion": "1.31"}
    project.policy("one", cluster=cluster, nodePools=[{**POOL, "os": None}], driver={"enabled": True})
    ran = project.run("images")
    assert "GPU051" in ran.err
    assert "such as rhcos4." in ran.err
