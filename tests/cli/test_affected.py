"""gpustack affected: the clusters that changed files concern."""

from __future__ import annotations

import functools
import subprocess

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


def test_folders(fleet: Project) -> None:
    """A folder, as Git lists a submodule or what became a link, is all that is in it."""
    for name, clusters in (
        ("dist/c", "c"),
        ("policies", "a b c"),
        ("policies/layers", "a b"),
        (".", "a b c"),
        ("p", ""),
    ):
        assert fleet.run("affected", name).out.split() == clusters.split(), name


def test_links(fleet: Project) -> None:
    """A policy or layer that is a link changes with the file that it leads to, and with the link itself."""
    (fleet.folder / "shared").mkdir()
    for name, path in (("c.yaml", "policies/c.yaml"), ("base.yaml", "policies/layers/base.yaml")):
        (fleet.folder / path).rename(fleet.folder / "shared" / name)
        (fleet.folder / path).symlink_to(fleet.folder / "shared" / name)
    wanted = {
        "shared/c.yaml": "c",
        "policies/c.yaml": "c",
        "shared/base.yaml": "a b",
        "policies/layers/base.yaml": "a b",
    }
    for name, clusters in wanted.items():
        assert fleet.run("affected", name).out.split() == clusters.split(), name


def test_names_in_quotes(fleet: Project) -> None:
    """Git quotes names for people, which names no file: that no cluster is concerned would be wrong."""
    fleet.policy("d", file="policies/größe.yaml")
    git = functools.partial(subprocess.run, cwd=fleet.folder, check=True, capture_output=True, text=True)
    git(["git", "init", "-q"])
    git(["git", "add", "policies"])
    for word, code, out in (("-z", 0, "d"), ("--exclude=x", 4, "")):
        listed = git(["git", "-c", "core.quotepath=true", "ls-files", word, "--", "policies/gr*"]).stdout
        ran = fleet.run("affected", listed.strip("\0\n"))
        assert (ran.code, ran.out.strip()) == (code, out), ran.err
    assert fleet.run("affected", "").code == 4
