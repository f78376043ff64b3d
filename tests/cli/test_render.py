"""gpustack render: which policies it takes, what it leaves in dist/, and what it says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.project import REFUSED, WARNED, Project, policy, tree


def test_renders_all_policies(project: Project) -> None:
    """Without arguments every policy is rendered, each into its own folder with an index beside it; a second run
    changes nothing."""
    project.policy("a")
    project.policy("b")
    first = project.run("render")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[-1] == "2 clusters rendered into dist, 2 changed"
    tree = project.tree()
    assert {path.split("/")[0] for path in tree} == {"a", "b", ".index"}
    again = project.run("render")
    assert (again.code, again.out) == (0, "2 clusters rendered into dist, 0 changed\n")
    assert project.tree() == tree


def test_removed_clusters_are_no_rendered_ones(project: Project) -> None:
    """One policy goes and three come: three are rendered, and the fourth is counted as what it is."""
    project.policy("old")
    project.run("render")
    (project.folder / "policies" / "old.yaml").unlink()
    for name in ("a", "b", "c"):
        project.policy(name)
    done = project.run("render")
    assert done.out.splitlines()[-1] == "3 clusters rendered into dist, 3 changed, 1 removed"
    assert project.run("render").out == "3 clusters rendered into dist, 0 changed\n"


def test_every_file_says_where_it_comes_from(project: Project) -> None:
    """The first line names the policy below the project's folder, and how the file is changed."""
    project.policy("a")
    project.run("render")
    for path, content in project.tree().items():
        if path.endswith(".yaml"):
            first = content.split(b"\n")[0].decode()
            assert first == '# Rendered by gpustack from policies/a.yaml; change that and run "gpustack render".'


def test_a_policy_anywhere(project: Project, tmp_path: Path) -> None:
    """A path to a policy renders that policy, wherever it is and with no policies/ here, into the folder of --out; of a
    file from elsewhere only the name is written."""
    file = tmp_path / "elsewhere" / "x.yaml"
    file.parent.mkdir()
    file.write_text(policy("mine"))
    out = tmp_path / "y"
    done = project.run("render", file.resolve(), "--out", out)
    assert (done.code, done.err) == (0, "")
    assert not project.dist.exists()
    content = (out / "mine/base/namespace-gpu-operator.yaml").read_bytes()
    assert content.startswith(b"# Rendered by gpustack from x.yaml; ")
    assert str(tmp_path).encode() not in b"".join(project.tree(out).values())


def test_layers_of_a_policy_anywhere(project: Project, tmp_path: Path) -> None:
    """Layers are those beside the policy, not those beside the working folder."""
    other = Project(tmp_path / "other", project.cache)
    other.layer("base", daemonsets={"labels": {"layer": "other"}})
    file = other.policy("a", extends=["base"])
    project.layer("base", daemonsets={"labels": {"layer": "mine"}})
    assert project.run("render", file).code == 0
    text = b"".join(project.tree().values())
    assert b"layer: other" in text
    assert b"layer: mine" not in text


@pytest.mark.parametrize(
    ("words", "clusters"),
    [
        (["prod-a"], {"prod-a"}),
        (["prod-*"], {"prod-a", "prod-b"}),
        (["prod-?", "lab"], {"prod-a", "prod-b", "lab"}),
        (["policies/lab.yaml"], {"lab"}),
        (["lab", "policies/lab.yaml", "./policies/lab.yaml"], {"lab"}),
        (["odd"], {"odd"}),
        (["stem"], {"odd"}),
    ],
)
def test_which_policies_an_argument_means(project: Project, words: list[str], clusters: set[str]) -> None:
    """A cluster's name, a glob over names, or a file; a file that is meant twice is rendered once. The name counts, not
    the file's, which is for those who know no other."""
    for name in ("prod-a", "lab"):
        project.policy(name)
    project.policy("prod-b", file="policies/b.yml")
    project.policy("odd", file="policies/stem.yaml")
    absolute = [str(project.folder / word) for word in words if word.startswith("policies/")]
    done = project.run("render", *words, *absolute, "--format", "json")
    assert {cluster["name"] for cluster in done.json["clusters"]} == clusters


def test_a_name_wins_over_a_file_name(project: Project) -> None:
    """Where one cluster is called like the file of another, its name means the cluster."""
    project.policy("b", file="policies/a.yaml")
    project.policy("c", file="policies/b.yaml")
    assert [cluster["name"] for cluster in project.run("render", "b", "--format", "json").json["clusters"]] == ["b"]


@pytest.mark.parametrize("word", ["prod-ax", "lab*", "policies", "Prod-a", ""])
def test_a_typo_is_an_error(project: Project, word: str) -> None:
    """What no cluster is called is exit 4 with the names that there are, never "0 clusters rendered"; the nearest is
    proposed."""
    project.policy("prod-a")
    done = project.run("render", word)
    assert (done.code, done.out) == (4, "")
    assert "prod-a" in done.err
    if word == "prod-ax":
        assert "did you mean prod-a?" in done.err
    assert not project.dist.exists()


def test_no_policy_is_an_error(project: Project) -> None:
    """Neither without policies/ nor with an empty one is anything rendered, and above all nothing pruned: it is the
    wrong folder, or a checkout that went wrong."""
    project.policy("a")
    project.run("render")
    before = project.tree()
    (project.folder / "policies/a.yaml").unlink()
    for verb in ("render", "check"):
        empty = project.run(verb)
        assert (empty.code, "holds no policy" in empty.err) == (4, True)
    (project.folder / "policies").rmdir()
    for verb in ("render", "check"):
        gone = project.run(verb)
        assert gone.code == 4
        assert "policies" in gone.err
    assert project.tree() == before


def test_a_layer_is_no_policy(project: Project) -> None:
    """A layer given as a policy is exit 4, with the line that says so and where a layer belongs."""
    file = project.layer("base")
    done = project.run("render", file.relative_to(project.folder))
    assert done.code == 4
    assert "policies/layers/base.yaml:2:" in done.err
    assert "kind: PolicyLayer" in done.err


@pytest.mark.parametrize(
    "word", ["no.yaml", "policies/no.yaml", "/no/such/file.yaml", "policies/", "a" * 5000 + ".yaml"]
)
def test_a_file_that_is_none(project: Project, word: str) -> None:
    """A path that leads to no file is exit 4, whatever is wrong with it."""
    project.policy("a")
    done = project.run("render", word)
    assert done.code == 4
    assert done.err.count("error ") == 1


def test_two_policies_for_one_cluster(project: Project) -> None:
    """Two files that describe one cluster are refused: the second would overwrite the first. The place is said."""
    project.policy("a", file="policies/one.yaml")
    project.policy("a", file="policies/two.yaml")
    done = project.run("render")
    assert done.code == 4
    assert "policies/two.yaml:4:9: error GPU020" in done.err
    assert "policies/one.yaml" in done.err
    assert not project.dist.exists()


FLUX: dict[str, Any] = {"engine": "flux"}
ARGOCD: dict[str, Any] = {"engine": "argocd", "argocd": {"destination": {"name": "x"}}}
ARTIFACT = "oci://registry.example.com/gpu/fleet"


@pytest.mark.parametrize("engine", [FLUX, ARGOCD], ids=["flux", "argocd"])
def test_one_artifact_for_several_clusters(project: Project, engine: dict[str, Any]) -> None:
    """An artifact holds one cluster's manifests, so several clusters that read the same one are refused, with the line
    that says so and all their names; each time, also when their files were read before. A cluster with an address of
    its own is no part of it.
    """
    project.layer("sync", gitops={**engine, "repository": {"url": ARTIFACT}})
    for name in ("a", "b", "c"):
        project.policy(name, extends=["sync"])
        assert project.run("render", name).code == 0  # known to the cache from now on
    project.policy("d", extends=["sync"], gitops={"repository": {"url": f"{ARTIFACT}-d"}})
    for verb in ("render", "check", "render"):
        done = project.run(verb)
        assert (done.code, done.err.count("error ")) == (4, 1), done.err
        assert "policies/layers/sync.yaml" in done.err
        assert f"GPU046: 3 clusters read one artifact, {ARTIFACT}:latest: a, b, c" in done.err
    assert not (project.dist / "d").exists()


@pytest.mark.parametrize(
    "own",
    [
        lambda name: {"repository": {"url": f"{ARTIFACT}-{name}"}},
        lambda name: {"repository": {"url": ARTIFACT, "revision": name}},
        lambda name: {"repository": {"url": ARTIFACT, "path": name}},
        lambda _: {"repository": {"url": "https://git.example.com/gpu.git"}},
        lambda _: {"repository": {"url": ARTIFACT}, "flux": {"source": {"kind": "OCIRepository", "name": "gpu"}}},
    ],
    ids=["url", "tag", "folder", "git", "source"],
)
def test_artifacts_that_are_each_cluster_s_own(project: Project, own: Callable[[str], dict[str, Any]]) -> None:
    """Another address, tag or folder is another artifact's content; a Git repository holds all clusters; and a source
    that is in the cluster already is not ours to know.
    """
    for name in ("a", "b"):
        project.policy(name, gitops={**FLUX, **own(name)})
    done = project.run("render")
    assert done.code == 0, done.err


def test_nothing_is_written_when_one_policy_is_wrong(project: Project) -> None:
    """All clusters are compiled and checked before the first is written; errors of all files are told together."""
    project.policy("a")
    project.policy("b", nonsense=1)
    project.policy("c", cluster={"kubernetesVersion": "1.2"})
    project.policy("d", **REFUSED)
    done = project.run("render")
    assert done.code == 4
    assert "policies/b.yaml" in done.err
    assert "policies/c.yaml" in done.err
    assert not project.dist.exists()
    (project.folder / "policies/b.yaml").unlink()
    (project.folder / "policies/c.yaml").unlink()
    refused = project.run("render")
    assert refused.code == 2
    assert "policies/d.yaml:" in refused.err
    assert not project.dist.exists()


def test_prunes_only_a_whole_fleet(project: Project) -> None:
    """The cluster of a deleted policy goes when the whole fleet is rendered, never when clusters are named."""
    for name in ("a", "b"):
        project.policy(name)
    project.run("render")
    (project.folder / "policies/b.yaml").unlink()
    before = project.tree()
    for words in (["a"], ["*"], ["policies/a.yaml"]):
        assert project.run("render", *words).code == 0
        assert project.tree() == before
    done = project.run("render")
    assert "b: 0 written" in done.out
    assert {path for path in project.tree() if path.startswith(("b/", ".index/b"))} == set()
    assert not (project.dist / "b").exists()


@pytest.fixture
def teams(tmp_path: Path, cache: Path) -> tuple[Project, Project, Path]:
    """Two projects, each with a cluster, that were rendered into one folder beside them."""
    out = tmp_path / "shared"
    found = []
    for team in ("red", "blue"):
        (tmp_path / team).mkdir()
        project = Project(tmp_path / team, cache)
        project.policy(f"{team}-1")
        project.policy(f"{team}-2")
        assert project.run("render", "--out", "../shared").code == 0
        found.append(project)
    return found[0], found[1], out


def test_two_projects_in_one_folder(teams: tuple[Project, Project, Path]) -> None:
    """A full render removes clusters of its own project alone; those of another are not stale, and `check` names
    them."""
    red, blue, out = teams
    assert sorted(path.name for path in out.iterdir()) == [".index", "blue-1", "blue-2", "red-1", "red-2"]
    (red.folder / "policies/red-2.yaml").unlink()
    assert red.run("render", "--out", "../shared").code == 0
    assert sorted(path.name for path in out.iterdir()) == [".index", "blue-1", "blue-2", "red-1"]
    for project, others in ((red, ("blue-1", "blue-2")), (blue, ("red-1",))):
        done = project.run("check", "--out", "../shared")
        assert done.code == 0
        assert done.err.splitlines() == [
            f"not ours: ../shared/{name}, rendered from another project" for name in others
        ]


def test_a_project_in_the_folder_of_another(teams: tuple[Project, Project, Path]) -> None:
    """So it is where one project renders into the dist/ of another."""
    red, blue, _ = teams
    assert red.run("render").code == 0
    assert blue.run("render", "--out", "../red/dist").code == 0
    names = [".index", "blue-1", "blue-2", "red-1", "red-2"]
    assert sorted(path.name for path in red.dist.iterdir()) == names
    assert red.run("render").code == 0
    assert sorted(path.name for path in red.dist.iterdir()) == names
    (blue.folder / "policies/blue-2.yaml").unlink()
    assert blue.run("render", "--out", "../red/dist").code == 0
    names.remove("blue-2")
    assert sorted(path.name for path in red.dist.iterdir()) == names


def test_projects_that_moved(teams: tuple[Project, Project, Path], tmp_path: Path) -> None:
    """What marks a project is the way to it from the folder: cloned elsewhere side by side, it is the same one. Where
    they lie in another way, nothing is stale and nothing is written for it, but nothing is removed either. No name of a
    folder is written."""
    red, _, out = teams
    before = tree(out)
    assert not any(name in content for content in before.values() for name in (b"shared", tmp_path.name.encode()))
    (tmp_path / "other").mkdir()
    for path in (red.folder, out):
        shutil.copytree(path, tmp_path / "other" / path.name)
    clone = Project(tmp_path / "other/red", red.cache)
    (clone.folder / "policies/red-2.yaml").unlink()
    assert clone.run("render", "--out", "../shared").code == 0
    assert not (tmp_path / "other/shared/red-2").exists()
    for words in (["check"], ["render"]):
        assert clone.run(*words, "--out", out).code == 0
        assert tree(out) == before


def test_json(project: Project) -> None:
    """--format json prints one document and nothing else: what was written for which cluster, and all findings with the
    clusters that they are about."""
    for name in ("a", "b"):
        project.policy(name, **WARNED)
    done = project.run("render", "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = done.json
    assert (document["version"], document["exit"]) == (1, 0)
    assert [cluster["name"] for cluster in document["clusters"]] == ["a", "b"]
    assert "base/namespace-gpu-operator.yaml" in document["clusters"][0]["written"]
    warning = next(finding for finding in document["findings"] if finding["rule"] == "GPU473")
    assert (warning["severity"], warning["clusters"]) == ("warning", ["a", "b"])
    assert (warning["file"], warning["path"]) == ("policies/a.yaml", "spec.devicePlugin.enabled")
    assert isinstance(warning["line"], int)


def test_warnings_of_many_clusters_are_one(project: Project) -> None:
    """What a rule says about many clusters is said once, with their names, also when nothing had to be compiled."""
    for name in "abcdef":
        project.policy(name, **WARNED)
    for _ in range(2):
        done = project.run("render")
        assert done.err.count("GPU473") == 1
        assert "(also in b, c, d and 2 more)" in done.err


def test_long_lists_are_cut(project: Project) -> None:
    """A fleet-wide change doesn't scroll the terminal away."""
    for number in range(22):
        project.policy(f"c{number:02}")
    lines = project.run("render", "--jobs", "1").out.splitlines()
    assert lines[20:] == ["... and 2 more", "22 clusters rendered into dist, 22 changed"]


def test_changed_release_changes_no_other_cluster(project: Project) -> None:
    """Only the files that differ are written, and the report counts them."""
    project.policy("a", daemonsets={"labels": {"x": "1"}})
    project.policy("b")
    project.run("render")
    untouched = {path: path.stat().st_ino for path in project.dist.rglob("*.yaml")}
    project.policy("a", daemonsets={"labels": {"x": "2"}})
    changed = {
        cluster["name"]: (cluster["written"], cluster["removed"])
        for cluster in project.run("render", "--format", "json").json["clusters"]
    }
    assert changed["b"] == ([], [])
    assert changed["a"] == (["operands/daemonset-nvidia-operator-validator.yaml"], [])
    now = {path: path.stat().st_ino for path in project.dist.rglob("*.yaml")}
    differing = {path.name for path in now if now[path] != untouched[path]}
    assert differing == {"daemonset-nvidia-operator-validator.yaml"}


def test_empty_options_are_refused(project: Project) -> None:
    """--out and --changed-since from a variable that isn't set must not mean "here" and "everything"."""
    project.policy("a")
    for words in (["--out", ""], ["--changed-since", ""], ["--jobs", "0"], ["--jobs", "x"], ["--jobs", "-1"]):
        done = project.run("render", *words)
        assert (done.code, done.out) == (4, ""), words
    assert sorted(path.name for path in project.folder.iterdir()) == ["policies"]


def test_out_index_is_no_object(project: Project) -> None:
    """The index lists what was written, with its digests, and has neither apiVersion nor kind: nothing applies it."""
    project.policy("a")
    project.run("render")
    index = json.loads(project.tree()[".index/a.json"])
    written = {path.removeprefix("a/") for path in project.tree() if path.startswith("a/")}
    assert set(index["files"]) == written
    assert (index["cluster"], index["source"], index["kubernetes"]) == ("a", "policies/a.yaml", "1.34")
    assert not {"apiVersion", "kind"} & set(index)


def test_a_stranger_does_not_replace_a_cluster(project: Project) -> None:
    """A policy from elsewhere that is about a cluster of policies/ is refused (GPU037) unless it goes elsewhere."""
    project.policy("a")
    assert project.run("render").code == 0
    project.policy("a", file="mine/a.yaml", cdi={"enabled": False})
    done = project.run("render", "mine/a.yaml")
    assert done.code == 4
    assert "GPU037" in done.err
    assert "--out" in done.err
    assert project.run("render", "mine/a.yaml", "--out", "other").code == 0


def test_parts_of_a_fleet(project: Project) -> None:
    """Machines side by side each render a part: no cluster is in two parts or in none, a part takes nothing of the
    others away and calls nothing of them stale, and whoever renders all after them changes nothing but what is gone.
    """
    names = [f"c{number}" for number in range(9)]
    for name in names:
        project.policy(name)
    project.policy("gone")
    project.run("render")
    (project.folder / "policies/gone.yaml").unlink()
    shutil.rmtree(project.dist / "c1")
    parts = []
    for part in ("1/3", "2/3", "3/3"):
        ran = project.run("render", "--shard", part, "--format", "json")
        parts.append({each["name"] for each in ran.json["clusters"]})
        assert project.run("check", "--shard", part).code == 0
        assert (project.dist / "gone").exists()
    assert sorted(name for part in parts for name in part) == names
    assert all(len(part) < 9 for part in parts)
    assert project.run("check").code == 3  # of `gone`
    assert project.run("render").out.splitlines()[-1] == "9 clusters rendered into dist, 0 changed, 1 removed"


@pytest.mark.parametrize("word", ["0/3", "4/3", "3", "a/b", "1/", "-1/3"])
def test_parts_that_are_not_there(project: Project, word: str) -> None:
    """Refused as an argument, with the form."""
    project.policy("a")
    ran = project.run("render", f"--shard={word}")
    assert (ran.code, "is not a part: write K/N" in ran.err) == (4, True)
