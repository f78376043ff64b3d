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
