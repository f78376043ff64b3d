"""Date and waivers: which findings count today, what becomes of waived ones, and which waivers are of no use."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from gpustack.compiler.judge import Decisions, due
from gpustack.model import Finding, Location
from gpustack.policy.loading.waivers import Waiver

HERE = Path("policies")
TODAY = datetime.date(2027, 3, 31)
DAY = datetime.timedelta(days=1)
ERROR = Finding("GPU130", "error", "two drivers", path="spec.drivers[1]", why="why", remedy="remedy")


def waiver(rule: str = "GPU130", clusters: str = "lab", path: str = "*", expires: datetime.date = TODAY) -> Waiver:
    """A waiver at line 3 of its file."""
    where = Location("policies/waivers.yaml", 3, 3, "- rule: x")
    return Waiver(rule, (clusters,), path, "reasons", "me", expires, where)


def decisions(*waivers: Waiver, today: datetime.date | None = TODAY) -> Decisions:
    """What WAIVERS decide on the day TODAY."""
    return Decisions({HERE: waivers}, today)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, True),
        (TODAY, None, True),
        (TODAY + DAY, None, False),
        (None, TODAY, False),
        (None, TODAY + DAY, True),
        (TODAY - DAY, TODAY, False),
        (TODAY, TODAY + DAY, True),
    ],
)
def test_due(since: datetime.date | None, until: datetime.date | None, expected: bool) -> None:
    """A finding counts from the day `since` on, and before the day `until`; without a date, if it has neither."""
    finding = Finding("GPU400", "error", "x", since=since, until=until)
    assert due(finding, TODAY) is expected
    assert due(finding, None) is (since is None and until is None)


def test_waived_finding() -> None:
    """It becomes a note that says who waived it, until when and why; everything else stays."""
    found = decisions(waiver()).waive(HERE, "lab", ERROR)
    assert (found.severity, found.waived) == ("note", "me, until 2027-03-31: reasons")
    assert (found.rule, found.what, found.path, found.why) == (ERROR.rule, ERROR.what, ERROR.path, ERROR.why)


@pytest.mark.parametrize(
    "other",
    [waiver("GPU131"), waiver(clusters="prod"), waiver(path="spec.nodePools*"), waiver(expires=TODAY - DAY)],
    ids=["rule", "cluster", "path", "expired"],
)
def test_not_waived(other: Waiver) -> None:
    """Another rule, another cluster, another path and another time waive nothing."""
    assert decisions(other).waive(HERE, "lab", ERROR) == ERROR


def test_waivers_of_another_folder() -> None:
    """A waiver counts for the policies that it lies beside."""
    assert decisions(waiver()).waive(Path("elsewhere"), "lab", ERROR) == ERROR


def test_the_last_day() -> None:
    """A waiver counts on the day that it names, and the day after it is an error at its line."""
    last, next_day = decisions(waiver()), decisions(waiver(), today=TODAY + DAY)
    assert last.waive(HERE, "lab", ERROR).waived
    assert last.complaints({HERE: ["lab"]}, {HERE: []}) == []
    assert next_day.waive(HERE, "lab", ERROR) == ERROR
    (found,) = next_day.complaints({HERE: ["lab"]}, {HERE: []})
    assert (found.rule, found.severity, str(found.location)) == ("GPU031", "error", "policies/waivers.yaml:3:3")
    assert next_day.complaints({HERE: ["prod"]}, {}) == [], "it is about a cluster that nobody looks at now"


def test_without_a_date_nothing_expires() -> None:
    """A render as a library call depends on no clock."""
    old = decisions(waiver(expires=TODAY - 9999 * DAY), today=None)
    assert old.waive(HERE, "lab", ERROR).waived
    assert old.complaints({HERE: ["lab"]}, {HERE: []}) == []


def test_unused_waiver() -> None:
    """A waiver that covered nothing is an error at its line, where every policy of the folder was looked at."""
    for looked_at, expected in (({}, []), ({HERE: []}, ["GPU032"]), ({HERE: ["lab"]}, []), ({HERE: ["x"]}, ["GPU032"])):
        found = decisions(waiver()).complaints({HERE: ["lab", "x"]}, looked_at)
        assert [finding.rule for finding in found] == expected
        assert all(finding.severity == "error" and finding.location for finding in found)


def test_what_can_not_be_waived() -> None:
    """A waiver of something that is not a rule is unused, and is told why."""
    (found,) = decisions(waiver("GPU901")).complaints({HERE: ["lab"]}, {HERE: []})
    assert (found.rule, "GPU901 is not a rule" in found.why) == ("GPU032", True)


def test_two_waivers_of_one_finding() -> None:
    """The first speaks; both are of use."""
    both = decisions(waiver(), waiver(path="spec.drivers*"))
    assert both.waive(HERE, "lab", ERROR).waived
    assert both.complaints({HERE: ["lab"]}, {HERE: []}) == []
