"""waivers.yaml: what it may say, where it is wrong, and what a waiver covers."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest

from gpustack.model import Finding, InputError
from gpustack.policy.loading.load import policy_files
from gpustack.policy.loading.waivers import Waiver, waivers_of

GOOD = """\
# decided in March
- rule: GPU130
  clusters: [lab-*, demo]
  path: spec.nodePools[*].kernel
  reason: both are
    the same build
  owner: gpu-platform
  expires: 2027-03-31
- {rule: GPU103, clusters: "*", reason: no drivers here, owner: me, expires: "2027-01-01"}
"""


def read(folder: Path, text: str) -> tuple[Waiver, ...]:
    """The waivers of a file with TEXT."""
    (folder / "waivers.yaml").write_text(text, encoding="utf-8")
    return waivers_of(folder, "policies/waivers.yaml")


def refused(folder: Path, text: str) -> list[Finding]:
    """What is wrong with TEXT."""
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return caught.value.findings


def test_waivers(tmp_path: Path) -> None:
    """Each waiver has its rule, clusters, path, words, last day, and the line that it begins at."""
    first, second = read(tmp_path, GOOD)
    assert (first.rule, first.clusters, first.path) == ("GPU130", ("lab-*", "demo"), "spec.nodePools[*].kernel")
    assert first.words == "gpu-platform, until 2027-03-31: both are the same build"
    assert first.expires == datetime.date(2027, 3, 31)
    assert str(first.location) == "policies/waivers.yaml:2:3"
    assert (second.clusters, second.path) == (("*",), "*")
    assert str(second.location) == "policies/waivers.yaml:9:4"


@pytest.mark.parametrize("text", ["", "# nothing waived\n", "[]\n"])
def test_no_waivers(tmp_path: Path, text: str) -> None:
    """An empty file, an empty list and no file are all the same: nothing is waived."""
    assert waivers_of(tmp_path, "waivers.yaml") == ()
    assert read(tmp_path, text) == ()


def test_the_file_is_no_policy(tmp_path: Path) -> None:
    """It lies among the policies and isn't taken for one."""
    read(tmp_path, GOOD)
    (tmp_path / "a.yaml").write_text("", encoding="utf-8")
    assert [path.name for path in policy_files(tmp_path, "policies")] == ["a.yaml"]


@pytest.mark.parametrize(
    ("line", "rule", "path"),
    [
        ("reason: x", "GPU017", "waivers[0].reason"),
        ("owner: me", "GPU017", "waivers[0].owner"),
        ("expires: 2027-03-31", "GPU017", "waivers[0].expires"),
        ("clusters: [a]", "GPU017", "waivers[0].clusters"),
        ("rule: GPU130", "GPU017", "waivers[0].rule"),
    ],
)
def test_nothing_may_be_missing(tmp_path: Path, line: str, rule: str, path: str) -> None:
    """Without a reason, an owner, an end, clusters or a rule it is no waiver; the finding points to the waiver."""
    lines = ["reason: x", "owner: me", "expires: 2027-03-31", "clusters: [a]", "rule: GPU130"]
    lines.remove(line)
    text = "- " + "\n  ".join(lines) + "\n"
    (found,) = refused(tmp_path, f"# a comment\n{text}")
    assert (found.rule, found.path) == (rule, path)
    assert found.location is not None
    assert (found.location.file, found.location.line) == ("policies/waivers.yaml", 2)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("reason: no drivers here", "reason: ''", "GPU018"),
        ("reason: no drivers here", "reason: '...'", "GPU018"),
        ("owner: me", "owner: ' '", "GPU018"),
        ("rule: GPU103", "rule: gpu103", "GPU018"),
        ("rule: GPU103", "rule: 103", "GPU018"),
        ('clusters: "*"', "clusters: []", "GPU018"),
        ('"2027-01-01"', "2027-02-30", "GPU018"),
        ('"2027-01-01"', "2027-1-1", "GPU018"),
        ('"2027-01-01"', "20270101", "GPU018"),
        ("owner: me", "owner: me, until: 2027-01-01", "GPU016"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, rule: str) -> None:
    """Words that say nothing, days and ids that aren't any, and keys that are not known are refused at their
    line."""
    assert old in GOOD
    (found,) = refused(tmp_path, GOOD.replace(old, new))
    assert found.rule == rule
    assert found.location is not None
    assert found.location.line == 9
    assert found.what


@pytest.mark.parametrize("text", ["waivers:\n- rule: GPU103\n", "- GPU103\n", "GPU103\n"])
def test_it_is_a_list_of_mappings(tmp_path: Path, text: str) -> None:
    """Anything else is refused with what to write."""
    (found,) = refused(tmp_path, text)
    assert found.rule == "GPU030"
    assert found.location is not None
    assert found.remedy


def test_all_mistakes_are_told_together(tmp_path: Path) -> None:
    """Whoever repairs the file does it once."""
    found = refused(tmp_path, GOOD.replace("owner: me, ", "").replace("rule: GPU130", "rule: x"))
    assert [finding.path for finding in found] == ["waivers[0].rule", "waivers[1].owner"]


@pytest.mark.parametrize(
    ("cluster", "rule", "path", "covered"),
    [
        ("lab-a", "GPU130", "spec.nodePools[0].kernel", True),
        ("lab-a", "GPU130", "spec.nodePools[12].kernel", True),
        ("demo", "GPU130", "spec.nodePools[0].kernel", True),
        ("demo-2", "GPU130", "spec.nodePools[0].kernel", False),
        ("lab-a", "GPU131", "spec.nodePools[0].kernel", False),
        ("lab-a", "GPU130", "spec.nodePools[0].os", False),
        ("lab-a", "GPU130", "spec.nodePools0.kernel", False),
        ("lab-a", "GPU130", "spec.nodePools[0].kernel.more", False),
    ],
)
def test_what_a_waiver_covers(tmp_path: Path, cluster: str, rule: str, path: str, covered: bool) -> None:
    """Rule, cluster and path must fit; brackets in a path are brackets, not a set of characters."""
    waiver = read(tmp_path, GOOD)[0]
    assert waiver.covers(cluster, Finding(rule, "error", "x", path=path)) is covered


def test_a_path_of_many_stars_takes_no_longer(tmp_path: Path) -> None:
    """No pattern keeps the program busy."""
    stars = "*" * 3000 + "*a" * 30 + "z"
    waiver = read(tmp_path, GOOD.replace("spec.nodePools[*].kernel", f'"{stars}"'))[0]
    started = time.process_time()
    assert not waiver.covers("demo", Finding("GPU130", "error", "x", path="a" * 200))
    assert time.process_time() - started < 1


def test_two_waivers_for_the_same(tmp_path: Path) -> None:
    """Only one of two reasons would ever be shown: the second is refused, with the place of the first."""
    (found,) = refused(tmp_path, GOOD + GOOD.replace("[lab-*, demo]", "[demo, lab-*]").partition("- {")[0])
    assert (found.rule, found.location and found.location.line) == ("GPU030", 11)
    assert "policies/waivers.yaml:2:3" in found.why
    assert len(read(tmp_path, GOOD + GOOD.replace("spec.nodePools[*].kernel", "spec.x").partition("- {")[0])) == 3


def test_waivers_among_layers(tmp_path: Path) -> None:
    """Nobody reads them there, which is told; a layer may be called so."""
    (tmp_path / "layers").mkdir()
    astray = tmp_path / "layers" / "waivers.yaml"
    astray.write_text(GOOD, encoding="utf-8")
    (found,) = refused(tmp_path, GOOD)
    assert (found.rule, str(found.location)) == ("GPU030", "policies/layers/waivers.yaml")
    assert "policies/waivers.yaml" in found.remedy
    astray.write_text("apiVersion: gpustack.dev/v1alpha1\nkind: PolicyLayer\n", encoding="utf-8")
    assert len(read(tmp_path, GOOD)) == 2
