"""The formats of lint's report: each is read back by what reads such a format, and holds what was found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from gpustack.cli.formats import FORMATS, Report, write
from gpustack.cli.formats.github import annotation
from gpustack.compiler.judge import GroupedFinding
from gpustack.compiler.lint import Lint
from gpustack.model import Finding, Location

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif.schema.json").read_text(encoding="utf-8"))

LINE = Location("policies/prod a.yaml", 7, 12, "  driver: {enabled: \u201ctrue\u201d}")
ERROR = Finding("GPU102", "error", "50% are wrong: a, b\x07", "spec.cdi", LINE, "two\nlines", 'set <x> & "y"')
WARNING = Finding("GPU103", "warning", "no pool", "spec.driver.enabled", why="why", remedy="do")
WAIVED = Finding("GPU138", "note", "a token", "spec.driver", LINE, "why", "do", waived="me, until 2030-01-01: fine")
UNREADABLE = Finding("GPU001", "error", "it is a folder", location=Location("policies/x.yaml"))
FOUND = (
    GroupedFinding(UNREADABLE, ()),
    GroupedFinding(ERROR, ("prod-a", "prod-b")),
    GroupedFinding(WARNING, ("prod-a",)),
    GroupedFinding(WAIVED, ("prod-b",)),
)


def report(*found: GroupedFinding, unusable: bool = False, failing: tuple[str, ...] = ("error",)) -> Report:
    """A report about three clusters."""
    return Report(Lint(("prod-a", "prod-b", "lab"), found, unusable, 1), failing)


FULL = report(*FOUND, unusable=True)


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_found(name: str) -> None:
    """A report of nothing is one, and says so in its format; every report ends with a line end or is empty."""
    text = write(name, report())
    assert text.endswith("\n") or not text
    assert "GPU" not in text


@pytest.mark.parametrize("name", FORMATS)
def test_everything_is_in_it(name: str) -> None:
    """Whatever the format: the rule, the sentence and the file of each finding."""
    text = write(name, FULL)
    for finding in (ERROR, WARNING, WAIVED, UNREADABLE):
        assert finding.rule in text
    assert text.isprintable() or not re.search(r"[\x00-\x08\x0b-\x1f]", text)
    assert write(name, FULL) == text


@pytest.mark.parametrize(
    ("found", "unusable", "failing", "code"),
    [
        ((), False, ("error",), 0),
        ((WARNING,), False, ("error",), 0),
        ((WARNING,), False, ("error", "warning"), 2),
        ((WAIVED,), False, ("error", "warning"), 0),
        ((WAIVED,), False, ("error", "warning", "note"), 2),
        ((ERROR,), False, ("error",), 2),
        ((ERROR,), False, (), 0),
        ((UNREADABLE,), True, (), 4),
    ],
)
def test_exit_code(found: tuple[Finding, ...], unusable: bool, failing: tuple[str, ...], code: int) -> None:
    """2 where a finding is of a severity to fail for, 4 where something could not be read, whatever else there is."""
    items = [GroupedFinding(finding, ("lab",)) for finding in found]
    assert report(*items, unusable=unusable, failing=failing).code == code


def test_text() -> None:
    """The line with a mark, why, what to do, who else; the last line counts. Control characters don't reach the
    terminal."""
    text = write("text", FULL)
    assert "policies/prod a.yaml:7:12: error GPU102: 50% are wrong: a, b\\x07 (also in prod-b)" in text
    assert "    7 |   driver: {enabled: \u201ctrue\u201d}\n      |            ^" in text
    assert "  waived by: me, until 2030-01-01: fine" in text
    assert text.splitlines()[-1] == "3 clusters: 2 errors, 1 warning, 1 waived"
    assert write("text", report()) == "3 clusters: nothing to say\n"


def test_json() -> None:
    """A versioned document with all clusters of each finding."""
    document = json.loads(write("json", FULL))
    assert (document["version"], document["exit"]) == (1, 4)
    assert document["clusters"] == ["prod-a", "prod-b", "lab"]
    assert document["counts"] == {"error": 2, "warning": 1, "note": 0, "waived": 1}
    error = document["findings"][1]
    assert (error["rule"], error["line"], error["column"], error["clusters"]) == ("GPU102", 7, 12, ["prod-a", "prod-b"])
    assert [item["waived"] for item in document["findings"]] == [None, None, None, WAIVED.waived]


def sarif(found: Report) -> Any:
    """The SARIF document of FOUND, which its schema takes."""
    document = json.loads(write("sarif", found))
    validator = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    assert [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(document)] == []
    return document["runs"][0]


def test_sarif() -> None:
    """It is what SARIF 2.1.0 asks for: levels, rules by index with their texts, places as escaped relative addresses,
    suppressions with their reason."""
    run = sarif(FULL)
    results = {result["ruleId"]: result for result in run["results"]}
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = results["GPU102"]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "policies/prod%20a.yaml", "uriBaseId": "%SRCROOT%"}
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (7, 12)
    assert results["GPU102"]["properties"]["clusters"] == ["prod-a", "prod-b"]
    assert results["GPU103"]["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "spec.driver.enabled", "kind": "member"}]}
    ]
    assert "region" not in results["GPU001"]["locations"][0]["physicalLocation"]
    assert results["GPU138"]["level"] == "note"
    assert results["GPU138"]["suppressions"][0]["justification"] == WAIVED.waived
    assert all("suppressions" not in results[name] for name in ("GPU001", "GPU102", "GPU103"))
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 4}]
    assert sarif(report())["results"] == []


def test_sarif_has_the_pages_of_rules() -> None:
    """Each rule comes with its title, and with its page as help; what is not a rule has its title."""
    rules = {rule["id"]: rule for rule in sarif(FULL)["tool"]["driver"]["rules"]}
    assert "```yaml" in rules["GPU102"]["help"]["markdown"]
    assert rules["GPU102"]["defaultConfiguration"] == {"level": "error"}
    assert rules["GPU001"] == {"id": "GPU001", "shortDescription": {"text": "A file or folder can't be read"}}


def test_sarif_fingerprints() -> None:
    """A finding keeps its fingerprint when lines move and clusters join; another finding has another."""

    def print_of(finding: Finding, *clusters: str) -> str:
        (result,) = sarif(report(GroupedFinding(finding, clusters)))["results"]
        return str(result["partialFingerprints"])

    moved = Finding(ERROR.rule, "error", ERROR.what, ERROR.path, Location(LINE.file, 99, 1, "x"))
    assert print_of(ERROR, "a") == print_of(moved, "a", "b")
    assert print_of(ERROR, "a") != print_of(WARNING, "a")


def test_github() -> None:
    """A line per finding: line ends and % are escaped, in properties commas and colons too, so that none breaks it."""
    lines = write("github", FULL).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith(
        "::error file=policies/prod a.yaml,line=7,col=12,title=gpustack GPU102::50%25 are wrong: a, b"
    )
    assert "(also in prod-b)%0Awhy: two%0Alines%0Ado: " in lines[1]
    assert lines[2].startswith("::warning title=gpustack GPU103::no pool%0Aat: spec.driver.enabled%0A")
    assert lines[3].startswith("::notice ")
    odd = annotation(Finding("GPU102", "error", "x", location=Location("a,b:c%.yaml", 1)))
    assert odd.startswith("::error file=a%2Cb%3Ac%25.yaml,line=1,title=gpustack GPU102::x")


def test_junit() -> None:
    """A suite per cluster, with a case that passes where nothing was found; what fails the verb is a failure, what was
    waived is skipped, and the counts are those of the cases."""
    root = ElementTree.fromstring(write("junit", FULL))  # noqa: S314 - our own
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"prod-a", "prod-b", "lab", "policies/x.yaml"}
    assert [case.get("name") for case in suites["lab"]] == ["no findings"]
    kinds = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in root.iter("testcase")}
    assert kinds["prod-a", "GPU102 spec.cdi"] == ["failure"]
    assert kinds["prod-b", "GPU102 spec.cdi"] == ["failure"]
    assert kinds["prod-a", "GPU103 spec.driver.enabled"] == ["system-out"]
    assert kinds["prod-b", "GPU138 spec.driver"] == ["skipped"]
    assert {key: root.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "6",
        "failures": "3",
        "skipped": "1",
    }
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    failure = suites["prod-a"].find("testcase/failure")
    assert failure is not None
    assert 'do: set <x> & "y"' in (failure.text or "")


def test_junit_counts_what_fails() -> None:
    """With --fail-on warning, a warning is a failure."""
    strict = report(GroupedFinding(WARNING, ("lab",)), failing=("error", "warning"))
    assert ElementTree.fromstring(write("junit", strict)).get("failures") == "1"  # noqa: S314 - our own


ODD = Finding("GPU102", "error", "a\udcff\x1b", 'spec["\x07\ufffe"]', Location("b\udcff\x0c.yaml", 1, 1, "\udcff"))


@pytest.mark.parametrize("name", FORMATS)
def test_what_no_encoding_has(name: str) -> None:
    """Halves of characters, which stand for bytes of a file's name, and what XML can't hold break no report."""
    text = write(name, report(GroupedFinding(ODD, ()), GroupedFinding(ODD, ("prod-a",))))
    assert "\\udcff" in text
    text.encode("utf-8")
    if name in ("json", "sarif"):
        json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")  # readers other than Python's refuse halves
    if name == "junit":
        ElementTree.fromstring(text)  # noqa: S314 - our own


def test_junit_is_the_same_in_every_encoding() -> None:
    """It says that it is UTF-8, and is printed in whatever encoding the terminal has."""
    odd = Finding("GPU102", "error", "\u201ctrue\u201d", "spec.cdi", LINE)
    text = write("junit", report(GroupedFinding(odd, ("prod-a",))))
    assert text.isascii()
    failure = ElementTree.fromstring(text).find("testsuite/testcase/failure")  # noqa: S314 - our own
    assert failure is not None
    assert failure.get("message") == "\u201ctrue\u201d"


HOSTILE = "\x1b[31m\r::stop-commands::x\n::error::pwned\x9b2J\u202e##[add-mask]x##vso[task.x]y"
COMMANDS = re.compile(r"^\s*::(?!error file=)|##\[|##vso\[|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", re.MULTILINE)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("where", ["file", "what", "path", "why", "remedy", "text", "cluster"])
def test_no_format_lets_values_steer_who_reads_it(name: str, where: str) -> None:
    """A file's name, a cluster's or a value with control characters or commands of CI systems is shown, and obeyed by
    nobody: not by the terminal, and not by what reads the log.
    """
    words = dict.fromkeys(("what", "path", "why", "remedy"), "plain") | {where: HOSTILE}
    place = Location(HOSTILE if where == "file" else "f.yaml", 1, 1, HOSTILE if where == "text" else "x")
    finding = Finding("GPU102", "error", words["what"], words["path"], place, words["why"], words["remedy"])
    cluster = HOSTILE if where == "cluster" else "one"
    written = write(name, Report(Lint((cluster,), (GroupedFinding(finding, (cluster,)),), False, 1), ("error",)))
    assert not COMMANDS.search(written), written
    if name in {"json", "sarif"} and where == "what":  # data is what it was, for whoever reads it as JSON
        assert "##[add-mask]x##vso[task.x]y" in str(json.loads(written))
