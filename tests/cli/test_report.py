"""gpustack report: the page, where it goes, and what it says about a fleet that isn't in order."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.test_diff import CHANGED, commit, git
from tests.project import REFUSED, WARNED, Project


def titles(page: str) -> list[str]:
    """The headings of the page's sections."""
    return [line.partition(">")[2].partition("<")[0] for line in page.splitlines() if line.startswith("<h2")]


def test_the_fleet_on_a_page(project: Project) -> None:
    """A row for each cluster; the same bytes for the same policies and day."""
    project.policy("one")
    project.policy("two", nodePools=[{"name": "a", "count": 3, "nodeSelector": {"x": "y"}}])
    assert project.run("report").code == 0
    page = (project.folder / "report.html").read_text("utf-8")
    assert '<th scope="row">one</th>' in page
    assert '<th scope="row">two</th>' in page
    assert "<td>3</td>" in page or "<strong>3</strong>" in page
    assert titles(page)[0] == "Clusters and versions"
    assert "What changes" not in titles(page)
    assert project.run("report", "--file", "-").out == page


def test_changes_against_a_base(project: Project) -> None:
    """With --base, the page says what changes and what that does."""
    git(project.folder, "init", "-q")
    project.policy("one")
    project.run("render")
    commit(project)
    project.policy("one", **CHANGED)
    page = project.run("report", "--base", "HEAD", "--file", "-").out
    assert titles(page)[:3] == ["What changes", "What it does to nodes and workloads", "Changes"]
    assert "example.com/team" in page


def test_a_policy_that_is_refused_is_a_finding(project: Project) -> None:
    """The rest of the fleet is shown all the same, as lint does."""
    project.policy("one")
    project.policy("bad", **REFUSED)
    project.write("policies/broken.yaml", "kind: [")
    page = project.run("report", "--file", "-").out
    assert "GPU102" in page
    assert "broken.yaml" in page
    assert '<th scope="row">one</th>' in page


def test_where_it_is_written(project: Project) -> None:
    """Folders above it are made; one in its place, or one that can't be written to, is refused."""
    project.policy("one")
    assert project.run("report", "--file", "a/b/report.html").code == 0
    assert (project.folder / "a" / "b" / "report.html").is_file()
    ran = project.run("report", "--file", "a")
    assert (ran.code, "is a folder" in ran.err) == (4, True)
    ran = project.run("report", "--file", "policies/one.yaml/x.html")
    assert (ran.code, "can't be written" in ran.err) == (4, True)


def test_a_file_that_cannot_be_replaced_stays(project: Project) -> None:
    """A pipe or a device in its place is written to, a full one is told."""
    project.policy("one")
    if Path("/dev/full").exists():
        assert project.run("report", "--file", "/dev/full").code == 4


def test_without_policies(project: Project) -> None:
    """No folder policies/, or an empty one, is bad input."""
    assert project.run("report").code == 4
    (project.folder / "policies").mkdir()
    assert project.run("report").code == 4


def test_rules_are_links_and_code_is_code(project: Project) -> None:
    """The id of each rule that is named leads to what the rule means, on the page itself: whoever reads it hasn't got
    our docs. What is between backticks is code, as Markdown has it, and no backtick is left.
    """
    git(project.folder, "init", "-q")
    project.policy("one")
    project.run("render")
    commit(project)
    project.policy("one", **CHANGED)
    changes = project.run("report", "--base", "HEAD", "--file", "-").out
    project.policy("bad", **REFUSED)
    project.policy("warned", **WARNED)
    findings = project.run("report", "--file", "-").out
    for page, rule in ((changes, "IMP"), (findings, "GPU102")):
        linked = set(re.findall(r'<a href="#(\w+)">\1</a>', page))
        assert any(name.startswith(rule) for name in linked)
        assert linked == set(re.findall(r'<article id="(\w+)"', page))
        assert not re.search(r"<th[^>]*>(GPU|IMP)\d|<h3>[^<]*, (GPU|IMP)\d", page)
        assert "`" not in page
    assert "GPU102: The NRI plugin without CDI or without the container toolkit" in findings
    assert "<code>" in findings
