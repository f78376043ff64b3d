"""`lint --stdin FILE`: an editor asks about a text that is not saved, of a policy, a layer or a new file."""

from __future__ import annotations

import io
import sys
from unittest import mock

import pytest

from tests.project import REFUSED, Project, Ran, document, policy


def asked(project: Project, file: str, text: str, *words: str) -> Ran:
    """What lint says with TEXT in the place of FILE."""
    with mock.patch.object(sys, "stdin", mock.Mock(buffer=io.BytesIO(text.encode()))):
        return project.run("lint", "--stdin", file, "--format", "json", *words)


def test_what_is_not_saved_counts(project: Project) -> None:
    """Findings are those of the text, at its lines and under the file's name; what is saved stays as it is."""
    project.policy("a")
    saved = (project.folder / "policies/a.yaml").read_bytes()
    ran = asked(project, "policies/a.yaml", policy("a", **REFUSED))
    (finding,) = [each for each in ran.json["findings"] if each["severity"] == "error"]
    assert (ran.code, finding["rule"], finding["file"]) == (2, "GPU102", "policies/a.yaml")
    assert (project.folder / "policies/a.yaml").read_bytes() == saved
    assert asked(project, "policies/a.yaml", saved.decode()).code == 0
    text = project.folder / "policies/a.yaml"
    text.write_text(policy("a", **REFUSED))
    assert asked(project, "policies/a.yaml", saved.decode()).code == 0  # mended, and not saved yet


def test_a_layer_and_a_new_file(project: Project) -> None:
    """A layer is looked at through the clusters that extend it; a file that isn't there yet is one more policy."""
    project.policy("a", extends=["base"])
    project.layer("base")
    ran = asked(project, "policies/layers/base.yaml", document("PolicyLayer", "base", REFUSED))
    assert {each["rule"] for each in ran.json["findings"] if each["severity"] == "error"} == {"GPU102"}
    ran = asked(project, "policies/new.yaml", policy("new", **REFUSED), "new")
    assert ran.code == 2


def test_a_report_goes_where_it_is_said(project: Project) -> None:
    """--report is a path from the folder that somebody stands in."""
    project.policy("a")
    asked(project, "policies/a.yaml", policy("a", **REFUSED), "--report", "sarif=lint.sarif")
    assert "GPU102" in (project.folder / "lint.sarif").read_text()


@pytest.mark.parametrize("file", ["other.yaml", "../policies/a.yaml", "/etc/passwd", "policies"])
def test_files_elsewhere_are_refused(project: Project, file: str) -> None:
    """Only what a project's policies are made of has a place there."""
    project.policy("a")
    assert "GPU026" in asked(project, file, policy("a")).out


def test_a_text_that_is_no_yaml(project: Project) -> None:
    """Half-written files are the rule in an editor: the finding says where, and no traceback comes."""
    project.policy("a")
    ran = asked(project, "policies/a.yaml", "spec: {release: [")
    assert ran.code == 4
    assert ran.json["findings"][0]["file"] == "policies/a.yaml"
