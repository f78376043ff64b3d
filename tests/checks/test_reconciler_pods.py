"""Rules about what the reconciler does with pods of others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checks.test_reconciler import BY_DISCOVERY, IMAGE, found
from tests.components.common import spec

DELETE = {"labels": {"app": "job"}, "then": "delete"}
OLD, NEW = {"kubernetesVersion": "1.29"}, {"kubernetesVersion": "1.30"}


@pytest.mark.parametrize(
    ("cluster", "section", "mode", "mend"),
    [
        (OLD, {}, None, ""),
        (NEW, {}, None, None),
        (NEW, {}, "Deny", None),
        (NEW, {}, "Audit", "set spec.guards.mode: Deny"),
        (NEW, {}, "Off", "set spec.guards.mode: Deny"),
        (NEW, {"admissionPolicy": False}, None, "set spec.reconciler.admissionPolicy: true"),
        (
            NEW,
            {"admissionPolicy": False},
            "Off",
            "set spec.reconciler.admissionPolicy: true and set spec.guards.mode: Deny",
        ),
    ],
)
@pytest.mark.parametrize(
    ("said", "places"),
    [
        ({"podRules": [{**DELETE, "then": "wait"}, DELETE]}, {"podRules[1].then": "set {}: evict"}),
        ({"ignoreBudgetsAfterSeconds": 0}, {"ignoreBudgetsAfterSeconds": "leave out {}"}),
        (
            {"podRules": [DELETE], "ignoreBudgetsAfterSeconds": 60},
            {"podRules[0].then": "set {}: evict", "ignoreBudgetsAfterSeconds": "leave out {}"},
        ),
    ],
)
def test_no_right_to_delete_without_its_guard(
    cluster: dict[str, Any],
    section: dict[str, Any],
    mode: str | None,
    mend: str | None,
    said: dict[str, Any],
    places: dict[str, str],
) -> None:
    """Whoever may delete pods everywhere is held to some by a guard that denies, or nothing is rendered; told is what
    to change: the right, or what keeps the guard away, all of it."""
    policy = spec(cluster=cluster, guards={"mode": mode}, reconciler={**IMAGE, **section, **said})
    told = {one.path: one for one in found("GPU840", policy)}
    paths = {f"spec.reconciler.{place}": without for place, without in places.items()}
    assert set(told) == (set() if mend is None else set(paths))
    for path, finding in told.items():
        assert finding.severity == "error"
        assert finding.remedy == paths[path].format(path) + (f"; or {mend}" if mend else "")


def test_who_deletes_nothing_needs_no_guard() -> None:
    """Other rules, and a program that isn't rendered, give no such right."""
    others = [{**DELETE, "then": then} for then in ("leave", "wait", "evict")]
    off: dict[str, Any] = {"guards": {"mode": "Off"}}
    assert not found("GPU840", spec(reconciler={**IMAGE, "podRules": others}, **off))
    assert not found("GPU840", spec(reconciler={**BY_DISCOVERY, "podRules": [DELETE]}, **off))
    assert not found("GPU840", spec(**off))


@pytest.mark.parametrize(
    ("first", "later", "never"),
    [
        ({"a": "1"}, {"a": "1"}, True),
        ({"a": "1"}, {"a": "1", "b": "2"}, True),
        ({"a": "1", "b": "2"}, {"a": "1"}, False),
        ({"a": "1"}, {"a": "2"}, False),
        ({"a": "1"}, {"b": "1"}, False),
    ],
)
@pytest.mark.parametrize(
    ("space", "other", "taken"),
    [(None, None, True), (None, "ml", True), ("ml", "ml", True), ("ml", None, False), ("ml", "web", False)],
)
def test_rules_that_never_count(
    first: dict[str, str], later: dict[str, str], never: bool, space: str | None, other: str | None, taken: bool
) -> None:
    """An earlier rule with the same labels or fewer, in the same namespace or in any, leaves a later one no pod."""
    rules = [
        {"labels": first, "namespace": space, "then": "evict"},
        {"labels": {"x": "y"}, "then": "wait"},
        {"labels": later, "namespace": other, "then": "delete"},
    ]
    hits = found("GPU841", spec(reconciler={**IMAGE, "podRules": rules}))
    assert [each.path for each in hits] == ["spec.reconciler.podRules[2]"] * (never and taken)
    assert all(each.severity == "warning" and "podRules[0]" in each.what for each in hits)


def window(hours: int, start: str = "22:00", *days: str, **more: str) -> dict[str, Any]:
    """A window of HOURS from START on."""
    return {"days": list(days), "start": start, "hours": hours, **more}


@pytest.mark.parametrize(
    ("windows", "seconds", "most"),
    [
        ([], 700_000, None),
        ([window(8)], 28_800, None),
        ([window(8)], 28_801, 28_800),
        ([window(8), window(2, "10:00")], 28_801, 28_800),
        ([window(2, "10:00"), window(8)], 28_800, None),
        ([window(2, "20:00", "sat"), window(2, "22:00", "sat")], 14_400, None),
        ([window(2, "20:00", "sat"), window(2, "22:00", "sat", timeZone="Europe/Berlin")], 14_400, 7200),
        ([window(2, "22:00", "sun"), window(2, "00:00", "mon")], 14_400, None),
        ([window(2, "22:00", "sun"), window(2, "00:00", "mon")], 14_401, 14_400),
        ([window(24, "00:00")], 700_000, None),
        ([window(24, "00:00", "sat", "sun")], 172_801, 172_800),
    ],
)
def test_nodes_that_soak_longer_than_windows(windows: list[Any], seconds: int, most: int | None) -> None:
    """Where no window is open for as long as a node soaks, each window has one node; windows that meet are one."""
    hits = found("GPU842", spec(reconciler={**IMAGE, "windows": windows, "soakSeconds": seconds}))
    assert [each.severity for each in hits] == ["warning"] * (most is not None)
    assert all(f"spec.reconciler.soakSeconds: {most} or less;" in each.remedy for each in hits)


def test_soaking_is_told_of_the_pools_that_it_is_about() -> None:
    """Pools have windows of their own; one that may be worked on at any time, or for longer, is not named."""
    own = {"a": [window(4)], "b": [window(2)], "c": [window(12)], "d": []}
    pools = [{"name": name, "os": "ubuntu22.04", "upgrade": {"windows": windows}} for name, windows in own.items()]
    (told,) = found("GPU842", spec(nodePools=pools, reconciler={**IMAGE, "soakSeconds": 36_000}))
    assert (told.path, "node pools a and b" in told.what) == ("spec.reconciler.soakSeconds", True)
    assert "soakSeconds: 7200 or less" in told.remedy


def test_a_pools_own_soak_is_held_against_its_own_windows() -> None:
    """Told is where the seconds stand, and of the others where the cluster's do."""
    own = {"a": ([window(4)], 14_401), "b": ([window(4)], 14_400), "c": ([window(2)], None), "d": ([window(4)], None)}
    pools = [
        {"name": name, "os": "ubuntu22.04", "upgrade": {"windows": windows, "soakSeconds": seconds}}
        for name, (windows, seconds) in own.items()
    ]
    first, second = sorted(
        found("GPU842", spec(nodePools=pools, reconciler={**IMAGE, "soakSeconds": 9000})), key=lambda each: each.path
    )
    assert (first.path, "14401 s" in first.what) == ("spec.nodePools[0].upgrade.soakSeconds", True)
    assert "spec.nodePools[0].upgrade.soakSeconds: 14400 or less" in first.remedy
    assert (second.path, "node pool c" in second.what) == ("spec.reconciler.soakSeconds", True)


def test_values_that_stand_twice() -> None:
    """Each further place of a value, by itself; another label may have the same value."""
    orders = [{"key": "a", "values": ["x", "y", "x", "x"]}, {"key": "b", "values": ["x", "y"]}]
    hits = found("GPU843", spec(reconciler={**IMAGE, "order": {"labels": orders}}))
    assert [each.path for each in hits] == [f"spec.reconciler.order.labels[0].values[{at}]" for at in (2, 3)]
    assert {each.severity for each in hits} == {"warning"}
