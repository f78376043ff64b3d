"""Guards that get looser are power, and tighter ones are planned, however both are written."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.review.diff.objects import compare
from gpustack.review.impact.amounts import tighter
from gpustack.review.impact.effects import impact
from gpustack.review.impact.origin import Fleet
from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER, UNCLASSIFIED
from tests.review.impact.requests import Values, judge, loaded, rendered, request
from tests.review.impact.test_requests import NEW_POOL, dashboard, extra, thing


def window(start: str, hours: int, *days: str, **more: str) -> Values:
    """A maintenance window."""
    return {"days": list(days), "start": start, "hours": hours, **more}


NIGHT = window("22:00", 8, "sat")


@pytest.mark.parametrize(
    ("old", "new", "within"),
    [
        ([NIGHT], [window("23:00", 4, "sat")], True),
        ([NIGHT], [window("01:00", 5, "sun")], True),
        ([NIGHT], [window("01:00", 6, "sun")], False),
        ([NIGHT], [window("23:00", 4)], False),
        ([NIGHT], [window("23:00", 4, "sat", timeZone="Europe/Berlin")], False),
        ([NIGHT], [window("23:00", 4, "sat", timeZone="UTC")], True),
        ([window("22:00", 8, "sun")], [window("00:00", 6, "mon")], True),
        ([window("00:00", 24)], [window("22:00", 100, "sat")], True),
        ([window("20:00", 2, "sat"), window("22:00", 2, "sat")], [window("20:00", 4, "sat")], True),
        ([NIGHT], [], False),
        (None, [NIGHT], True),
        ([NIGHT], None, False),
    ],
)
def test_windows_within_others(old: Any, new: Any, within: bool) -> None:
    """Minute by minute of the week: each minute of the new ones was one of the old ones."""
    assert tighter(old, new) is within


@pytest.mark.parametrize(
    ("after", "before", "count", "tier"),
    [
        ("1%", 3, 20, PLANNED),
        ("1%", 3, 300, PLANNED),
        ("1%", 3, 301, POWER),
        ("1%", 3, {"min": 0, "max": 301}, POWER),
        ("15%", 3, 20, PLANNED),
        ("16%", 3, 20, POWER),
        (1, "5%", 20, PLANNED),
        (2, "5%", 20, POWER),
        ("0%", 3, 20, POWER),
        ("1%", 3, None, POWER),
    ],
)
def test_a_percentage_is_compared_in_nodes(after: Any, before: Any, count: Any, tier: int) -> None:
    """A breaker of 1 % opens at the first failure of up to 100 nodes, and at the fourth of 301; unknown is power."""
    found = judged({"breakerFailures": after}, {"breakerFailures": before}, count)
    assert found[("IMP906" if tier == PLANNED else "IMP905", "spec.reconciler.breakerFailures")] == tier


@pytest.mark.parametrize(
    ("after", "before", "tier"),
    [
        (600, 0, PLANNED),
        (600, None, PLANNED),
        (900, 600, PLANNED),
        (604_801, 600, OUTAGE),
        (0, 600, POWER),
        (300, 600, POWER),
    ],
)
def test_nodes_that_soak_less_are_power(after: int, before: int | None, tier: int) -> None:
    """Who makes it shorter lets a bad driver reach the next node unseen; more than a week stops every roll-out."""
    found = judged({"soakSeconds": after}, {} if before is None else {"soakSeconds": before}, 20)
    assert found[("IMP906" if tier == PLANNED else "IMP905", "spec.reconciler.soakSeconds")] == tier


@pytest.mark.parametrize(
    ("before", "after", "tier"),
    [(None, 0, PLANNED), (None, 900, PLANNED), (600, 900, PLANNED), (600, None, POWER), (600, 300, POWER)],
)
def test_a_pools_own_soak(before: int | None, after: int | None, tier: int) -> None:
    """Shorter is power; for the first time it is compared where it is rendered, and there a shorter one is told."""
    pool: Values = {"name": "one", "nodeSelector": {"a": "b"}}
    one, two = ({**pool, "upgrade": {} if each is None else {"soakSeconds": each}} for each in (before, after))
    assert min((each for rule, each in pools([one], [two]) if rule in {"IMP905", "IMP906"}), default=PLANNED) == tier


def judged(after: Values, before: Values, count: Any) -> dict[tuple[str, str], int]:
    """What is told where the reconciler's section changes, of a cluster with one pool of COUNT nodes."""
    said = loaded("lab-a100", {}).spec.model_dump(mode="json", exclude_none=True)
    pools = [{**said["nodePools"][0], "count": count}]
    one, two = (
        ClusterPolicySpec.model_validate({**said, "nodePools": pools, "reconciler": {**said["reconciler"], **each}})
        for each in (before, after)
    )
    return {(each.rule, each.where): each.tier for each in impact({"c": ()}, {"c": (one, two)}).effects}


def pools(before: list[Values], after: list[Values]) -> set[tuple[str, int]]:
    """The tiers of what is told where the pools AFTER take the place of those BEFORE."""
    said = loaded("lab-a100", {}).spec.model_dump(mode="json", exclude_none=True)
    one, two = (ClusterPolicySpec.model_validate({**said, "nodePools": each}) for each in (before, after))
    return {(each.rule, each.tier) for each in impact({"c": ()}, {"c": (one, two)}).effects}


GUARDED = {"name": "one", "nodeSelector": {"a": "b"}, **NEW_POOL, "upgrade": {"windows": [NIGHT], "maxParallel": 1}}


def test_a_pool_that_goes_takes_no_guard_along() -> None:
    """Its windows and budgets are nobody's any more: that it goes is an outage, and no power."""
    other = {**NEW_POOL, "name": "other", "nodeSelector": {"a": "c"}}
    found = pools([GUARDED, other], [other])
    assert ("IMP305", OUTAGE) in found
    assert min(tier for _, tier in found) == OUTAGE


def test_nodes_of_a_pool_that_goes_keep_their_guards() -> None:
    """A pool that takes its nodes says as much as it did, or that is power."""
    assert min(tier for _, tier in pools([GUARDED], [{**GUARDED, "name": "two"}])) == OUTAGE
    for looser in ({}, {"windows": [{**NIGHT, "hours": 9}], "maxParallel": 1}):
        assert ("IMP905", POWER) in pools([GUARDED], [{**GUARDED, "name": "two", "upgrade": looser}])


SANDBOX = {"sandboxWorkloads": {"enabled": True, "mode": "kata"}}


@pytest.mark.parametrize(
    ("before", "after", "tier"),
    [("on", "off", POWER), ("on", "devtools", POWER), (None, "off", POWER), ("off", "on", OUTAGE)],
)
def test_confidential_computing(before: str | None, after: str, tier: int) -> None:
    """A mode that lets the host look into GPUs is a guard that gets looser."""
    base = {**SANDBOX, "ccManager": {"enabled": True, **({"defaultMode": before} if before else {})}}
    found, _ = judge(request("lab-a100", {"ccManager": {"defaultMode": after}}, base))
    assert {each.tier for each in found.effects if each.where == "spec.ccManager.defaultMode"} == {tier}


NOTES = thing("v1", "ConfigMap", "coredns-custom", data={"a": "b"})
OWN = {key: value for key, value in NOTES.items() if key != "metadata"} | {"metadata": {"name": "coredns-custom"}}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}}
ELSEWHERE = {"gitops": {"argocd": {"destination": {"name": "lab-b"}}}}


@pytest.mark.parametrize("namespace", ["kube-system", "monitoring", "argocd"])
def test_a_new_cluster_in_a_namespace_of_others(namespace: str) -> None:
    """The same objects in another namespace bind other people's pods: the namespace is told, and each object."""
    there = loaded("lab-a100", extra(QUOTA))
    here = loaded("lab-a100", {**extra(QUOTA), **ELSEWHERE, "cluster": {"namespace": namespace}})
    known = Fleet.of([there.spec], [there.spec, here.spec])
    changes = compare({}, rendered(here))
    found = impact({"c": changes}, {"c": (None, here.spec)}, new={"c"}, fleet=lambda: known)
    red = {(each.rule, each.where) for each in found.effects if each.tier == POWER}
    assert ("IMP905", "spec.cluster.namespace") in red
    assert any(rule == "IMP901" and "ResourceQuota" in where for rule, where in red)


@pytest.mark.parametrize(
    ("namespace", "tier"),
    [("kube-system", POWER), ("monitoring", POWER), ("default", POWER), ("gpu-stack", UNCLASSIFIED)],
)
def test_content_where_others_look(namespace: str, tier: int) -> None:
    """No list of names that programs read is whole: in a namespace that isn't for GPUs each ConfigMap may be read."""
    base = {"cluster": {"namespace": namespace}}
    for body in (OWN, {**dashboard(), "metadata": {"name": "b", "labels": {"grafana_dashboard": "1"}}}):
        found, _ = judge(request("lab-a100", extra(body), base))
        assert found.tier == tier


@pytest.mark.parametrize(("before", "after"), [(["^team$"], ["."]), (["^team$"], []), ([], ["^team$"])])
def test_labels_of_pods_that_become_labels_of_series(before: list[str], after: list[str]) -> None:
    """Which of them is a regular expression: another one is told as what it does to series."""

    def exporter(allowed: list[str]) -> Values:
        return {"dcgmExporter": {"enablePodLabels": True, "podLabelAllowlistRegex": allowed}}

    found, _ = judge(request("lab-a100", exporter(after), exporter(before)))
    (effect,) = [each for each in found.effects if each.rule == "IMP603"]
    assert effect.what.endswith(f"{','.join(before) or 'all'} -> {','.join(after) or 'all'}")
