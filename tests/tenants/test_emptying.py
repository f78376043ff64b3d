"""What tenants write that keeps a node from being emptied (reconciler.md I8, L22; docs/reconciler.md, Windows)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpustack.checks.rule import rules_over
from gpustack.cluster.offer import Offer
from gpustack.cluster.resolve import resolve
from gpustack.compiler.stack import workload_findings
from gpustack.model import Finding
from gpustack.tenants.tenants import Others, TenantObject, concerned, findings, pods_in, tenants_of
from tests.components.common import spec
from tests.project import Project, cache, policy, project
from tests.tenants.test_manifests import of
from tests.tenants.test_workloads import TRAINING, pod

__all__ = ["cache", "project"]

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


MODEL = {"app": "model"}


def budget(**fields: Any) -> dict[str, Any]:
    """A budget for the pods of `serving`; FIELDS of its spec."""
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "ml"}}
    return {**body, "spec": {"selector": {"matchLabels": MODEL}, **fields}}


def serving(number: int | None = 2, resource: str = "nvidia.com/gpu", **changes: Any) -> dict[str, Any]:
    """A Deployment of so many pods that ask for a RESOURCE each; CHANGES of its metadata."""
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "ml", **changes}}
    made = {"template": {"metadata": {"labels": {**MODEL, "tier": "gold"}}, "spec": pod(resource)["spec"]}}
    return {**body, "spec": made if number is None else {**made, "replicas": number}}


def of_budgets(bodies: list[dict[str, Any]], given: Offer) -> list[Finding]:
    """What is said of the budgets among BODIES, which are looked at together."""
    said = [one for body in bodies for one in findings(body, pods_in(body), given, Others(bodies))]
    return [one for one in said if one.rule == "GPU724"]


SCALED = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "ml"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "m"}, "maxReplicas": 4},
}


@pytest.mark.parametrize(
    ("fields", "beside", "hit"),
    [
        ({"minAvailable": 1}, [serving(1)], True),
        ({"minAvailable": 2}, [serving(2)], True),
        ({"minAvailable": 3}, [serving(2)], True),
        ({"minAvailable": 1}, [serving(None)], True),
        ({"minAvailable": "51%"}, [serving(2)], True),
        ({"minAvailable": "50%"}, [serving(2)], False),
        ({"minAvailable": 1}, [serving(2)], False),
        ({"minAvailable": 1}, [serving(1), serving(1, name="n")], False),
        ({"minAvailable": 1}, [serving(1), SCALED], False),
        ({"minAvailable": 1}, [serving(0)], False),
        ({"minAvailable": 1}, [serving(1, namespace="other")], False),
        ({"minAvailable": 1}, [serving(1, "")], False),
        ({"maxUnavailable": 0}, [serving(1, "")], False),
        ({"maxUnavailable": 0}, [serving(1, ""), serving(1, name="n")], True),
        ({"maxUnavailable": 0}, [serving(1, "", namespace="other")], True),
        ({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "else"}}}, [serving(1, "")], True),
        ({"minAvailable": 1, "selector": {}}, [serving(1)], True),
    ],
)  # fmt: skip
def test_budgets_beside_their_workloads(fields: dict[str, Any], beside: list[dict[str, Any]], hit: bool) -> None:
    """How many pods there are, and whether any uses a GPU, is told by the workloads of the same files; a percentage is
    rounded up, as the disruption controller does. Of workloads elsewhere nothing is known."""
    assert bool(of_budgets([budget(**fields), *beside], offer())) == hit


@pytest.mark.parametrize(
    ("expression", "hit"),
    [
        ({"operator": "In", "values": ["gold"]}, True),
        ({"operator": "In", "values": ["iron"]}, False),
        ({"operator": "NotIn", "values": ["iron"]}, True),
        ({"operator": "NotIn", "values": ["gold"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
        ({"operator": "In", "values": None}, False),
    ],
)
def test_expressions_of_budgets(expression: dict[str, Any], hit: bool) -> None:
    """A selector's expressions all hold, or the pods are others'."""
    selector = {"matchLabels": MODEL, "matchExpressions": [{"key": "tier", **expression}]}
    assert bool(of_budgets([budget(minAvailable=1, selector=selector), serving(1)], offer())) == hit


@pytest.mark.parametrize("beside", [[], [serving(2)]])
@pytest.mark.parametrize(
    ("reconciler", "hit"),
    [
        (RUNS, True),
        (None, False),
        ({**RUNS, "ignoreBudgetsAfterSeconds": 3600}, False),
        ({**RUNS, "podRules": [{"labels": MODEL, "then": "delete"}]}, False),
        ({**RUNS, "podRules": [{"labels": MODEL, "then": "leave"}]}, False),
        ({**RUNS, "podRules": [{"labels": MODEL, "namespace": "ml", "then": "wait"}]}, False),
        ({**RUNS, "podRules": [{"labels": MODEL, "then": "evict"}, {"labels": MODEL, "then": "wait"}]}, True),
        ({**RUNS, "podRules": [{"labels": MODEL, "namespace": "other", "then": "wait"}]}, True),
        ({**RUNS, "podRules": [{"labels": {"app": "else"}, "then": "wait"}]}, True),
    ],
)  # fmt: skip
def test_budgets_that_the_policy_spares(
    reconciler: dict[str, Any] | None, hit: bool, beside: list[dict[str, Any]]
) -> None:
    """The first rule that is about its pods says what becomes of them; without a program nobody is evicted."""
    assert bool(of_budgets([budget(maxUnavailable=0), *beside], offer(reconciler=reconciler))) == hit


def test_a_budget_among_thousands_finds_its_workloads_at_once() -> None:
    """Only those with its first label are looked at. A label that is a number means all."""
    bodies = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"job-{number}", "namespace": "work"},
            "spec": {"template": {"metadata": {"labels": {"app": f"job-{number}"}}, "spec": {"containers": []}}},
        }
        for number in range(30)
    ]
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "work"}}
    given = TenantObject(budget, offer(), Others(bodies))
    assert [each.body for each in given.beside({"app": "job-7", "tier": "x"})] == [bodies[7]]
    assert given.beside({"app": "job-30"}) == []
    assert len(given.beside({})) == len(given.beside({"app": 7})) == 30


def test_the_objects_of_a_policy_are_looked_at_together() -> None:
    """A budget among extraObjects knows of the Deployment there."""
    both = [serving(2), budget(minAvailable=2)]
    (found,) = [
        one
        for one in workload_findings(spec(nodePools=[TRAINING], reconciler=RUNS, extraObjects=both))
        if one.rule == "GPU724"
    ]
    assert (found.path, found.what) == (
        "spec.extraObjects[1].spec.minAvailable",
        "PodDisruptionBudget b never lets a pod go: minAvailable is 2, and there are 2",
    )


def test_the_files_of_a_folder_are_looked_at_together(project: Project) -> None:
    """The Deployment may stand in another file than its budget."""
    project.write("policies/one.yaml", policy("one", nodePools=[TRAINING], reconciler=RUNS))
    project.write("team/a/budget.yaml", json.dumps(budget(minAvailable=2)))
    project.write("team/b/serving.yaml", json.dumps(serving(2)))
    told = project.run("lint", "--workloads", "team", "--cluster", "one").out
    assert "team/a/budget.yaml" in told
    assert "GPU724" in told


@pytest.mark.parametrize(
    ("seconds", "windows", "hit"), [(3601, [1], True), (3600, [1], False), (7200, [1, 3], False), (7200, [], False)]
)
def test_pods_that_end_later_than_every_window(seconds: int, windows: list[int], hit: bool) -> None:
    """The longest window counts; without windows, a GPU or a reconciler nobody minds."""
    body = pod(terminationGracePeriodSeconds=seconds)
    assert [finding.rule for finding in told(body, offer(windows))] == (["GPU725"] if hit else [])
    assert not told(pod("", terminationGracePeriodSeconds=seconds), offer(windows))
    assert not told(body, offer(windows, None))


@pytest.mark.parametrize(("then", "long"), [("leave", False), ("delete", True), ("wait", True), ("evict", True)])
def test_rules_for_pods_that_end_late_or_come_back(then: str, long: bool) -> None:
    """Pods that are left where they are keep nobody from his work. One that is deleted takes its time all the same, and
    a DaemonSet makes it anew."""
    rules = {**RUNS, "podRules": [{"labels": MODEL, "then": then}]}
    late = {**pod(terminationGracePeriodSeconds=7200), "metadata": {"name": "p", "labels": MODEL}}
    assert bool(told(late, offer([1], rules))) == long
    assert bool(told({**serving(), "kind": "DaemonSet"}, offer(reconciler=rules))) == long


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
    """Selector and namespace both, or its nodes are never worked on; the remedy names what is missing and no more."""
    template = {"spec": {**pod()["spec"], "nodeSelector": selector}}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": namespace}}
    body |= {"spec": {"template": template}}
    found = told(body, offer(reconciler={**RUNS, "clientNamespaces": clients}))
    assert [finding.rule for finding in found] == (["GPU726"] if hit else [])
    for finding in found:
        assert (f"name its namespace {namespace} in" in finding.remedy) == (namespace not in clients)
        assert ("give it the nodeSelector" in finding.remedy) == (not selector)
    assert not told(body, offer(reconciler=None))
