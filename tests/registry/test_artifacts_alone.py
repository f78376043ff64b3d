"""Manifests that are in an OCI artifact alone (`gitops.repository.dist: oci`).

Git has an index with a digest, and every verb says what it says of files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gpustack.registry.artifact import files_in
from gpustack.registry.reference import digest_of
from tests.project import ROOT, TODAY, Project
from tests.registry.test_push import GIT, git, pull

HEADER = b"# Rendered by gpustack from policies/one.yaml"


def gitops(host: str, name: str, dist: str = "oci") -> dict[str, Any]:
    """A section that lets Flux read the cluster NAME from the registry HOST."""
    return {"engine": "flux", "repository": {"url": f"oci://{host}/gpu/{name}", "dist": dist}}


@pytest.fixture
def fleet(project: Project, host: str) -> Project:
    """Three clusters in artifacts alone, `one` and `two` of one spec but for the address, rendered and committed."""
    for name in ("one", "two", "three"):
        more: dict[str, Any] = {"dcgmExporter": {"enabled": True}} if name == "three" else {}
        project.policy(name, gitops=gitops(host, name), **more)
    assert project.run("render").code == 0
    git(project, "init", "-q")
    commit(project)
    return project


def commit(project: Project) -> str:
    """Commit all that is there; the commit's id."""
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "x")
    return git(project, "rev-parse", "HEAD")


def told(project: Project, what: str = "groups") -> list[dict[str, Any]]:
    """WHAT diff tells of the work tree: groups of changes, or what they do, files in other words aside."""
    found: list[dict[str, Any]] = project.run("diff", "--base", "HEAD", "--format", "json", env=GIT).json[what]
    return [each for each in found if each.get("rule") != "IMP906"]


def index(project: Project, name: str) -> dict[str, Any]:
    """The index of a cluster."""
    listed: dict[str, Any] = json.loads((project.dist / f".index/{name}.json").read_text())
    return listed


def test_git_has_an_index_and_no_manifests(fleet: Project) -> None:
    """The digest, the number of objects and the release; the engine's own objects are files as ever. A second render
    writes nothing, and doesn't even look at a stack; check agrees. Whoever needs files gets them elsewhere.
    """
    assert not (fleet.dist / "one").exists()
    assert (fleet.dist / ".gitops/flux/one").is_dir()
    listed = index(fleet, "one")
    assert listed["files"] == {}
    assert listed["artifact"]["objects"] > 10
    assert listed["artifact"]["release"] == "v26.7.0"
    assert fleet.run("render").out == "3 clusters rendered into dist, 0 changed\n"
    assert fleet.run("check").code == 0
    with mock.patch("gpustack.compiler.fleet.rendered", side_effect=AssertionError("looked at a stack")):
        assert fleet.run("render", "--jobs", "1").code == 0
    assert fleet.run("render", "one", "--own-version", "--out", "../files").code == 0
    assert len([*(fleet.folder / "../files/one").rglob("*.yaml")]) == listed["artifact"]["objects"]


def test_what_is_pushed_is_what_the_index_says(fleet: Project, host: str) -> None:
    """The layer has the digest that was reviewed, and holds what files would hold but for their headers; the revision
    is the commit that changed this cluster, not the last one.
    """
    before = git(fleet, "rev-parse", "HEAD")
    fleet.policy("three", gitops=gitops(host, "three"), dcgmExporter={"enabled": True, "hostNetwork": True})
    fleet.run("render")
    commit(fleet)
    ran = fleet.run("push", "--all", "--format", "json", env=GIT)
    assert ran.code == 0, ran.err
    manifest, layer = pull(f"{host}/gpu/one:latest")
    assert digest_of(layer) == index(fleet, "one")["artifact"]["digest"]
    assert manifest["annotations"]["org.opencontainers.image.revision"] == f"sha1:{before}"
    fleet.policy("one", gitops=gitops(host, "one", "files"))
    fleet.run("render", "one")
    files = {
        str(path.relative_to(fleet.dist / "one")): path.read_bytes().partition(b"\n")[2]
        for path in (fleet.dist / "one").rglob("*.yaml")
    }
    assert files_in(layer) == files


def test_only_what_was_reviewed_is_pushed(fleet: Project, host: str) -> None:
    """A policy that renders to something else than the index says, and an index that was edited, are refused; check
    names the index, and doesn't say of a cluster that has one that it was never rendered.
    """
    fleet.policy("one", gitops=gitops(host, "one"), dcgmExporter={"enabled": True})
    fleet.policy("four", gitops=gitops(host, "four"))
    assert fleet.run("check").out == "never rendered: four (4 files)\nstale: dist/.index/one.json\n"
    (fleet.folder / "policies/four.yaml").unlink()
    ran = fleet.run("push", "one", "--dry-run", env=GIT)
    assert ran.code == 3
    assert "dist/.index/one.json has another digest than what the policies render to" in ran.err
    git(fleet, "checkout", "policies")
    path = fleet.dist / ".index/one.json"
    path.write_text(path.read_text().replace(index(fleet, "one")["artifact"]["digest"], f"sha256:{'0' * 64}"))
    assert fleet.run("push", "one", "--dry-run", env=GIT).code == 3
    assert fleet.run("check").code == 3


def test_validate_looks_at_what_is_in_the_artifact(fleet: Project) -> None:
    """kubeconform sees the objects of each, and is asked once for those that are equal."""
    ran = fleet.run("validate", "--format", "json", "--kubeconform", ROOT / ".tools/bin/kubeconform")
    assert (ran.code, ran.json["findings"]) == (0, []), ran.err
    objects = {name: index(fleet, name)["artifact"]["objects"] for name in ("one", "three")}
    assert ran.json["files"] >= sum(objects.values())


def change(project: Project, host: str, dist: str, **more: Any) -> Any:
    """What diff says of a change of cluster `three`, whose manifests are in DIST before and after."""
    for name in ("one", "two", "three"):
        own: dict[str, Any] = {"dcgmExporter": {"enabled": True}} if name == "three" else {}
        project.policy(name, gitops=gitops(host, name, dist), **own)
    project.run("render")
    git(project, "init", "-q")
    commit(project)
    project.policy("three", gitops=gitops(host, "three", dist), dcgmExporter={"enabled": True, **more})
    project.run("render")
    ran = project.run("diff", "--base", "HEAD", "--format", "json", env=GIT)
    assert ran.code in {0, 1}, ran.err
    return ran.json


@pytest.mark.parametrize("more", [{"hostNetwork": True}, {"args": ["-f", "/x"]}])
def test_a_review_loses_nothing(project: Project, host: str, tmp_path: Path, more: dict[str, Any]) -> None:
    """A change is told in the same words, groups and tiers as where the manifests are files."""
    other = Project(tmp_path / "other", project.cache)
    other.folder.mkdir()
    ours, theirs = change(project, host, "oci", **more), change(other, host, "files", **more)
    for side in (ours, theirs):
        side.pop("before", None)
    assert ours["groups"]
    assert {**ours, "titles": 0} == {**theirs, "titles": 0}


def test_from_files_into_the_artifact_and_back(fleet: Project, host: str) -> None:
    """Moving changes no object: the review tells the field alone, and no file that is gone; files go, and come back."""
    fleet.policy("one", gitops=gitops(host, "one", "files"))
    assert fleet.run("render").code == 0
    assert (told(fleet), {each["rule"] for each in told(fleet, "impact")}) == ([], {"IMP905"})
    commit(fleet)
    assert len([*(fleet.dist / "one").rglob("*.yaml")]) > 10
    fleet.policy("one", gitops=gitops(host, "one"))
    assert fleet.run("render").code == 0
    assert not (fleet.dist / "one").exists()
    assert (told(fleet), {each["rule"] for each in told(fleet, "impact")}) == ([], {"IMP905"})


def test_another_version_of_gpustack(fleet: Project, host: str) -> None:
    """What was merged was rendered by a version that came to another digest: that is told as power, since the
    difference doesn't show what the version changes; with --registry the merged manifests are read, and it does.
    """
    fleet.policy("three", gitops=gitops(host, "three"), dcgmExporter={"enabled": True, "hostNetwork": True})
    fleet.run("render")
    commit(fleet)
    assert fleet.run("push", "--all", env=GIT).code == 0
    pushed = index(fleet, "three")["artifact"]["digest"]
    # The same policy as before, with the digest of what "another version" made of it and pushed.
    fleet.policy("three", gitops=gitops(host, "three"), dcgmExporter={"enabled": True})
    fleet.run("render")
    path = fleet.dist / ".index/three.json"
    path.write_text(path.read_text().replace(index(fleet, "three")["artifact"]["digest"], pushed))
    commit(fleet)
    fleet.run("render")
    found = [each for each in told(fleet, "impact") if each["rule"] == "IMP005"]
    assert [each["tier"] for each in found] == [1]
    assert "three" in found[0]["what"]
    assert ({each["rule"] for each in told(fleet, "impact")}, told(fleet)) == ({"IMP005"}, [])  # nothing else is known
    # An owner who accepts it accepts it for these digests.
    words = ("--by", "o@example.com", "--until", "2026-12-01", "--why", "another version", "--today", TODAY)
    assert fleet.run("accept", found[0]["id"], *words, env=GIT).code == 0
    assert fleet.run("diff", "--fail-on", "outage", "--today", TODAY, env=GIT).code == 0
    (fleet.folder / "acceptances.yaml").unlink()
    # A policy that is another now doesn't hide that.
    fleet.policy("three", gitops=gitops(host, "three"), dcgmExporter={"enabled": True, "args": ["-f", "/x"]})
    fleet.run("render")
    assert [each["tier"] for each in told(fleet, "impact") if each["rule"] == "IMP005"] == [1]
    fleet.policy("three", gitops=gitops(host, "three"), dcgmExporter={"enabled": True})
    fleet.run("render")
    ran = fleet.run("diff", "--base", "HEAD", "--registry", "--format", "json", env=GIT)
    assert ran.code == 1, ran.err
    assert "IMP005" not in {each["rule"] for each in ran.json["impact"]}
    assert "hostNetwork" in json.dumps(ran.json["groups"])


def test_one_address_in_a_layer_for_all(project: Project, host: str) -> None:
    """With {cluster} in it the address stands in a layer, and clusters of one shape are one compilation; what is
    written, pushed and applied by hand is, to the byte, that of policies that spell the address out.
    """
    before = len([*project.cache.glob("*/stack/*/*")])
    project.layer("base", gitops=gitops(host, "{cluster}"))
    for name in ("one", "two", "a.b", "true-1"):
        project.policy(name, extends=["base"])
    assert project.run("render").code == 0
    assert len([*project.cache.glob("*/stack/*/*")]) == before + 1
    shared = project.tree()
    ran = project.run("push", "--all", "--format", "json")
    pushed = {each["cluster"]: each["reference"] for each in ran.json["artifacts"]}
    assert pushed == {name: f"oci://{host}/gpu/{name}:latest" for name in ("one", "two", "a.b", "true-1")}
    assert pull(f"{host}/gpu/two:latest")[1] == pull(f"{host}/gpu/one:latest")[1]
    root = project.run("bootstrap", "two").out
    told = project.run("explain", "two", "gitops.repository.url").out
    assert f"which is oci://{host}/gpu/two\n" in told
    for name in ("one", "two", "a.b", "true-1"):
        project.policy(name, extends=["base"], gitops=gitops(host, name))
    assert project.run("render", "--no-cache").out == "4 clusters rendered into dist, 0 changed\n"
    assert {path: text for path, text in project.tree().items() if path.startswith("dist/")} == {
        path: text for path, text in shared.items() if path.startswith("dist/")
    }
    assert project.run("bootstrap", "two").out == root


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("oci://{}/gpu/{{name}}", "the address has braces that nothing replaces"),
        ("oci://{}/gpu/{{cluster}}/{{", "the address has braces that nothing replaces"),
        ("https://{}/gpu/{{cluster}}.git", "a Git repository is not a cluster's own"),
    ],
)
def test_other_places_for_a_name(project: Project, host: str, url: str, what: str) -> None:
    """Nothing else is replaced in an address, and nothing in that of a Git repository."""
    project.policy("one", gitops={"engine": "flux", "repository": {"url": url.format(host)}})
    ran = project.run("render")
    assert (ran.code, "GPU833" in ran.err, what in ran.err) == (2, True, True), ran.err


def test_without_an_artifact_it_is_refused(project: Project) -> None:
    """`dist: oci` with a repository of Git has no place for the manifests."""
    repository = {"url": "https://git.example.com/gpu.git", "dist": "oci"}
    project.policy("one", gitops={"engine": "flux", "repository": repository})
    ran = project.run("render")
    assert ran.code == 2
    assert "GPU833" in ran.err
    assert "without an OCI artifact nothing holds the manifests" in ran.err


def test_an_artifact_is_made_without_the_network() -> None:
    """Each worker of a render makes digests of artifacts, and loads no HTTP library for it: that takes far longer."""
    code = "import sys, gpustack.registry.artifact; sys.exit(sum(name in sys.modules for name in ('httpx2', 'ssl')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
