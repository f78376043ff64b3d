"""gpustack render --changed-since REF: only the clusters that a branch touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.project import Project, policy


def git(folder: Path, *words: str) -> None:
    """Run Git in FOLDER, with nobody's settings."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True)


def commit(project: Project) -> None:
    """Commit everything that is there."""
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-q", "-m", "x")


@pytest.fixture
def repository(project: Project) -> Project:
    """A repository with three clusters, two of which share a layer that extends another; all committed."""
    project.layer("base", daemonsets={"labels": {"base": "1"}})
    project.layer("team", extends=["base"])
    project.policy("a", extends=["team"])
    project.policy("b", extends=["base"])
    project.policy("c")
    git(project.folder, "init", "-q", "-b", "main")
    commit(project)
    return project


def rendered(project: Project, *words: str, cwd: Path | None = None) -> list[str]:
    """The clusters that a render since main is about."""
    done = project.run("render", "--changed-since", "main", "--format", "json", *words, cwd=cwd)
    assert (done.code, done.err) == (0, "")
    return [cluster["name"] for cluster in done.json["clusters"]]


def test_nothing_changed(repository: Project) -> None:
    """Nothing to render is fine, and nothing is pruned."""
    assert repository.run("render").code == 0
    (repository.dist / "a" / "own.txt").write_text("x")
    before = repository.tree()
    assert rendered(repository) == []
    assert repository.tree() == before


def test_changed_policy(repository: Project) -> None:
    """A policy that differs is rendered, whether that is committed, staged or only saved."""
    repository.policy("c", cdi={"enabled": False})
    assert rendered(repository) == ["c"]
    git(repository.folder, "add", "-A")
    assert rendered(repository) == ["c"]
    git(repository.folder, "checkout", "-q", "-b", "branch")
    commit(repository)
    assert rendered(repository) == ["c"]


def test_changed_layer(repository: Project) -> None:
    """A layer that differs counts for the policies that extend it, directly or not; so does one that is new."""
    repository.layer("base", daemonsets={"labels": {"base": "2"}})
    assert rendered(repository) == ["a", "b"]
    repository.layer("base", daemonsets={"labels": {"base": "1"}})
    repository.layer("team", extends=["base"], daemonsets={"labels": {"team": "1"}})
    assert rendered(repository) == ["a"]
    repository.layer("team", extends=["base", "new"])
    repository.layer("new")
    git(repository.folder, "checkout", "-q", "policies/layers/team.yaml")
    assert rendered(repository) == []


def test_untracked_policy(repository: Project) -> None:
    """A new policy that Git has not seen yet is rendered; one that Git ignores isn't."""
    repository.policy("new")
    assert rendered(repository) == ["new"]
    repository.write(".gitignore", "policies/new.yaml\n")
    assert rendered(repository) == []


def test_renamed_layer(repository: Project) -> None:
    """A layer that was renamed counts under its old name, too: the policies that still extend it are in trouble."""
    git(repository.folder, "mv", "policies/layers/team.yaml", "policies/layers/crew.yaml")
    repository.layer("crew", extends=["base"])
    done = repository.run("render", "--changed-since", "main")
    assert done.code == 4
    assert "there is no layer team" in done.err


def test_deleted_policies_are_not_pruned(repository: Project) -> None:
    """Only a render of everything prunes."""
    repository.run("render")
    (repository.folder / "policies/c.yaml").unlink()
    before = repository.tree()
    assert rendered(repository) == []
    assert repository.tree() == before


def test_odd_names(repository: Project) -> None:
    """Blanks, other letters and characters that are patterns to Git are just names."""
    files = {"n1": "p ä.yaml", "n2": "[abc].yaml", "n3": ":(top)x.yaml", "n4": "*.yaml"}
    for name, file in files.items():
        repository.policy(name, file=f"policies/{file}")
    assert sorted(rendered(repository)) == sorted(files)
    commit(repository)
    for name, file in files.items():
        repository.policy(name, file=f"policies/{file}", cdi={"enabled": False})
        assert rendered(repository) == [name]
        repository.policy(name, file=f"policies/{file}")


def test_odd_folders(repository: Project) -> None:
    """A folder, too, may have a name that would be a pattern to Git."""
    repository.policy("x", file=":!dd/x.yaml")
    repository.policy("y", file="odd/y.yaml")
    commit(repository)
    repository.policy("x", file=":!dd/x.yaml", cdi={"enabled": False})
    assert rendered(repository, ":!dd/x.yaml", "odd/y.yaml") == ["x"]


def test_in_a_folder_of_the_repository(project: Project) -> None:
    """The project may be a folder of a larger repository, and Git may be told to answer relative to it."""
    inner = Project(project.folder / "gpu", project.cache)
    inner.policy("a")
    inner.policy("b")
    git(project.folder, "init", "-q", "-b", "main")
    git(project.folder, "config", "diff.relative", "true")
    commit(project)
    inner.policy("b", cdi={"enabled": False})
    inner.policy("c")
    assert rendered(inner) == ["b", "c"]


def test_named_files(repository: Project) -> None:
    """With clusters or files named, those of them that differ are rendered, also outside policies/."""
    repository.policy("x", file="other/x.yaml")
    repository.policy("y", file="other/y.yaml")
    commit(repository)
    repository.policy("x", file="other/x.yaml", cdi={"enabled": False})
    repository.policy("c", cdi={"enabled": False})
    done = repository.run("render", "--changed-since", "HEAD", "--format", "json", "other/x.yaml", "other/y.yaml", "b")
    assert [cluster["name"] for cluster in done.json["clusters"]] == ["x"]


@pytest.mark.parametrize("reference", ["no-such", "-main", "--output=x", "main..", ":(bad", "HEAD~9", "policies"])
def test_what_is_no_revision(repository: Project, reference: str) -> None:
    """A revision that this clone doesn't have is exit 4, and so is a range; what begins with a dash never reaches
    Git.
    """
    done = repository.run("render", f"--changed-since={reference}")
    assert (done.code, done.out) == (4, "")
    assert "GPU022" in done.err
    assert sorted(path.name for path in repository.folder.iterdir()) == [".git", "policies"]


def test_outside_of_a_repository(project: Project) -> None:
    """Without a repository it is exit 4 in Git's words; without Git, exit 5."""
    project.policy("a")
    done = project.run("render", "--changed-since", "main", env={"GIT_CEILING_DIRECTORIES": str(project.folder.parent)})
    assert done.code == 4
    assert "not a git repository" in done.err
    assert "git init" in done.err
    done = project.run("render", "--changed-since", "main", env={"PATH": "/no/such"})
    assert (done.code, "git is not on the PATH" in done.err) == (5, True)


def test_broken_policies_are_looked_at(repository: Project) -> None:
    """A changed policy that can't be read is an error, not left out."""
    repository.write("policies/c.yaml", policy("c") + "\t\n  x: [")
    assert repository.run("render", "--changed-since", "main").code == 4
