"""gpustack diff: what is compared with what, and that nothing but standard output is written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import Project, tree

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
ODD_NAMES = ("with space", "ünï", "a'b", 'a"b', "-x", "a[1]", "star*", "tab\there", "new\nline", "$(x)", ":x", "#x")
CHANGED: dict[str, Any] = {"daemonsets": {"labels": {"example.com/team": "b"}}}
"""What differs from SMALL in a label of the validator's DaemonSet."""


def git(folder: Path, *words: str) -> str:
    """What Git answers in FOLDER."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True, text=True
    )
    return done.stdout


def commit(project: Project, message: str = "x") -> str:
    """Commit everything; the commit."""
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-q", "-m", message)
    return git(project.folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def merged(project: Project) -> Project:
    """A project of two clusters, rendered and committed."""
    git(project.folder, "init", "-q", "-b", "main")
    project.policy("one")
    project.policy("two")
    assert project.run("render").code == 0
    commit(project)
    return project


def test_nothing_changed(merged: Project) -> None:
    """No difference: one line, exit 0."""
    ran = merged.run("diff")
    assert (ran.code, ran.out, ran.err) == (0, "no difference in 2 clusters\n", "")


def test_a_common_change_is_one_group(merged: Project) -> None:
    """A policy change in all clusters is said once; exit 1."""
    for name in ("one", "two"):
        merged.policy(name, **CHANGED)
    ran = merged.run("diff")
    assert ran.code == 1
    assert ran.out.startswith("1 change in 2 of 2 clusters\n")
    assert ran.out.count("all 2 clusters") >= 1
    assert "example.com/team" in ran.out


def test_the_work_tree_stays_as_it_is(merged: Project) -> None:
    """Index, stash, untracked and changed files, dist/ and Git's own folder are what they were before."""
    merged.policy("two", **CHANGED)
    merged.write("staged.txt", "staged")
    git(merged.folder, "add", "staged.txt")
    merged.write("stashed.txt", "x")
    git(merged.folder, "stash", "push", "-q", "-u", "stashed.txt")
    merged.write("untracked.txt", "x")
    merged.write("staged.txt", "changed after it was staged")
    before = tree(merged.folder)
    for how in ("text", "markdown", "html", "json", "unified"):
        assert merged.run("diff", "--format", how).code == 1
    assert tree(merged.folder) == before


def test_a_base_is_where_the_branch_departed(merged: Project) -> None:
    """What main got since is no change of this branch."""
    git(merged.folder, "checkout", "-q", "-b", "feature")
    merged.policy("one", **CHANGED)
    merged.run("render")
    commit(merged)
    git(merged.folder, "checkout", "-q", "main")
    merged.policy("two", **CHANGED)
    merged.run("render")
    commit(merged)
    git(merged.folder, "checkout", "-q", "feature")
    ran = merged.run("diff", "--base", "main")
    assert ran.code == 1
    assert "1 of 2 clusters: one" in ran.out
    assert "clusters: two" not in ran.out


def test_histories_without_a_common_commit(merged: Project) -> None:
    """The base itself is compared with then."""
    git(merged.folder, "checkout", "-q", "--orphan", "other")
    merged.policy("two", **CHANGED)
    merged.run("render")
    commit(merged)
    assert "1 of 2 clusters: two" in merged.run("diff", "--base", "main").out


def test_a_repository_without_dist(merged: Project) -> None:
    """Where dist/ is not committed, the policies of the base are rendered."""
    merged.write(".gitignore", "dist/\n")
    git(merged.folder, "rm", "-r", "-q", "--cached", "dist")
    commit(merged)
    assert merged.run("diff").code == 0
    merged.policy("two", **CHANGED)
    ran = merged.run("diff")
    assert (ran.code, "1 of 2 clusters: two" in ran.out) == (1, True)
    shutil.rmtree(merged.dist)
    assert merged.run("diff").out == ran.out
    assert not merged.dist.exists()


def test_both_ways_find_the_same(merged: Project) -> None:
    """What is rendered from the base's policies differs as the committed dist/ does."""
    merged.policy("two", **CHANGED)
    committed = merged.run("diff").out
    git(merged.folder, "rm", "-r", "-q", "--cached", "dist")
    git(merged.folder, "commit", "-q", "-m", "without dist")
    assert merged.run("diff").out == committed


def test_two_folders(merged: Project, tmp_path: Path) -> None:
    """Folders are compared without Git and without policies; one alone is refused."""
    old = tmp_path / "old"
    shutil.copytree(merged.dist, old)
    merged.policy("two", **CHANGED)
    merged.run("render")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran = merged.run("diff", old, merged.dist, cwd=elsewhere, env={"PATH": ""})
    assert (ran.code, "1 of 2 clusters: two" in ran.out) == (1, True)
    assert merged.run("diff", old, old).code == 0
    one = merged.run("diff", old)
    assert (one.code, "1 was named" in one.err) == (4, True)
    missing = merged.run("diff", old, tmp_path / "nowhere")
    assert (missing.code, "is not a folder" in missing.err) == (4, True)


LAYER = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyLayer
metadata: {name: base}
spec: {reconciler: {labelling: nodeFeatureRule, labelGraceSeconds: 900}}
"""
POOL: dict[str, Any] = {"name": "a", "count": 3, "gpusPerNode": 8, "nodeSelector": {"x": "y"}}
ON: dict[str, Any] = {"devicePlugin": {"enabled": True}, "gfd": {"enabled": True}, "toolkit": {"enabled": True}}


def test_two_checkouts_have_numbers(merged: Project, tmp_path: Path) -> None:
    """Folders beside the policies that render to them are compared with numbers, whatever the current folder is; one
    that somebody edited, or without policies, is compared without, and it is said why.
    """
    merged.policy("one", nodePools=[POOL], **ON)
    assert merged.run("render").code == 0
    old = tmp_path / "merged"
    for name in ("policies", "dist"):
        shutil.copytree(merged.folder / name, old / name)
    merged.policy("one", nodePools=[{**POOL, "sharing": {"timeSlicing": {"replicas": 2}}}], **ON)
    assert merged.run("render").code == 0

    def compared() -> tuple[list[str], list[dict[str, Any] | None]]:
        found = merged.run("diff", old / "dist", merged.dist, "--format", "json", cwd=tmp_path).json
        return found["withoutNumbers"], [item["nodes"] for item in found["impact"] if item["rule"] == "IMP302"]

    assert compared() == ([], [{"min": 3, "max": 3}])
    file = next((old / "dist" / "one").rglob("daemonset-*.yaml"))
    kept = file.read_text("utf-8")
    file.write_text(kept.replace("name: ", "name:  "), "utf-8")
    assert compared() == (["one"], [])
    file.write_text(kept, "utf-8")
    (old / "policies" / "two.yaml").write_text("kind: [")
    assert compared() == ([], [{"min": 3, "max": 3}])
    shutil.rmtree(old / "policies")
    assert compared() == (["one"], [])
    told = merged.run("diff", old / "dist", merged.dist).out
    assert "no policies/ beside one of the folders renders to what is in it" in told
    assert "--base" in told


def test_two_checkouts_that_render_the_same(merged: Project, tmp_path: Path) -> None:
    """What a policy says differently is told between two folders, though nothing is rendered differently; one that
    renders to something else than is in its folder isn't asked.
    """
    merged.policy("one", nodePools=[POOL], **ON)
    assert merged.run("render").code == 0
    old = tmp_path / "merged"
    for name in ("policies", "dist"):
        shutil.copytree(merged.folder / name, old / name)
    merged.policy("one", nodePools=[{**POOL, "count": 5}], **ON)
    assert merged.run("render").code == 0

    def told() -> list[tuple[str, str]]:
        ran = merged.run("diff", old / "dist", merged.dist, "--format", "json", cwd=tmp_path)
        return [(item["where"], item["what"]) for item in ran.json["impact"]]

    assert ("spec.nodePools.a.count.max", "3 -> 5") in told()
    merged.policy("one", nodePools=[{**POOL, "count": 7}], **ON, mig={"strategy": "mixed"})
    assert told() == []


@pytest.mark.parametrize(
    "text", ["just text", "kind: ConfigMap\nmetadata: {name: 5}", "kind: A\nmetadata: {namespace: [b]}"]
)
def test_a_file_that_is_no_object(merged: Project, tmp_path: Path, text: str) -> None:
    """It is named, with what to do; exit 4. A name that isn't a text is none that an object can have."""
    other = tmp_path / "other"
    (other / "one" / "base").mkdir(parents=True)
    (other / "one" / "base" / "x.yaml").write_text(text)
    ran = merged.run("diff", other, merged.dist)
    assert (ran.code, "one/base/x.yaml is not a Kubernetes object" in ran.err) == (4, True)


def test_a_project_below_the_repository(project: Project) -> None:
    """The project may be a folder of a repository that holds others."""
    git(project.folder, "init", "-q")
    below = project.folder / "teams" / "gpu"
    project.policy("one", file="teams/gpu/policies/one.yaml")
    project.run("render", cwd=below)
    commit(project)
    assert project.run("diff", cwd=below).code == 0
    project.policy("one", file="teams/gpu/policies/one.yaml", **CHANGED)
    ran = project.run("diff", cwd=below)
    assert (ran.code, "cluster one" in ran.out) == (1, True)


def in_a_monorepo(project: Project) -> Path:
    """A project in a folder of a repository that holds others, committed."""
    git(project.folder, "init", "-q")
    below = project.folder / "teams" / "gpu"
    project.policy("one", file="teams/gpu/policies/one.yaml")
    project.write("README.md", "x")
    project.write(".github/workflows/ci.yml", "x")
    project.write("teams/web/main.py", "x")
    project.run("render", cwd=below)
    commit(project)
    return below


ABOVE = {
    ".github/workflows/ci.yml": "../../.github/workflows/ci.yml",
    ".github/workflows/new.yml": "../../.github/workflows/new.yml",
    ".gitattributes": "../../.gitattributes",
    ".sourceignore": "../../.sourceignore",
    "CODEOWNERS": "../../CODEOWNERS",
    "docs/CODEOWNERS": "../../docs/CODEOWNERS",
    "ci/run.sh": "../../ci/run.sh",
    "Tiltfile": "../../Tiltfile",
    "teams/Makefile": "../Makefile",
    "teams/.envrc": "../.envrc",
    "README.md": "",
    "teams/web/main.py": "",
    "teams/web/.github/workflows/ci.yml": "",
    "web/new.py": "",
}


@pytest.mark.parametrize("path", ABOVE)
@pytest.mark.parametrize("how", ["staged", "committed", "not checked out"])
def test_files_above_the_project(project: Project, path: str, how: str) -> None:
    """What steers the review above the project's folder is told, up to the repository's top; others' files aren't."""
    below = in_a_monorepo(project)
    base = git(project.folder, "rev-parse", "HEAD").strip()
    project.write(path, "other")
    git(project.folder, "add", "-A")
    if how != "staged":
        commit(project)
    if how == "not checked out":
        git(project.folder, "update-index", "--skip-worktree", path)
        (project.folder / path).unlink()
    ran = project.run("diff", "--base", base, "--format", "json", cwd=below)
    told = [(each["rule"], each["tier"], each["where"]) for each in ran.json["impact"] if each["rule"] == "IMP002"]
    assert told == ([("IMP002", 1, ABOVE[path])] if ABOVE[path] else [])


def test_a_file_above_that_is_changed_and_not_staged(project: Project) -> None:
    """What is proposed is the work tree, above the project as well, and a deletion is a change."""
    below = in_a_monorepo(project)
    project.write(".github/workflows/ci.yml", "other")
    assert "../../.github/workflows/ci.yml: is another" in project.run("diff", cwd=below).out
    (project.folder / ".github/workflows/ci.yml").unlink()
    assert "../../.github/workflows/ci.yml: is removed" in project.run("diff", cwd=below).out


@pytest.mark.parametrize("whole", [False, True], ids=["a layer", "the folder of layers"])
def test_layers_that_are_links(project: Project, whole: bool) -> None:
    """A layer that is a link, or in a folder that is one, is compared by what it leads to, on both sides."""
    git(project.folder, "init", "-q")
    below = project.folder / "teams" / "gpu"
    layers = below / "policies" / "layers"
    layers.parent.mkdir(parents=True)
    if whole:
        file = "shared/base.yaml"
        layers.symlink_to("../../../shared")
    else:
        file = "teams/gpu/policies/layers/common.txt"
        layers.mkdir()
        (layers / "base.yaml").symlink_to("common.txt")
    project.write(file, LAYER)
    project.policy("one", file="teams/gpu/policies/one.yaml", extends=["base"], nodePools=[{**POOL, "count": 3}])
    ran = project.run("render", cwd=below)
    assert ran.code == 0, ran.err
    commit(project)
    assert project.run("diff", cwd=below).code == 0
    project.write(file, LAYER.replace("900", "60"))
    told = project.run("diff", "--format", "json", cwd=below).json
    assert told["withoutNumbers"] == []
    assert "spec.reconciler.labelGraceSeconds" in {each["where"] for each in told["impact"]}


def test_odd_names_of_files(merged: Project) -> None:
    """A policy's file, and files beside it, may be called anything; what is printed has no control character."""
    for number, name in enumerate(ODD_NAMES):
        merged.write(f"policies/{name}.txt", "x")
        merged.policy(f"odd-{number}", file=f"policies/{name}.yaml")
    merged.run("render")
    commit(merged)
    assert merged.run("diff").code == 0
    merged.policy("odd-0", file=f"policies/{ODD_NAMES[0]}.yaml", **CHANGED)
    assert "clusters: odd-0" in merged.run("diff").out


def test_without_git(merged: Project, tmp_path: Path) -> None:
    """No Git on the PATH is a missing tool (5); no repository, or no such revision, is bad input (4)."""
    assert merged.run("diff", env={"PATH": ""}).code == 5
    ran = merged.run("diff", "--base", "nothing")
    assert (ran.code, "'nothing'" in ran.err) == (4, True)
    assert merged.run("diff", "--base=--output=x").code == 4
    bare = Project(tmp_path / "bare", merged.cache)
    bare.policy("one")
    assert bare.run("diff", env={"GIT_CEILING_DIRECTORIES": str(tmp_path)}).code == 4


def test_a_clone_that_lacks_contents(merged: Project) -> None:
    """A blob that isn't there, as in a clone with a filter and without its remote, is named; exit 4."""
    merged.policy("two", **CHANGED)
    blob = git(merged.folder, "rev-parse", "HEAD:policies/two.yaml").strip()
    (merged.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    ran = merged.run("diff")
    assert (ran.code, blob[:10] in ran.err, "Traceback" in ran.err) == (4, True, False)


def test_a_repository_without_a_commit(project: Project) -> None:
    """There is nothing to compare with: bad input, and no traceback."""
    git(project.folder, "init", "-q")
    project.policy("one")
    assert project.run("diff").code == 4


def test_sha256(project: Project) -> None:
    """Repositories may name contents by SHA-256."""
    git(project.folder, "init", "-q", "--object-format=sha256")
    project.policy("one")
    project.policy("two")
    project.run("render")
    commit(project)
    assert project.run("diff").code == 0
    project.policy("two", **CHANGED)
    assert "1 of 2 clusters: two" in project.run("diff").out


def test_a_cluster_that_comes_and_one_that_goes(merged: Project) -> None:
    """A new cluster is a note; the end of one a danger; both are told as a whole."""
    merged.policy("three")
    (merged.folder / "policies" / "two.yaml").unlink()
    found = merged.run("diff", "--format", "json").json
    assert {(item["rule"], *item["clusters"]) for item in found["impact"]} == {("IMP501", "two"), ("IMP502", "three")}
    assert found["clusters"] == 3


def test_a_last_policy_that_goes(merged: Project) -> None:
    """An empty policies/ is a mistake here as everywhere."""
    for name in ("one", "two"):
        (merged.folder / "policies" / f"{name}.yaml").unlink()
    assert merged.run("diff").code == 4


def test_a_policy_that_is_refused(merged: Project) -> None:
    """What a rule refuses is exit 2, what can't be read exit 4, and nothing is printed as if it were compared."""
    merged.policy("two", cdi={"enabled": True, "nriPluginEnabled": True})
    ran = merged.run("diff")
    assert (ran.code, ran.out) == (2, "")
    merged.write("policies/two.yaml", "kind: [")
    ran = merged.run("diff")
    assert (ran.code, ran.out) == (4, "")


def test_a_base_that_cannot_be_read_any_more(merged: Project) -> None:
    """A policy that was merged and that this version refuses: objects are compared, and what is missing is said."""
    merged.write("policies/two.yaml", "kind: [")
    commit(merged)
    merged.policy("two", **CHANGED)
    ran = merged.run("diff")
    assert ran.code == 1
    assert "without numbers of nodes" in ran.out


def test_rendered_files_that_somebody_edited(merged: Project) -> None:
    """What is compared is what the policies render to; a file of the work tree's dist/ that is another is told."""
    file = next((merged.dist / "two").rglob("*.yaml"))
    file.write_text("kind: Broken\n")
    ran = merged.run("diff")
    assert (ran.code, "IMP001" in ran.out, "kind: Broken" in ran.out) == (1, True, False)


def test_numbers_of_nodes(merged: Project) -> None:
    """Numbers come from the policies of the base and of now."""
    merged.policy("one", nodePools=[POOL], **ON)
    merged.run("render")
    commit(merged)
    shared = {**POOL, "sharing": {"timeSlicing": {"replicas": 2}}}
    merged.policy("one", nodePools=[shared], **ON)
    found = merged.run("diff", "--format", "json").json
    more = next(item for item in found["impact"] if item["rule"] == "IMP302")
    assert more["nodes"] == {"min": 3, "max": 3}
    assert more["what"].endswith("8 nvidia.com/gpu -> 16 nvidia.com/gpu")


def test_a_layer_that_changes(merged: Project) -> None:
    """A policy that is the same, byte for byte, has other numbers where its layer has."""
    merged.layer("base", nodePools=[POOL])
    merged.policy("one", extends=["base"], **ON)
    merged.run("render")
    commit(merged)
    merged.layer("base", nodePools=[{**POOL, "sharing": {"timeSlicing": {"replicas": 2}}}])
    assert "IMP302" in {item["rule"] for item in merged.run("diff", "--format", "json").json["impact"]}


EMPTY: list[dict[str, Any]] = [{"guards": {"scrapers": []}}, {"references": []}, {"extraObjects": []}]


@pytest.mark.parametrize("said", EMPTY)
@pytest.mark.parametrize("where", ["policy", "layer"])
def test_an_empty_list_is_told(merged: Project, where: str, said: dict[str, Any]) -> None:
    """A policy that says an empty list, by itself or by its layer, is never without a word."""
    merged.layer("base", cdi={"enabled": True})
    merged.policy("one", extends=["base"])
    merged.run("render")
    commit(merged)
    if where == "layer":
        merged.layer("base", cdi={"enabled": True}, **said)
    else:
        merged.policy("one", extends=["base"], **said)
    told = merged.run("diff", "--format", "json").json["impact"]
    file = "policies/layers/base.yaml" if where == "layer" else "policies/one.yaml"
    assert [(one["rule"], one["tier"], one["where"]) for one in told] == [("IMP906", 5, file)]


def test_unified(merged: Project) -> None:
    """A unified diff has a file for each group, and what it does as comments before."""
    merged.policy("two", **CHANGED)
    lines = merged.run("diff", "--format", "unified").out.splitlines()
    assert [line[:4] for line in lines if line.startswith(("---", "+++"))] == ["--- ", "+++ "]
    assert lines[0].startswith("# 1 change")
    assert any(line.startswith("@@ ") for line in lines)


def test_secrets_are_hidden_in_every_format(merged: Project) -> None:
    """A Secret's values are in none of the formats, whether it comes, changes or goes."""

    def secret(value: str) -> dict[str, object]:
        metadata = {
            "name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data": "{value}"}}'},
        }
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": value}}

    sides: list[Path] = []
    for value in ("b25lLXNlY3JldA==", "dHdvLXNlY3JldA==", None):
        folder = merged.folder.parent / f"side-{len(sides)}"
        (folder / "one" / "base").mkdir(parents=True)
        if value:
            (folder / "one" / "base" / "secret-s.yaml").write_text(yaml.safe_dump(secret(value)))
        sides.append(folder)
    for before in sides:
        for after in sides:
            for how in ("text", "markdown", "html", "json", "unified"):
                ran = merged.run("diff", before, after, "--format", how)
                assert "c2VjcmV0" not in ran.out
                assert "LXNlY3JldA" not in ran.out


def test_colours_only_for_a_terminal(merged: Project) -> None:
    """Nothing but text goes into a pipe."""
    merged.policy("two", **CHANGED)
    assert "\x1b" not in merged.run("diff").out


def test_a_budget_that_is_too_small(merged: Project) -> None:
    """Below what dangers need, a budget is refused instead of cutting them."""
    ran = merged.run("diff", "--format", "markdown", "--budget", "100")
    assert (ran.code, "8000" in ran.err) == (4, True)


def test_titles_end_where_they_end(merged: Project) -> None:
    """What is compared is named alike in every format: with no colon behind it, and before a path with one."""
    merged.policy("one", **CHANGED)
    head = git(merged.folder, "rev-parse", "--short=10", "HEAD").strip()
    data = merged.run("diff", "--format", "json").json
    assert (data["before"], data["after"]) == (f"HEAD ({head})", "policies")
    assert f"<p>HEAD ({head}) to policies</p>" in merged.run("diff", "--format", "html").out
    lines = merged.run("diff", "--format", "unified").out.splitlines()
    assert f"--- HEAD ({head}): one" in lines
    assert "+++ policies: one" in lines


@pytest.mark.parametrize("command", [("diff", "--base"), ("render", "--changed-since")])
def test_a_revision_that_is_not_there(merged: Project, command: tuple[str, ...]) -> None:
    """It is said so, with what to try: to fetch it, or what the clone has that looks like it."""
    ran = merged.run(*command, "nosuch")
    assert ran.code == 4
    assert "error GPU022: this clone has no revision 'nosuch'\n" in ran.err
    assert "git fetch origin" in ran.err
    assert "such as main" in ran.err
    git(merged.folder, "update-ref", "refs/remotes/origin/release", "HEAD")
    assert "did you mean origin/release?" in merged.run(*command, "release").err
    assert "did you mean main?" in merged.run(*command, "origin/mian").err
