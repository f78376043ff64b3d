"""gpustack lint: all rules on some policies, and nothing written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.project import REFUSED, WARNED, Project, document

WAIVER = """\
- rule: GPU102
  clusters: a
  reason: the toolkit comes with the nodes
  owner: me
  expires: {expires}
"""
TODAY = ("--today", "2027-03-31")


@pytest.fixture
def three(project: Project) -> Project:
    """A cluster with an error, one with a warning, one that is fine."""
    project.policy("a", **REFUSED)
    project.policy("b", **WARNED)
    project.policy("c")
    return project


def rules(project: Project, *words: str) -> list[tuple[str, str, list[str]]]:
    """Rule, severity and clusters of everything that is found."""
    found = project.run("lint", "--format", "json", *words).json["findings"]
    return [(item["rule"], item["severity"], item["clusters"]) for item in found]


def test_all_findings(three: Project) -> None:
    """Errors first, then warnings, then notes, each with its place; nothing is written to the project."""
    before = set(three.folder.rglob("*"))
    done = three.run("lint")
    assert (done.code, done.err) == (2, "")
    assert "policies/a.yaml:" in done.out
    assert done.out.index("error GPU102") < done.out.index("warning GPU473") < done.out.index("note GPU105")
    assert done.out.splitlines()[-1].startswith("3 clusters: 1 error, 1 warning, ")
    assert set(three.folder.rglob("*")) == before


def test_one_error_does_not_hide_others(three: Project) -> None:
    """A cluster that a rule refuses has its warnings and notes said as well, and other clusters theirs."""
    three.policy("a", **REFUSED, **WARNED)
    assert ("GPU102", "error", ["a"]) in rules(three)
    assert ("GPU473", "warning", ["a", "b"]) in rules(three)


def test_a_policy_that_can_not_be_read(three: Project) -> None:
    """It is a finding among the others, about no cluster; the exit code is that of bad input."""
    three.policy("d", nonsense=1)
    three.write("policies/e.yaml", "a: [")
    done = three.run("lint", "--format", "json", "--fail-on", "never")
    assert done.code == 4
    found = {item["rule"]: item for item in done.json["findings"]}
    assert {"GPU003", "GPU016", "GPU102", "GPU473"} <= set(found)
    assert (found["GPU016"]["clusters"], found["GPU016"]["file"]) == ([], "policies/d.yaml")
    assert done.json["clusters"] == ["a", "b", "c"]


def test_two_files_for_one_cluster(three: Project) -> None:
    """They are told, and the others are looked at."""
    three.policy("c", file="policies/other.yaml")
    done = three.run("lint", "--format", "json")
    assert done.code == 4
    assert {"GPU020", "GPU102"} <= {item["rule"] for item in done.json["findings"]}


@pytest.mark.parametrize(
    ("clusters", "fail_on", "code"),
    [
        ("a", "error", 2),
        ("a", "never", 0),
        ("b", "error", 0),
        ("b", "warning", 2),
        ("b", "never", 0),
        ("c", "warning", 0),
    ],
)
def test_fail_on(three: Project, clusters: str, fail_on: str, code: int) -> None:
    """The exit code is 2 where a finding is at or above --fail-on; the findings are printed in any case."""
    assert three.run("lint", clusters, "--fail-on", fail_on).code == code


def test_fail_on_notes(three: Project) -> None:
    """Notes fail where notes are asked for."""
    three.policy("c", operator={"defaultRuntime": "containerd"})
    assert [three.run("lint", "c", "--fail-on", level).code for level in ("warning", "note")] == [0, 2]


def test_some_clusters(three: Project) -> None:
    """Names, globs and files are taken as by render; a typo is no success."""
    assert three.run("lint", "c", "--fail-on", "warning").code == 0
    assert three.run("lint", "policies/a.yaml").code == 2
    assert three.run("lint", "nobody").code == 4


def test_equal_findings_are_one(project: Project) -> None:
    """What is wrong with many clusters in one way is one finding, at the place that they share."""
    project.layer("base", **WARNED)
    for name in "abcde":
        spec = {"extends": ["base"], "release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}
        project.write(f"policies/{name}.yaml", document("ClusterPolicy", name, spec))
    found = project.run("lint", "--format", "json").json["findings"]
    (warning,) = [item for item in found if item["rule"] == "GPU473"]
    assert (warning["clusters"], warning["file"]) == (list("abcde"), "policies/layers/base.yaml")


def test_reports(three: Project) -> None:
    """--report writes any number of formats into files, folders and all; what is printed is another matter."""
    reports = [f"{name}=out/{name}.txt" for name in ("text", "json", "sarif", "github", "junit")]
    done = three.run("lint", *(word for report in reports for word in ("--report", report)), "--format", "github")
    assert done.code == 2
    assert done.out.startswith("::error ")
    files = {path.name: path.read_text(encoding="utf-8") for path in (three.folder / "out").iterdir()}
    assert set(files) == {f"{name}.txt" for name in ("text", "json", "sarif", "github", "junit")}
    assert files["github.txt"] == done.out
    assert json.loads(files["sarif.txt"])["runs"][0]["invocations"][0]["exitCode"] == 2
    assert all("GPU102" in text for text in files.values())


@pytest.mark.parametrize("word", ["sarif", "sarif=", "xml=x", "=x"])
def test_a_report_without_format_or_path(three: Project, word: str) -> None:
    """It is refused before anything is looked at."""
    done = three.run("lint", "--report", word)
    assert (done.code, done.out) == (4, "")
    assert "FORMAT=PATH" in done.err


@pytest.mark.parametrize("words", [["json=-"], ["json=a", "sarif=a"]])
def test_reports_that_would_get_lost(three: Project, words: list[str]) -> None:
    """A file called - is meant for nobody, and of two reports in one file the first is gone: nothing is written."""
    done = three.run("lint", *(part for word in words for part in ("--report", word)))
    assert (done.code, "GPU026" in done.err) == (4, True)
    assert not (three.folder / "-").exists()
    assert not (three.folder / "a").exists()


def test_a_report_that_can_not_be_written(three: Project) -> None:
    """A path that is a folder is exit 4 with its name, no traceback."""
    done = three.run("lint", "--report", "json=policies")
    assert done.code == 4
    assert "GPU924" in done.err
    assert "policies" in done.err


def test_render_and_check_go_by_the_same_rules(three: Project) -> None:
    """An error of lint stops a render before anything is written, and a check before it compares. Notes only lint
    shows."""
    for verb in ("render", "check"):
        done = three.run(verb)
        assert (done.code, "GPU102" in done.err) == (2, True)
    assert not three.dist.exists()
    done = three.run("render", "b")
    assert (done.code, "GPU473" in done.err, "GPU105" in done.err) == (0, True, False)


def test_waived(three: Project) -> None:
    """A waived error is a note with the reason, for the clusters of the waiver alone, and the cluster renders."""
    three.policy("a2", **REFUSED)
    three.write("policies/waivers.yaml", WAIVER.format(expires="2027-03-31"))
    found = three.run("lint", *TODAY, "--format", "json").json["findings"]
    waived = next(item for item in found if item["rule"] == "GPU102" and item["clusters"] == ["a"])
    assert (waived["severity"], waived["waived"]) == ("note", "me, until 2027-03-31: the toolkit comes with the nodes")
    assert ("GPU102", "error", ["a2"]) in rules(three, *TODAY)
    assert three.run("render", *TODAY).code == 2
    assert three.run("render", "a", *TODAY).code == 0
    assert (three.dist / "a").is_dir()
    assert three.run("check", "a", *TODAY).code == 0


def test_waivers_are_no_policy(three: Project) -> None:
    """The file is not counted among the policies, nor rendered, nor pruned."""
    (three.folder / "policies/a.yaml").unlink()
    three.write("policies/waivers.yaml", "# none\n")
    assert "2 clusters" in three.run("lint").out
    assert three.run("render").code == 0


def test_expired_waiver(three: Project) -> None:
    """The day after its last, the error is back, and the waiver is one too, at its line: for lint and for render."""
    three.write("policies/waivers.yaml", "# x\n" + WAIVER.format(expires="2027-03-30"))
    assert {("GPU102", "error", ("a",)), ("GPU031", "error", ())} <= {
        (r, s, tuple(c)) for r, s, c in rules(three, *TODAY)
    }
    done = three.run("render", "a", *TODAY)
    assert done.code == 2
    assert "policies/waivers.yaml:2:3: error GPU031" in done.err
    assert three.run("render", "b", *TODAY).code == 0, "it is about another cluster"


def test_unused_waiver(three: Project) -> None:
    """A waiver that covers nothing stops render and lint of the whole fleet, and only these."""
    three.policy("a")
    three.write("policies/waivers.yaml", WAIVER.format(expires="2027-03-31"))
    for verb in ("lint", "render"):
        done = three.run(verb, *TODAY)
        assert done.code == 2
        assert "policies/waivers.yaml:1:3: error GPU032" in done.out + done.err
        assert three.run(verb, "a", *TODAY).code == 0
    assert not (three.dist / "b").exists()


def test_an_unreadable_policy_makes_no_waiver_unused(three: Project) -> None:
    """Where a policy can't be read, nobody knows what would have been waived in it."""
    three.write("policies/waivers.yaml", WAIVER.format(expires="2027-03-31"))
    three.policy("a", **REFUSED, nonsense=1)
    assert "GPU032" not in {rule for rule, _, _ in rules(three, *TODAY)}


def test_a_refused_cluster_makes_no_waiver_unused(three: Project, tmp_path: Path) -> None:
    """Rules over what is rendered don't get to see a cluster that another rule refused: a waiver of theirs may be of
    use."""
    three = dataclasses.replace(three, cache=tmp_path / "cache")
    three.write("policies/waivers.yaml", WAIVER.format(expires="2027-03-31").replace("GPU102", "GPU201"))
    assert "GPU032" not in {rule for rule, _, _ in rules(three, *TODAY)}


def test_a_waiver_without_reason(three: Project) -> None:
    """It stops everything with the line: waivers that say nothing are none."""
    three.write(
        "policies/waivers.yaml",
        WAIVER.format(expires="2027-03-31").replace("  reason: the toolkit comes with the nodes\n", ""),
    )
    for verb in ("lint", "render", "check"):
        done = three.run(verb, *TODAY)
        assert done.code == 4
        assert "policies/waivers.yaml:1:3: error GPU017: waivers[0].reason is missing" in done.out + done.err


def test_waivers_of_policies_elsewhere(three: Project, tmp_path: Path) -> None:
    """They are those beside the policy."""
    other = Project(tmp_path / "other", three.cache)
    file = other.policy("a", **REFUSED)
    other.write("policies/waivers.yaml", WAIVER.format(expires="2027-03-31"))
    assert three.run("lint", str(file), *TODAY).code == 0
    assert three.run("lint", *TODAY).code == 2


@pytest.mark.parametrize("word", ["yesterday", "2027-02-30", "20270331", "31.3.2027", ""])
def test_a_day_that_is_none(three: Project, word: str) -> None:
    """--today takes a day of the calendar, written year, month, day."""
    done = three.run("lint", "--today", word)
    assert done.code == 4
    assert "YYYY-MM-DD" in done.err or "2027-03-31" in done.err


def test_the_second_lint_reads_nothing(three: Project) -> None:
    """What was found is remembered: with Node out of reach, the second lint says the same."""
    first = three.run("lint", "c", "b")
    again = three.spawn("lint", "c", "b", env={"JSII_NODE": "/no/such/node"})
    assert (again.code, again.out) == (first.code, first.out)
    assert "nobody set driver.upgradePolicy: it is a default of release" in first.out


def test_json_errors(three: Project) -> None:
    """What keeps lint from starting is a document too, where JSON is asked for."""
    done = three.run("lint", "nobody", "--format", "json")
    assert (done.code, done.json["findings"][0]["rule"]) == (4, "GPU021")
