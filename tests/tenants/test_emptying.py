"""What tenants write that keeps a node from being emptied (reconciler.md I8, L22; docs/reconciler.md, Windows)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.rule import rules_over
from gpustack.cluster.offer import Offer
from gpustack.cluster.resolve import resolve
from gpustack.model import Finding
from gpustack.tenants.tenants import concerned, tenants_of
from tests.components.common import spec
from tests.tenants.test_manifests import of
from tests.tenants.test_workloads import TRAINING, pod

RUNS = {"image": "registry.example.com/r:1"}
RULES = {"GPU724", "GPU725", "GPU726"}


def offer(windows: list[int] | None = None, reconciler: dict[str, Any] | None = RUNS) -> Offer:
    """A cluster with one pool, whose windows last so many hours."""
    upgrade = {"windows": [{"start": "22:00", "hours": hours} for hours in windows or ()]}
    sections: dict[str, Any] = {"reconciler": reconciler} if reconciler else {}
    return resolve(spec(nodePools=[{**TRAINING, "upgrade": upgrade}], **sections)).offer


def told(body: dict[str, Any], given: Offer) -> list[Finding]:
    """What the rules of this kind say of a workload."""
    path = ("spec",) if body["kind"] == "Pod" else ("spec", "template", "spec")
    found = body["spec"] if body["kind"] == "Pod" else body["spec"]["template"]["spec"]
    tenants = list(tenants_of(body, [(path, found, True)], given))
    said = [finding for tenant in tenants for rule in rules_over("workload") for finding in rule.findings(tenant)]
    return [finding for finding in said if finding.rule in RULES]


@pytest.mark.parametrize(
    ("said", "hit"),
    [
        ({"maxUnavailable": 0}, "spec.maxUnavailable"),
        ({"maxUnavailable": "0%"}, "spec.maxUnavailable"),
        ({"minAvailable": "100%"}, "spec.minAvailable"),
        ({"maxUnavailable": 1}, ""),
        ({"minAvailable": 1}, ""),
        ({"minAvailable": "50%"}, ""),
    ],
)
def test_budgets_that_let_nobody_go(said: dict[str, Any], hit: str) -> None:
    """Whatever their pods do: of `minAvailable: 1` it depends on how many there are."""
    found = of(offer(), "PodDisruptionBudget", "policy/v1", {**said, "selector": {"matchLabels": {"app": "x"}}})
    assert [(finding.rule, finding.path) for finding in found] == ([("GPU724", hit)] if hit else [])
    assert concerned({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"})


@pytest.mark.parametrize(
    ("seconds", "windows", "hit"), [(3601, [1], True), (3600, [1], False), (7200, [1, 3], False), (7200, [], False)]
)
def test_pods_that_end_later_than_every_window(seconds: int, windows: list[int], hit: bool) -> None:
    """The longest window counts; without windows, a GPU or a reconciler nobody minds."""
    body = pod(terminationGracePeriodSeconds=seconds)
    assert [finding.rule for finding in told(body, offer(windows))] == (["GPU725"] if hit else [])
    assert not told(pod("", terminationGracePeriodSeconds=seconds), offer(windows))
    assert not told(body, offer(windows, None))


@pytest.mark.parametrize(
    ("namespace", "selector", "clients", "hit"),
    [
        ("monitoring", {"nvidia.com/gpu.deploy.client": "true"}, ["monitoring"], False),
        ("monitoring", {}, ["monitoring"], True),
        ("other", {"nvidia.com/gpu.deploy.client": "true"}, ["monitoring"], True),
        ("other", {}, [], True),
    ],
)
def test_daemons_that_use_gpus(namespace: str, selector: dict[str, str], clients: list[str], hit: bool) -> None:
    """Selector and namespace both, or its nodes are never worked on; the remedy names what it takes."""
    template = {"spec": {**pod()["spec"], "nodeSelector": selector}}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": namespace}}
    body |= {"spec": {"template": template}}
    found = told(body, offer(reconciler={**RUNS, "clientNamespaces": clients}))
    assert [finding.rule for finding in found] == (["GPU726"] if hit else [])
    assert not hit or (namespace in found[0].remedy and "clientNamespaces" in found[0].remedy)
    assert not told(body, offer(reconciler=None))
