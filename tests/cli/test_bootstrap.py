"""gpustack bootstrap: prints the root that a person applies once; and the engine's objects as verbs treat them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.odd import ODD, make_odd
from tests.project import ROOT, Project

__all__ = ["Project"]

HERE = "https://kubernetes.default.svc"
TOOL = ROOT / ".tools/bin/kubeconform"
URL = "https://git.example.com/gpu.git"
FILE = ".gitops/argocd/a/application-gpustack-a.yaml"


def argocd(**destination: str) -> dict[str, Any]:
    """A section for Argo CD."""
    return {"engine": "argocd", "repository": {"url": URL}, "argocd": {"destination": destination}}


FLUX = {"engine": "flux", "repository": {"url": URL}}


def paths(text: str) -> list[str]:
    """What the Applications or Kustomizations of TEXT sync."""
    bodies = list(yaml.safe_load_all(text))
    specs = [body["spec"] for body in bodies if body["kind"] in {"Application", "Kustomization"}]
    return [spec["source"]["path"] if "source" in spec else spec["path"] for spec in specs]


def test_one_cluster(project: Project) -> None:
    """The root of a cluster syncs what was rendered for it; nothing is written."""
    project.policy("a", gitops=argocd(name="a"))
    project.policy("b", gitops=FLUX)
    first, second = project.run("bootstrap", "a"), project.run("bootstrap", "b")
    assert paths(first.out) == ["dist/.gitops/argocd/a"]
    assert paths(second.out) == ["./dist/.gitops/flux/b"]
    assert first.out.startswith("# Syncs dist/.gitops/argocd/a,")
    assert (first.code, first.err, second.code, second.err) == (0, "", 0, "")
    assert not project.dist.exists()


@pytest.mark.parametrize(
    "gitops",
    [
        argocd(name="a"),
        FLUX,
        {**argocd(name="a"), "repository": {"url": "oci://registry.example.com/a"}},
        {**FLUX, "repository": {"url": "oci://registry.example.com/a"}},
    ],
    ids=["argocd", "flux", "argocd-oci", "flux-oci"],
)
def test_each_object_says_what_it_is(project: Project, gitops: dict[str, Any]) -> None:
    """Above each object that a person is to apply stands what it is, Argo CD's script included."""
    project.policy("a", gitops=gitops)
    ran = project.run("bootstrap", "a")
    assert ran.code == 0, ran.err
    for text, body in zip(ran.out.split("---\n"), yaml.safe_load_all(ran.out), strict=True):
        above, _, _ = text.partition(f"apiVersion: {body['apiVersion']}\n")
        said = [line for line in above.splitlines() if not line.startswith(("# Syncs", "#   "))]
        assert said, body["kind"]
        assert all(line.startswith("# ") for line in said), body["kind"]
    assert ("health of a NodePolicy" in ran.out) == (gitops["engine"] == "argocd")


def test_one_argo_cd_for_all(project: Project) -> None:
    """Clusters of one Argo CD share a root; those without an engine are not concerned."""
    for name in ("a", "b"):
        project.policy(name, gitops=argocd(name=name))
    project.policy("c")
    assert paths(project.run("bootstrap").out) == ["dist/.gitops/argocd"]


@pytest.mark.parametrize(
    ("gitops", "path"),
    [
        (argocd(name="a"), "dist/.gitops/argocd"),
        (argocd(server=HERE), "dist/.gitops/argocd/a"),
        (FLUX, "./dist/.gitops/flux/a"),
    ],
    ids=["elsewhere", "inside", "flux"],
)
def test_one_cluster_so_far(project: Project, gitops: dict[str, Any], path: str) -> None:
    """Without a name the first cluster gets the root that the second one shares, where clusters can share one; whoever
    names it gets its own.
    """
    project.policy("a", gitops=gitops)
    first, own = project.run("bootstrap"), project.run("bootstrap", "a")
    assert paths(first.out) == [path]
    assert paths(own.out)[0].endswith("/a")
    if gitops == argocd(name="a"):
        project.policy("b", gitops=argocd(name="b"))
        assert project.run("bootstrap").out == first.out


def test_one_flux_for_many(project: Project) -> None:
    """With kubeConfig the roots of all clusters are printed one after the other, each with a name of its own, for the
    cluster in which Flux runs; one of them alone for who names it. What they apply stays there: no root goes elsewhere.
    """
    for name in ("a", "b"):
        project.policy(name, gitops={**FLUX, "flux": {"kubeConfig": {"secretName": f"{name}-kubeconfig"}}})
    project.policy("c")
    ran = project.run("bootstrap")
    assert (ran.code, ran.err) == (0, "")
    assert paths(ran.out) == ["./dist/.gitops/flux/a", "./dist/.gitops/flux/b"]
    bodies = list(yaml.safe_load_all(ran.out))
    assert len({(body["kind"], body["metadata"]["name"]) for body in bodies}) == len(bodies) == 4
    assert not any("kubeConfig" in body["spec"] for body in bodies)
    assert ran.out.count("to the cluster in which Flux runs") == 2
    assert paths(project.run("bootstrap", "b").out) == ["./dist/.gitops/flux/b"]


def test_one_flux_beside_others(project: Project) -> None:
    """A cluster with a Flux of its own has its root there: the two are not printed together."""
    project.policy("a", gitops={**FLUX, "flux": {"kubeConfig": {"secretName": "a"}}})
    project.policy("b", gitops=FLUX)
    assert "GPU039" in project.run("bootstrap").err
    assert "to the cluster b:" in project.run("bootstrap", "b").out


@pytest.mark.parametrize(
    "other",
    [
        FLUX,
        argocd(server=HERE),
        {**argocd(name="b"), "repository": {"url": "https://git.example.com/other.git"}},
        {**argocd(name="b"), "argocd": {"destination": {"name": "b"}, "namespace": "gitops"}},
        {**argocd(name="b"), "repository": {"url": "oci://registry.example.com/b"}},
    ],
    ids=["flux", "inside", "repository", "namespace", "artifact"],
)
def test_no_root_in_common(project: Project, other: dict[str, Any]) -> None:
    """Where one root can't serve all, the person is told which names there are."""
    project.policy("a", gitops=argocd(name="a"))
    project.policy("b", gitops=other)
    ran = project.run("bootstrap")
    assert ran.code == 4
    assert "GPU039" in ran.err
    assert "name one of them: a, b" in ran.err


def test_a_word_for_several(project: Project) -> None:
    """Where one cluster is wanted, who means several is told which there are."""
    for name in ("b1", "a", "b2"):
        project.policy(name, gitops=FLUX)
    ran = project.run("bootstrap", "b*")
    assert (ran.code, "GPU033" in ran.err, "name one of them: b1, b2" in ran.err) == (4, True, True), ran.err


@pytest.mark.parametrize("words", [[], ["a"]])
def test_no_engine(project: Project, words: list[str]) -> None:
    """Without an engine there is no root."""
    project.policy("a")
    ran = project.run("bootstrap", *words)
    assert (ran.code, "GPU038" in ran.err) == (4, True)


def test_written_checked_validated_and_pruned(project: Project) -> None:
    """The engine's objects are written beside the clusters; check tells when one is changed, missing or left over;
    validate looks at each; they go with the engine, and with the policy."""
    project.policy("a", gitops=argocd(name="a"))
    project.policy("b")
    assert project.run("render").code == 0
    file = project.dist / FILE
    good = file.read_bytes()
    assert good.startswith(b"# Rendered by gpustack from policies/a.yaml;")
    count = len([path for path in project.tree() if path.endswith(".yaml")])
    assert project.run("validate", "--kubeconform", TOOL).out == f"{count} files of 2 clusters are valid\n"
    assert project.run("check").code == 0

    file.write_bytes(good.replace(b"prune: true", b"prune: false"))
    ran = project.run("check")
    assert (ran.code, f"stale: dist/{FILE}" in ran.out) == (3, True)
    assert project.run("render").code == 0
    assert file.read_bytes() == good

    file.unlink()
    missing = project.run("validate", "--kubeconform", TOOL)
    assert (missing.code, f"{FILE} is missing" in missing.err) == (2, True)
    assert project.run("check").code == 3
    assert project.run("render").code == 0
    assert file.read_bytes() == good

    project.policy("a", gitops=FLUX)
    assert f"left over: dist/{FILE}" in project.run("check").out
    assert project.run("render").code == 0
    assert [path.name for path in (project.dist / ".gitops").iterdir()] == ["flux"]
    assert project.run("check").code == 0

    (project.folder / "policies/a.yaml").unlink()
    assert "left over: dist/.gitops/flux/a/" in project.run("check").out
    assert project.run("render").code == 0
    assert not (project.dist / ".gitops").exists()
    assert sorted(path.name for path in project.dist.iterdir()) == [".index", "b"]


def test_refused_by_kubeconform(project: Project) -> None:
    """An engine's object that is changed by hand into one that its schema refuses is found."""
    project.policy("a", gitops=argocd(name="a"))
    project.run("render")
    file = project.dist / FILE
    file.write_bytes(file.read_bytes().replace(b"  project:", b"  projekt:"))
    ran = project.run("validate", "--kubeconform", TOOL)
    assert (ran.code, "GPU903" in ran.err) == (2, True)


def test_files_of_others_stay(project: Project) -> None:
    """A file that somebody else put beside the engine's objects is refused and stays, also when the cluster goes."""
    project.policy("a", gitops=argocd(name="a"))
    project.policy("b")
    project.run("render")
    project.write("dist/.gitops/argocd/a/mine.yaml", "kind: Mine\n")
    ran = project.run("check")
    assert (ran.code, "dist/.gitops/argocd/a/mine.yaml" in ran.err + ran.out) == (3, True)
    (project.folder / "policies/a.yaml").unlink()
    assert project.run("render").code == 0
    assert [path for path in project.tree() if path.startswith(".gitops")] == [".gitops/argocd/a/mine.yaml"]


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("place", [".gitops", ".gitops/argocd", ".gitops/argocd/a", FILE])
def test_odd_things_in_the_way(project: Project, place: str, what: str) -> None:
    """A link, a pipe or another thing in the place of a folder or file is refused or replaced, and nothing is written
    through it; there is no traceback."""
    outside = project.folder / "outside"
    outside.mkdir()
    project.policy("a", gitops=argocd(name="a"))
    path = project.dist / place
    path.parent.mkdir(parents=True)
    make_odd(path, what)
    ran = project.run("render")
    assert ran.code in {0, 4}, ran.err
    assert list(outside.iterdir()) == []
    if ran.code == 0:
        assert (project.dist / FILE).read_bytes().startswith(b"# Rendered by gpustack")


def test_a_link_leads_nowhere(project: Project) -> None:
    """A link to a folder elsewhere, in the place of a folder of ours, is refused with its name."""
    (project.folder / "outside").mkdir()
    project.policy("a", gitops=argocd(name="a"))
    project.dist.mkdir()
    (project.dist / ".gitops").symlink_to("../outside")
    ran = project.run("render")
    assert (ran.code, "dist/.gitops is not a folder" in ran.err) == (4, True)
    assert list((project.folder / "outside").iterdir()) == []


def test_half_written_files_are_swept(project: Project) -> None:
    """What a killed render had half written is gone after the next one."""
    project.policy("a", gitops=argocd(name="a"))
    project.run("render")
    half = project.write("dist/.gitops/argocd/a/.gpustack-application.yaml", "half")
    assert project.run("render").code == 0
    assert not half.exists()


def test_a_touched_file_is_seen_without_a_policy_change(project: Project) -> None:
    """The memory of how a folder looked covers the engine's objects: a warm render repairs one that was changed."""
    project.policy("a", gitops=argocd(name="a"))
    project.run("render")
    assert project.run("render").out.endswith("0 changed\n")
    (project.dist / FILE).write_text("changed")
    assert "a: 1 written" in project.run("render").out
