"""Changes of alerts: one that tells people earlier or of more is planned, any other waits for somebody, with words."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.policy.language.alerts import Alerts
from gpustack.review.impact import table
from gpustack.review.impact.leaves import changed, leaves
from gpustack.review.impact.tiers import OUTAGE, PLANNED
from tests.review.impact.requests import judge, request

END = "2027-03-31"
SILENT = {"silence": [{"alert": "XidFatal", "reason": "known", "until": END}]}


def rules(**said: Any) -> dict[str, Any]:
    """`alerts` that say this of alerts."""
    return {"rules": said}


def of_pool(name: str, **said: Any) -> dict[str, Any]:
    """`alerts` that say this of the alert NAME for pool a."""
    return rules(**{name: {"perPool": {"a": said}}})


def tier(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Of what changes from OLD to NEW, the tier."""
    sides = [leaves({"alerts": Alerts(**said).model_dump(mode="json", exclude_none=True)}) for said in (old, new)]
    return min(table.tier_of(table.policy(), leaf) for leaf in changed(*sides))


EARLIER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, rules(ValidatorWaiting={"lasts": "10m"})),
    (rules(ValidatorWaiting={"lasts": "2h"}), rules(ValidatorWaiting={"lasts": "90m"})),
    (rules(ValidatorWaiting={"lasts": "2h"}), {}),
    ({}, rules(XidFatal={"nodes": 1})),
    ({}, rules(GpusMissing={"percent": 0})),
    ({}, rules(GpuHot={"threshold": 5})),
    ({}, rules(AllocatedIdle={"threshold": 10})),
    ({}, rules(DriverCrashLoop={"threshold": 1})),
    ({}, rules(NodeXidFatal={"severity": "page"})),
    ({}, rules(TemperatureHigh={"enabled": True, "threshold": 95, "lasts": "1h"})),
    (rules(XidFatal={"enabled": False}), {}),
    ({}, of_pool("GpusMissing", nodes=1)),
    ({}, of_pool("XidFatal", nodes=1)),
    (of_pool("GpusMissing", lasts="1h"), of_pool("GpusMissing", lasts="20m")),
    (SILENT, {}),
    (SILENT, {"silence": [{"alert": "XidFatal", "reason": "ordered", "until": "2027-03-01"}]}),
    ({"runbooks": "https://a.example"}, {"runbooks": "https://b.example"}),
]
LATER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *((new, old) for old, new in EARLIER if "runbooks" not in new),
    ({}, of_pool("XidFatal", lasts="0s")),  # a node of it and one of another pool are no longer two
    ({}, of_pool("ExporterMissing", nodes=1)),  # 10 percent of all nodes may be fewer of each pool
    (rules(TemperatureHigh={"enabled": True}), rules(TemperatureHigh={"enabled": True, "threshold": 95})),
    (SILENT, {"silence": [{"alert": "XidFatal", "reason": "known", "until": "2027-04-01"}]}),
    ({}, {"enabled": False}),
    ({"labels": {"team": "a"}}, {"labels": {"team": "b"}}),
]


@pytest.mark.parametrize(("old", "new"), EARLIER)
def test_told_earlier_or_of_more(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Against what held before: the policy's word for a pool or an alert, or the catalogue's."""
    assert tier(old, new) == PLANNED


@pytest.mark.parametrize(("old", "new"), LATER)
def test_told_later_or_of_less(old: dict[str, Any], new: dict[str, Any]) -> None:
    """The same changes the other way round, and those that count nodes apart, keep silent or tell somebody else."""
    assert tier(old, new) == OUTAGE


def test_first_alerts_take_nothing_away() -> None:
    """Where there were none, one that is off or silenced is none less."""
    news = {**rules(XidFatal={"enabled": False}), **SILENT}
    after = leaves({"alerts": Alerts(**news).model_dump(mode="json", exclude_none=True)})
    assert {table.tier_of(table.policy(), leaf) for leaf in changed({}, after)} == {PLANNED}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (rules(ValidatorWaiting={"lasts": "2h"}), "people are told later than before"),
        (SILENT, "nobody is told of what this alert is about until that day has ended"),
    ],
)
def test_why_somebody_looks(said: dict[str, Any], words: str) -> None:
    """What is red says why, at its field."""
    (told,) = (each for each in judge(request("mixed-campus", {"alerts": said}))[0].effects if each.rule == "IMP905")
    assert (told.tier, words in told.what) == (OUTAGE, True)
