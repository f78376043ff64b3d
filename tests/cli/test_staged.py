"""--staged, which hooks before a commit pass: what is rendered is part of what is committed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.project import Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *words: str) -> None:
    """Run Git in FOLDER."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **ENVIRONMENT})


@pytest.fixture
def committed(project: Project) -> Project:
    """A project with one rendered cluster, all of it committed."""
    project.policy("one")
    assert project.run("render").code == 0
    git(project.folder, "init", "-q")
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-qm", "one")
    return project


@pytest.mark.parametrize("verb", ["render", "check"])
def test_all_is_staged(committed: Project, verb: str) -> None:
    """Nothing is wrong right after a commit, and with what is staged and not committed yet."""
    assert committed.run(verb, "--staged").code == 0
    committed.policy("two")
    committed.run("render")
    git(committed.folder, "add", "-A")
    assert committed.run(verb, "--staged").code == 0


@pytest.mark.parametrize("verb", ["render", "check"])
def test_a_new_cluster(committed: Project, verb: str) -> None:
    """The folder of a cluster whose policy is staged is missed, its index too; without the option nothing is."""
    committed.policy("two")
    git(committed.folder, "add", "policies")
    committed.run("render")
    assert committed.run(verb).code == 0
    ran = committed.run(verb, "--staged")
    assert (ran.code, "GPU971" in ran.err, "git add dist" in ran.err) == (3, True, True)
    assert "dist/.index/two.json" in ran.err
    found = committed.run(verb, "--staged", "--format", "json").json
    assert (found["exit"], [one["rule"] for one in found["findings"]][-1:]) == (3, ["GPU971"])


def test_work_of_tomorrow(committed: Project) -> None:
    """A policy that Git doesn't know isn't committed, so what it renders to needn't be either."""
    committed.policy("two")
    assert committed.run("render", "--staged").code == 0
    git(committed.folder, "add", "policies/two.yaml")
    assert committed.run("render", "--staged").code == 3


def test_what_goes_and_what_changes(committed: Project) -> None:
    """Files that are gone, and files that are staged and were written anew since, are missed as well."""
    committed.policy("two")
    committed.run("render")
    git(committed.folder, "add", "-A")
    git(committed.folder, "commit", "-qm", "two")
    git(committed.folder, "rm", "-q", "policies/two.yaml")
    ran = committed.run("render", "--staged")
    assert (ran.code, "dist/.index/two.json" in ran.err) == (3, True)
    git(committed.folder, "add", "-A")
    assert committed.run("render", "--staged").code == 0
    committed.policy("one", validator={"version": "v1"})
    assert committed.run("render", "--staged").code == 3


def test_in_a_folder_of_the_repository(tmp_path: Path, committed: Project) -> None:
    """Policies may be in a folder of a larger repository; outside of one Git says so."""
    outer = Project(committed.folder / "gpu", committed.cache)
    outer.folder.mkdir()
    outer.policy("inner")
    git(committed.folder, "add", "gpu")
    ran = outer.run("render", "--staged")
    assert (ran.code, "dist/.index/inner.json" in ran.err) == (3, True)
    git(committed.folder, "add", "gpu")
    assert outer.run("render", "--staged").code == 0
    alone = Project(tmp_path / "alone", committed.cache)
    alone.folder.mkdir()
    alone.policy("one")
    assert alone.run("render", "--staged").code == 4
