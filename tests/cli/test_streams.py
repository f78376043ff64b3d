"""Standard output and standard error that are closed, full, or a pipe whose reader left: what each verb says then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import WARNED, Project, dated

VERBS = {
    "render": ["render"],
    "check": ["check"],
    "lint": ["lint"],
    "explain": ["explain", "a", "cdi"],
    "capacity": ["capacity"],
    "mig": ["mig", "list", "NVIDIA-A100-SXM4-80GB"],
    "releases": ["releases", "list"],
    "schema": ["schema", "--out", "-"],
    "version": ["version"],
    "help": ["--help"],
}
REPORTS = [["render", "--format", "json"], ["nonsense"], ["render", "x"], ["render", "x", "--format", "json"]]
"""What ends with exit code 0 or 4, in JSON or in words."""


@pytest.fixture
def rendered(project: Project) -> Project:
    """A project with a rendered cluster that a warning is about."""
    project.policy("a", **WARNED)
    assert project.run("render").code == 0
    return project


def run(project: Project, words: list[str], redirection: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    """Run `gpustack WORDS` with its streams as a shell's REDIRECTION leaves them."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "gpustack", *dated(words)],
        cwd=project.folder,
        env=project.environment({"PYTHONUNBUFFERED": unbuffered}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("verb", VERBS)
def test_output_that_is_lost(rendered: Project, verb: str) -> None:
    """A verb whose output nobody got doesn't report success: exit 4 and a sentence, for a closed stream (in which
    Python prints without an error) as for a full one, buffered or not."""
    for redirection, unbuffered in ((">&-", ""), (">/dev/full", ""), (">/dev/full", "1")):
        done = run(rendered, VERBS[verb], redirection, unbuffered)
        assert done.returncode == 4, redirection
        assert "error GPU923: the system refuses: standard output: " in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("words", [*VERBS.values(), *REPORTS], ids=" ".join)
def test_comments_that_are_lost(rendered: Project, words: list[str], redirection: str) -> None:
    """Where standard error alone is lost, exit code and standard output are what they are with it; nothing that belongs
    there comes out of the other."""
    good = run(rendered, words, "")
    done = run(rendered, words, redirection)
    assert (done.returncode, done.stdout, done.stderr) == (good.returncode, good.stdout, "")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_verdicts_without_comments(rendered: Project, redirection: str) -> None:
    """A stale dist/ stays exit 3, and a policy that is refused exit 2, without a word on standard error."""
    rendered.policy("a", daemonsets={"labels": {"x": "y"}})
    assert run(rendered, ["check"], redirection).returncode == 3
    rendered.policy("a", cdi={"enabled": True, "nriPluginEnabled": True})
    assert run(rendered, ["render"], redirection).returncode == 2


@pytest.mark.parametrize("redirection", [">&- 2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&- 2>/dev/full"])
def test_both_lost(rendered: Project, redirection: str) -> None:
    """With both lost the exit code says so."""
    for words in (["version"], ["render"], ["render", "--format", "json"]):
        done = run(rendered, words, redirection)
        assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


OPEN = """
import sys
from gpustack.cli.streams import guarded
with guarded(), open("file", "w") as file:
    sys.exit(file.fileno())
"""


def test_closed_streams_are_not_given_to_files(project: Project, tmp_path: Path) -> None:
    """The next file that is opened doesn't take the place of a closed stream, where whatever a library writes for the
    stream would come into it. A cold render, with Node, leaves what it leaves otherwise."""
    command = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", OPEN]
    assert subprocess.run(command, cwd=tmp_path, env=project.environment(), check=False).returncode > 2
    project.policy("a", **WARNED)
    assert run(Project(project.folder, tmp_path / "cold"), ["render"], "<&- >&- 2>&-").returncode == 4
    found = project.tree()
    assert project.run("render", "--out", "other").code == 0
    assert found == project.tree(project.folder / "other") != {}


@pytest.mark.parametrize("words", [["render"], ["check"], ["nonsense"]], ids=" ".join)
def test_reader_of_comments_that_went_away(rendered: Project, words: list[str]) -> None:
    """A pipe on standard error that nobody reads changes no exit code."""
    expected = run(rendered, words, "").returncode
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "gpustack", *dated(words)]
    env = rendered.environment()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=write, check=False, env=env, cwd=rendered.folder)
    os.close(write)
    assert done.returncode == expected


def test_the_same_bytes_in_every_locale(rendered: Project) -> None:
    """What goes into a file or a program is UTF-8, as the page itself says it is."""
    rendered.policy("two", schlüssel=1)
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": None}
    found = [rendered.spawn("report", "--file", "-", env=env).out for env in (bare, {**bare, "LC_ALL": "C.UTF-8"})]
    assert found[0] == found[1]
    assert not found[0].isascii()
