"""gpustack diff shows the objects of Argo CD and Flux like all else, wherever a side comes from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpustack.compiler.engine import STAND_IN, EngineTexts, engine_files, planned
from tests.cli.test_diff import commit, git
from tests.gitops.common import policy
from tests.project import Project

URL, OTHER = "https://git.example.com/gpu/clusters.git", "https://git.example.com/gpu/other.git"
CLUSTERS = ("one", "two", "main")
OBJECT = json.dumps([["base", "x", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}]])
"""The objects of a component, as they are kept."""
SPACES = {"one": "gpu-operator", "two": "gpu-operator", "main": "nvidia"}


def engine(url: str = URL, which: str = "argocd", name: str = "one", **more: Any) -> dict[str, Any]:
    """The section of a policy; the destination is called as the cluster is."""
    destination = {"argocd": {"destination": {"name": name}, **more}} if which == "argocd" else {"flux": more}
    return {"engine": which, "repository": {"url": url, "revision": "main"}, **destination}


def policies(project: Project, **how: Any) -> None:
    """A policy for each cluster."""
    for name in CLUSTERS:
        project.policy(
            name, cluster={"kubernetesVersion": "1.34", "namespace": SPACES[name]}, gitops=engine(name=name, **how)
        )


@pytest.fixture
def merged(project: Project) -> Project:
    """A project whose clusters Argo CD syncs, rendered and committed."""
    git(project.folder, "init", "-q", "-b", "main")
    policies(project)
    assert project.run("render").code == 0
    commit(project)
    return project


def from_git(merged: Project, tmp_path: Path) -> tuple[Any, ...]:
    """dist/ in Git."""
    return ()


def without_dist(merged: Project, tmp_path: Path) -> tuple[Any, ...]:
    """A base whose dist/ is not in Git."""
    git(merged.folder, "rm", "-r", "-q", "--cached", "dist")
    git(merged.folder, "commit", "-q", "-m", "without dist")
    return ()


def folders(merged: Project, tmp_path: Path) -> tuple[Any, ...]:
    """Two folders."""
    shutil.copytree(merged.dist, tmp_path / "old")
    return (tmp_path / "old", merged.dist)


@pytest.mark.parametrize("sides", [from_git, without_dist, folders])
def test_a_change_of_the_engines_objects_is_one_group(
    merged: Project, tmp_path: Path, sides: Callable[[Project, Path], tuple[Any, ...]]
) -> None:
    """Another repository for three clusters, with two namespaces, is one change, and none of the clusters' objects."""
    words = sides(merged, tmp_path)
    policies(merged, url=OTHER)
    if words:
        assert merged.run("render").code == 0
    ran = merged.run("diff", *words, "--format", "json")
    (group,) = json.loads(ran.out)["groups"]
    assert group["clusters"] == sorted(CLUSTERS)
    assert {(change["engine"], change["kind"], change["name"]) for change in group["changes"]} == {
        ("argocd", "AppProject", "gpustack-<cluster>"),
        ("argocd", "Application", "gpustack-<cluster>"),
    }
    assert {change["file"] for change in group["changes"]} == {
        ".gitops/argocd/<cluster>/appproject-gpustack-<cluster>.yaml",
        ".gitops/argocd/<cluster>/application-gpustack-<cluster>.yaml",
    }


def test_every_format_shows_them(merged: Project) -> None:
    """One cluster's change has its names written out, in every format and in the report."""
    merged.policy("two", gitops=engine(url=OTHER, name="two"))
    for how in ("text", "markdown", "html", "json", "unified"):
        told = merged.run("diff", "--format", how).out
        assert "gpustack-two" in told, how
        assert "<cluster>" not in told, how
    assert merged.run("report", "--base", "HEAD").code == 0
    assert "Application argocd/gpustack-two" in (merged.folder / "report.html").read_text("utf-8")


def test_nothing_changed(merged: Project) -> None:
    """Engines' objects that are as they were are no difference, whether dist/ is in Git or not."""
    assert merged.run("diff").out == "no difference in 3 clusters\n"
    without_dist(merged, merged.folder)
    assert merged.run("diff").out == "no difference in 3 clusters\n"


def test_rendered_objects_that_somebody_edited(merged: Project) -> None:
    """What stands in Git counts: an edit there is a difference to what the policies render to."""
    path = merged.dist / ".gitops" / "argocd" / "two" / "application-gpustack-two.yaml"
    path.write_text(path.read_text("utf-8").replace("prune: true", "prune: false"), "utf-8")
    commit(merged)
    ran = merged.run("diff")
    assert (ran.code, "1 of 3 clusters: two (1 changed)" in ran.out) == (1, True)


NAMES = ("one", "1", "true", "1e3", "0x1", "no", "a.b", STAND_IN, "gpustack", "argocd", "x" * 43, "x" * 44, "x" * 60)
OTHERS = {"kubeConfig": {"secretName": "x"}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("which", "more"), [("argocd", {}), ("flux", {}), ("flux", OTHERS)])
@pytest.mark.parametrize("path", [".", "dist"])
def test_texts_of_many_clusters_are_those_that_are_written(
    name: str, which: str, more: dict[str, Any], path: str
) -> None:
    """A text in which a name was put in another's place is, to the byte, what render writes for the cluster."""
    section = engine(which=which, **more)
    section["repository"]["path"] = path
    plan = planned(policy(section), [OBJECT])
    texts = EngineTexts(plan).of(name)
    assert texts == engine_files(plan, name)
