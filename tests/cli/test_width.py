"""Prose in a terminal is broken at its width; a pipe, a file and CI get it as it is."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from gpustack.cli.text import folded
from tests.cli.test_diff import CHANGED, commit, git
from tests.project import REFUSED, WARNED, Project, dated


def on_a_terminal(project: Project, *words: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The lines that `gpustack WORDS` writes to a terminal, on standard output and standard error."""
    ours, theirs = pty.openpty()
    environment = project.environment({"CI": "", "COLUMNS": "", "NO_COLOR": "1", **(env or {})})
    command = [sys.executable, "-m", "gpustack", *dated(list(words))]
    with subprocess.Popen(command, cwd=project.folder, env=environment, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # what Linux says at the end of a terminal
            while part := os.read(ours, 1 << 16):
                found += part
        os.close(ours)
    assert running.returncode in {0, 1, 2, 4}
    text = re.sub("\r\x1b\\[K[^\r]*(\r\x1b\\[K|\r)", "", found.decode("utf-8"))  # how far it is, which is overwritten
    return text.replace("\r\n", "\n").splitlines()


@pytest.fixture
def fleet(project: Project) -> Project:
    """A cluster that a rule refuses, at a line that is longer than a terminal is wide, and one with a warning."""
    project.policy("a", **REFUSED)
    project.policy("b", **WARNED)
    project.write("policies/c.yaml", f"{{apiVersion: {'x ' * 70}, kind: ClusterPolicy}}\n")
    return project


def test_findings_fit_a_terminal(fleet: Project) -> None:
    """No line of prose is longer than COLUMNS, and none of its words is lost; a line of a policy stays whole, with the
    mark below it.
    """
    plain = fleet.run("lint").out
    assert max(map(len, plain.splitlines())) > 120
    for columns in (80, 120):
        lines = on_a_terminal(fleet, "lint", env={"COLUMNS": str(columns)})
        code = [line for line in lines if line.lstrip(" 0123456789").startswith("| ")]
        assert max(len(line) for line in lines if line not in code) <= columns
        assert "\n".join(lines).split() == plain.split()
        assert code == [line for line in plain.splitlines() if line.lstrip(" 0123456789").startswith("| ")]
        assert max(map(len, code)) > columns


def test_eighty_columns_at_least(fleet: Project) -> None:
    """A terminal of 40 columns, or of none that anybody knows, counts as one of 80: it breaks longer lines itself."""
    wide = on_a_terminal(fleet, "lint", env={"COLUMNS": "80"})
    assert on_a_terminal(fleet, "lint", env={"COLUMNS": "40"}) == wide
    assert on_a_terminal(fleet, "lint") == wide


def test_no_line_is_broken_in_ci(fleet: Project) -> None:
    """A CI system that runs jobs in a terminal (CI is set, as all of them do) has lines to search, and a file that is
    written beside has them as well.
    """
    plain = fleet.run("lint").out.splitlines()
    assert on_a_terminal(fleet, "lint", env={"COLUMNS": "80", "CI": "true"}) == plain
    on_a_terminal(fleet, "lint", "--report", "text=lint.txt", env={"COLUMNS": "80"})
    assert (fleet.folder / "lint.txt").read_text("utf-8").splitlines() == plain


def test_errors_fit_a_terminal(project: Project) -> None:
    """Whatever ends a verb is told at the terminal's width too."""
    project.policy("a", **REFUSED)
    lines = on_a_terminal(project, "render", env={"COLUMNS": "80"})
    assert any("GPU102" in line for line in lines)
    assert max(len(line) for line in lines if " | " not in line) <= 80


def test_changes_are_not_broken(project: Project) -> None:
    """Of a diff, what is told fits a terminal; the lines of manifests are as in a pipe."""
    git(project.folder, "init", "-q")
    project.policy("one")
    project.run("render")
    commit(project)
    project.policy("one", daemonsets={**CHANGED["daemonsets"], "annotations": {"example.com/note": "word " * 30}})
    plain, lines = project.run("diff").out.splitlines(), on_a_terminal(project, "diff", env={"COLUMNS": "80"})
    changes = plain.index(next(line for line in plain if line.startswith("  ~ ")))
    assert lines[changes - len(plain) :] == plain[changes:]
    assert max(map(len, plain[changes:])) > 80
    assert max(map(len, lines[: changes - len(plain)])) <= 80
    assert " ".join(lines).split() == " ".join(plain).split()


def test_what_stays_whole() -> None:
    """A command between backticks, a path and an address are copied: none is broken, however long it is."""
    whole = [
        "`gpustack lint --workloads manifests --cluster prod`",
        "policies/" + "x" * 90 + "-y.yaml",
        "https://e.x/a-b",
    ]
    line = "  do: " + " and then look at ".join(whole)
    shown = folded(line, 80)
    assert "\n" in shown
    assert [each for each in whole if each not in shown] == []
    assert all(part.startswith("      ") for part in shown.splitlines()[1:])
    assert folded(line, 0) == line
