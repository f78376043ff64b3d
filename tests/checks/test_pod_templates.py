"""Pods whose parts, and workloads whose pods, don't fit together: as an API server of 1.35 answered."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from gpustack.model import Body, Resource

RULES = {rule.id: rule for rule in all_rules()}
PLACE = "spec.template.spec"
Change = Callable[[dict[str, Any]], object]


def workload(kind: str = "Deployment") -> Body:
    """A workload that the API server takes."""
    pod: dict[str, Any] = {
        "initContainers": [{"name": "first", "image": "a"}],
        "containers": [
            {
                "name": "main",
                "image": "a",
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 3},
                "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    template = {"metadata": {"labels": {"app": "a", "more": "b"}}, "spec": pod}
    spec: dict[str, Any] = {"template": template}
    if kind in {"Job", "CronJob"}:
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": "a"}}
    body = {"apiVersion": "a/v1", "kind": kind, "metadata": {"name": "a"}}
    return {**body, "spec": {"jobTemplate": {"spec": spec}} if kind == "CronJob" else spec}


def paths(rule: str, body: Body) -> list[str]:
    """Where RULE has something to say about BODY."""
    return [finding.path for finding in RULES[rule].findings(Resource(body, "operands", "ExtraObjects"))]


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob"])
@pytest.mark.parametrize("rule", ["GPU817", "GPU818"])
def test_what_the_api_server_takes(rule: str, kind: str) -> None:
    """Nothing is said about workloads that fit."""
    assert paths(rule, workload(kind)) == []


def of_pod(change: Change) -> Body:
    """A workload after CHANGE of its pod's spec."""
    body = workload()
    change(body["spec"]["template"]["spec"])
    return body


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod: pod.update(volumes=[]), "containers[0].volumeMounts[0].name"),
        (lambda pod: pod.pop("volumes"), "containers[0].volumeMounts[0].name"),
        (lambda pod: pod["volumes"].append({"name": "data", "emptyDir": {}}), "volumes[1].name"),
        (lambda pod: pod["initContainers"][0].update(name="main"), "containers[0].name"),
        (lambda pod: pod["containers"].append({"name": "main", "image": "b"}), "containers[1].name"),
        (lambda pod: pod["containers"][0].update(livenessProbe={}), "containers[0].livenessProbe"),
        (lambda pod: pod["containers"][0]["readinessProbe"].pop("httpGet"), "containers[0].readinessProbe"),
        (lambda pod: pod["containers"][0]["readinessProbe"].update(grpc={"port": 1}), "containers[0].readinessProbe"),
        (lambda pod: pod["containers"][0]["lifecycle"].update(preStop={}), "containers[0].lifecycle.preStop"),
    ],
)
def test_parts_of_a_pod(change: Change, expected: str) -> None:
    """A mount without a volume, a name twice, a probe or hook that does nothing or two things."""
    assert paths("GPU817", of_pod(change)) == [f"{PLACE}.{expected}"]


def test_volumes_that_a_stateful_set_claims() -> None:
    """They are mounted without standing among the volumes."""
    body = workload("StatefulSet")
    del body["spec"]["template"]["spec"]["volumes"]
    body["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    assert paths("GPU817", body) == []


def test_a_pod_is_looked_at_as_well() -> None:
    """A Pod has no template, and no selector."""
    spec = workload()["spec"]["template"]["spec"]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {**copy.deepcopy(spec), "volumes": []},
    }
    assert paths("GPU817", body) == ["spec.containers[0].volumeMounts[0].name"]
    assert paths("GPU818", {**body, "spec": {**spec, "restartPolicy": "Never"}}) == []


@pytest.mark.parametrize(
    ("kind", "policy", "taken"),
    [
        *((kind, "Always", True) for kind in ("Deployment", "DaemonSet", "StatefulSet")),
        *((kind, None, True) for kind in ("Deployment", "DaemonSet", "StatefulSet")),
        *((kind, "Never", False) for kind in ("Deployment", "DaemonSet", "StatefulSet")),
        *((kind, "OnFailure", True) for kind in ("Job", "CronJob")),
        *((kind, policy, False) for kind in ("Job", "CronJob") for policy in ("Always", None)),
    ],
)
def test_restart_policies(kind: str, policy: str | None, taken: bool) -> None:
    """What runs for ever restarts always, what ends never does so; absent is Always."""
    body = workload(kind)
    top = body["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else body["spec"]
    top["template"]["spec"]["restartPolicy"] = policy
    if policy is None:
        del top["template"]["spec"]["restartPolicy"]
    place = f"spec.jobTemplate.{PLACE}" if kind == "CronJob" else PLACE
    assert paths("GPU818", body) == ([] if taken else [f"{place}.restartPolicy"])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"app": "a", "more": "b"}}, []),
        ({"matchLabels": {"app": "b"}}, ["spec.selector.matchLabels.app"]),
        ({"matchLabels": {"app": "a", "other": "b"}}, ["spec.selector.matchLabels.other"]),
        ({"matchLabels": {}}, ["spec.selector"]),
        ({}, ["spec.selector"]),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, []),
    ],
)
def test_selectors(selector: dict[str, Any], expected: list[str]) -> None:
    """The selector asks for something, and the pods have it."""
    body = workload()
    body["spec"]["selector"] = selector
    assert paths("GPU818", body) == expected
