"""Values of extraObjects that are taken for something else: numbers in quotes, nulls under keys of the author's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.checks.objects.words import number_in_quotes
from gpustack.checks.rule import rules_over
from gpustack.checks.subjects import Written
from gpustack.model import Resource
from gpustack.policy.loading.load import load
from tests.checks.snippets import loaded, rule_of

POLICY = """\
apiVersion: gpustack.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: a}
spec:
  extends: [base]
  release: v26.7.0
  cluster: {kubernetesVersion: "1.34"}
  nodePools: [{name: a, os: ubuntu22.04}]
  extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: , annotations: {x: }}, data: {a: , b: "", c: }}
"""
LAYER = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyLayer
spec:
  extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {c: kept}}]
"""


def told(api: str, kind: str, content: dict[str, Any]) -> list[tuple[str, str]]:
    """Places and remedies of what is said about an object."""
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": content}
    found = rule_of(number_in_quotes).findings(Resource(body, "operands", "ExtraWorkloads"))
    return [(each.path, each.remedy) for each in found]


@pytest.mark.parametrize("value", ["1", "", "some", "1.5%", "-1", -1, "101%"])
def test_no_numbers_of_pods(value: Any) -> None:
    """The API server takes a number from 0 on or a percentage of digits (IsValidPercent), up to 100%."""
    assert [path for path, _ in told("policy/v1", "PodDisruptionBudget", {"minAvailable": value})] == [
        "spec.minAvailable"
    ]
    rolling = {"rollingUpdate": {"maxUnavailable": value}}
    assert told("apps/v1", "Deployment", {"strategy": rolling})
    assert told("apps/v1", "DaemonSet", {"updateStrategy": rolling})
    assert told("apps/v1", "StatefulSet", {"updateStrategy": rolling})


@pytest.mark.parametrize("value", [0, 1, 100, "0%", "100%", "25%"])
def test_numbers_of_pods(value: Any) -> None:
    """Numbers and percentages pass; a surge may be more than all."""
    assert told("policy/v1", "PodDisruptionBudget", {"maxUnavailable": value}) == []
    assert told("apps/v1", "Deployment", {"strategy": {"rollingUpdate": {"maxSurge": "150%"}}}) == []


def test_remedies_pass() -> None:
    """What the remedy says is taken."""
    ((_, remedy),) = told("policy/v1", "PodDisruptionBudget", {"minAvailable": "1"})
    assert remedy == "write 1, without quotes"
    assert told("policy/v1", "PodDisruptionBudget", {"minAvailable": 1}) == []


def test_ports_in_quotes() -> None:
    """A text in the place of a port is a name, and has a letter (IsValidPortName). A label of that name is no port."""
    assert told("v1", "Service", {"selector": {}, "template": {"labels": {"port": "9400"}}}) == []
    assert told("v1", "Service", {"ports": [{"port": 80, "targetPort": "9400"}]}) == [
        ("spec.ports[0].targetPort", "write 9400, without quotes")
    ]
    assert told("v1", "Service", {"ports": [{"port": 80, "targetPort": "metrics"}]}) == []
    inner = {"ingress": [{"ports": [{"port": "9400"}]}]}
    assert told("networking.k8s.io/v1", "NetworkPolicy", inner) == [
        ("spec.ingress[0].ports[0].port", "write 9400, without quotes")
    ]
    assert told("monitoring.coreos.com/v1", "ServiceMonitor", {"endpoints": [{"port": "9400"}]}) == []


def test_nulls_of_maps_are_told(tmp_path: Path) -> None:
    """Keys of the author's with nothing behind them are told; not an empty text, a map that is null as a whole, or a
    key that has a layer's value."""
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "base.yaml").write_text(LAYER, encoding="utf-8")
    path = tmp_path / "a.yaml"
    path.write_text(POLICY, encoding="utf-8")
    policy = load(path, root=tmp_path)
    written = Written(policy.spec, policy.merged)
    found = [one for rule in rules_over("origins") for one in rule.findings(written) if one.rule == "GPU207"]
    assert [one.path for one in found] == ["spec.extraObjects[0].metadata.annotations.x", "spec.extraObjects[0].data.a"]
    assert all("line 10" in one.what for one in found)


def test_nulls_of_unknown_keys() -> None:
    """A key that Kubernetes' schema doesn't have is misspelt whatever it holds; a field without a value is absent."""
    pod = "apiVersion: v1, kind: Pod, metadata: {name: a}, spec"
    text = f"extraObjects: [{{{pod}: {{containers: [{{name: a, image: 'r.example/a:1', %s}}], %s}}}}]"
    for inner, outer, found in (
        ("imag: ", "contaners: ", {"spec.contaners": "containers", "spec.containers[0].imag": "image"}),
        ("resources: ", "nodeSelector: ", {}),
    ):
        policy = loaded(text % (inner, outer))
        hits = [one for rule in rules_over("origins") for one in rule.findings(Written(policy.spec, policy.merged))]
        told = {one.path.removeprefix("spec.extraObjects[0]."): one.remedy for one in hits if one.rule == "GPU207"}
        assert told == {path: f"did you mean {name}?" for path, name in found.items()}


def test_runtime_classes_of_the_platform() -> None:
    """k3s ships the RuntimeClass nvidia (its manifest runtimes.yaml); one under references is left to it."""
    from gpustack.cluster.resolve import resolve
    from gpustack.components.toolkit.runtime_classes import RuntimeClasses
    from gpustack.components.toolkit.toolkit_inputs import runtime_classes as from_cluster
    from tests.components.common import render, spec

    theirs = spec(references=[{"kind": "RuntimeClass", "name": "nvidia"}])
    inputs = from_cluster(resolve(theirs))
    assert inputs is not None
    assert set(render(RuntimeClasses, inputs)) == {"RuntimeClass/nvidia-cdi", "RuntimeClass/nvidia-legacy"}
