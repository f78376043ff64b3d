"""gpustack affected: the clusters that changed files concern."""

from __future__ import annotations

import pytest

from tests.project import Project


@pytest.fixture
def fleet(project: Project) -> Project:
    """Two clusters of three extend a layer, which extends another one."""
    project.layer("base")
    project.layer("eu", extends=["base"])
    project.policy("a", extends=["eu"])
    project.policy("b", extends=["base"], file="policies/file-of-b.yaml")
    project.policy("c")
    assert project.run("render").code == 0
    return project


@pytest.mark.parametrize(
    ("file", "clusters"),
    [
        ("policies/a.yaml", "a"),
        ("policies/file-of-b.yaml", "b"),
        ("policies/layers/eu.yaml", "a"),
        ("policies/layers/base.yaml", "a b"),
        ("policies/waivers.yaml", "a b c"),
        ("dist/c/base/x.yaml", "c"),
        ("dist/.index/c.json", "c"),
        ("dist/.gitops/flux/c/x.yaml", "c"),
        ("dist/.gitops/flux/cc/x.yaml", ""),
        ("dist/cc/base/x.yaml", ""),
        ("README.md", ""),
        ("policies/new.yaml", ""),
    ],
)
def test_what_a_file_concerns(fleet: Project, file: str, clusters: str) -> None:
    """By its path from here, or from the root."""
    for name in (file, fleet.folder / file):
        ran = fleet.run("affected", name)
        assert (ran.code, ran.out.split()) == (0, clusters.split())


def test_what_is_gone(fleet: Project) -> None:
    """A policy that was deleted concerns its cluster, a layer that was deleted those that still name it."""
    (fleet.folder / "policies" / "c.yaml").unlink()
    (fleet.folder / "policies" / "layers" / "eu.yaml").unlink()
    assert fleet.run("affected", "policies/c.yaml", "policies/layers/eu.yaml").out.split() == ["a", "c"]


def test_json(fleet: Project) -> None:
    """The same for programs."""
    assert fleet.run("affected", "policies/a.yaml", "--format", "json").json["clusters"] == ["a"]
