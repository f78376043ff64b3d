"""What every object of a render gets, whoever made it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import cdk8s
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.cluster.resolve import resolve
from gpustack.components.component import Manifest
from gpustack.components.monitoring import monitoring_inputs
from gpustack.components.monitoring.dcgm_exporter import DcgmExporter
from gpustack.components.parts.hygiene import clean
from gpustack.components.registry import REGISTRY
from gpustack.model import Body
from gpustack.policy.loading.load import load, policy_files
from gpustack.text.quantities import canonical, size
from tests.components.common import chart, render, spec
from tests.project import ROOT

POLICIES = policy_files(ROOT / "policies", "policies")
FLUX, DISABLED = "kustomize.toolkit.fluxcd.io/substitute", "disabled"

QUANTITIES = st.builds("{}{}".format, st.integers(0, 5000), st.sampled_from(["", "m", "k", "Mi", "Gi", "M", "e3"]))


def config_map(text: str, **annotations: str) -> Body:
    """A ConfigMap with TEXT in it."""
    meta: Body = {"name": "a", **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": text}}


def pod(kind: str = "Pod", **container: Any) -> Body:
    """A workload of KIND with one container."""
    spec: Any = {"containers": [{"name": "main", "image": "a", **container}]}
    path = [] if kind == "Pod" else ["template"]
    path = ["jobTemplate", "spec", *path] if kind == "CronJob" else path
    for step in reversed(path):
        spec = {step: {"spec": spec} if step == "template" else spec}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def test_flux_leaves_dollars_alone() -> None:
    """Flux replaces ${...} in what it applies; objects that have one say that they are to be left alone (B21)."""
    marked = clean(config_map("echo ${HOME}"))
    assert marked["metadata"]["annotations"] == {FLUX: DISABLED}
    assert clean(pod(args=["${A}"]))["metadata"]["annotations"] == {FLUX: DISABLED}
    for text in ("echo $HOME", "$1", "$(A)", "{A}"):
        assert clean(config_map(text)) == config_map(text)


def test_annotations_of_the_policy_win() -> None:
    """Who wants Flux to replace variables in an object of extraObjects says so there."""
    mine = config_map("${A}", **{FLUX: "enabled", "note": "1"})
    assert clean(mine) == mine
    assert clean(config_map("${A}", note="1"))["metadata"]["annotations"] == {FLUX: DISABLED, "note": "1"}


def test_large_objects_are_applied_by_the_server() -> None:
    """A client-side apply writes the object into an annotation, for which 256 KiB is the limit (B17)."""
    large = clean(config_map("x" * 300_000))
    assert large["metadata"]["annotations"] == {"argocd.argoproj.io/sync-options": "ServerSideApply=true"}
    assert clean(config_map("ä" * 45_000))["metadata"] == large["metadata"]  # Python writes six bytes for each
    assert clean(config_map("x" * 200_000)) == config_map("x" * 200_000)


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob", "ReplicaSet"])
def test_quantities_are_as_the_api_server_writes_them(kind: str) -> None:
    """1000m comes back as 1 and would show as changed for ever (B18); wherever the pod stands."""
    written = {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"memory": "1.5Gi", "nvidia.com/gpu": 1}}
    expected = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1536Mi", "nvidia.com/gpu": "1"}}
    assert clean(pod(kind, resources=written)) == pod(kind, resources=expected)


def test_quantities_elsewhere() -> None:
    """Quotas, claims and volumes in memory have quantities as well; a custom resource's are its controller's."""
    quota: Body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "a"},
        "spec": {"hard": {"pods": 10000}},
    }
    assert clean(quota)["spec"]["hard"] == {"pods": "10k"}
    volume = pod(resources={})
    volume["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"sizeLimit": "2048Mi"}}, {"name": "b", "emptyDir": {}}]
    assert clean(volume)["spec"]["volumes"] == [
        {"name": "shm", "emptyDir": {"sizeLimit": "2Gi"}},
        {"name": "b", "emptyDir": {}},
    ]
    custom: Body = {
        "apiVersion": "x/v1",
        "kind": "NIMService",
        "metadata": {"name": "a"},
        "spec": {"resources": {"limits": {"cpu": "1000m"}}},
    }
    assert clean(custom) == custom


@given(st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES), st.sampled_from(["Pod", "DaemonSet"]))
def test_as_much_as_before(amounts: dict[str, str], kind: str) -> None:
    """Only how a quantity is written changes; once clean, an object stays as it is, and the body given is untouched."""
    body = pod(kind, resources={"limits": amounts})
    before = copy.deepcopy(body)
    once = clean(body)
    assert body == before
    assert clean(once) == once
    found = (once["spec"] if kind == "Pod" else once["spec"]["template"]["spec"])["containers"][0]["resources"][
        "limits"
    ]
    assert {name: size(amount) for name, amount in found.items()} == {
        name: size(amount) for name, amount in amounts.items()
    }


@pytest.mark.parametrize(
    "value", [None, [], {}, "x", 1, {"limits": 3}, {"limits": {"cpu": "much", "a": True, "b": []}}]
)
def test_what_is_no_pod_is_left_to_validation(value: Any) -> None:
    """Objects of extraObjects may be anything: what can't be cleaned stays as it is."""
    for key in ("resources", "hard"):
        body: Body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a"},
            "spec": {"containers": [{key: value}, value]},
        }
        assert clean(body) == body
    odd: tuple[Any, ...] = (None, [], "resources", {"template": []}, {"template": {"spec": "resources"}})
    for content in odd:
        body = {"apiVersion": "v1", "kind": "DaemonSet", "metadata": {"name": "resources"}, "spec": content}
        assert clean(body) == body


def test_every_manifest_is_clean() -> None:
    """Also in somebody's own cdk8s app: what Node is handed is the clean body."""
    manifest = Manifest(cdk8s.Chart(chart(), "own"), config_map("${A}"), "base")
    assert manifest.to_json()["metadata"]["annotations"] == {FLUX: DISABLED}
    assert manifest.resource("x").body is manifest.to_json()


def bodies(policy: Path) -> list[Body]:
    """All objects of a policy of this repository."""
    loaded = load(policy, root=policy.parent)
    found = []
    for entry in REGISTRY:
        inputs = entry.inputs(loaded.spec)
        if inputs is not None:
            found += list(render(entry.type(), inputs).values())
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.stem)
def test_no_component_has_hooks(policy: Path) -> None:
    """No hook, and no Job that would have to be one (B19); every quantity of a pod is canonical."""
    for body in bodies(policy):
        assert body["kind"] != "Job"
        annotations = body["metadata"].get("annotations", {})
        assert not [key for key in annotations if "hook" in key]
        template = body.get("spec", {}).get("template", {}) if isinstance(body.get("spec"), dict) else {}
        for container in template.get("spec", {}).get("containers", []) if isinstance(template, dict) else []:
            for part in ("requests", "limits"):
                amounts = container.get("resources", {}).get(part, {})
                assert all(canonical(amount) == amount for amount in amounts.values())


def test_defaults_of_the_crd_are_written_out() -> None:
    """The CRD of ServiceMonitors gives a relabelling without an action the action replace (B16)."""
    relabelings: list[dict[str, Any]] = [{"sourceLabels": ["a"], "targetLabel": "b"}, {"action": "drop", "regex": "x"}]
    monitor = {"enabled": True, "relabelings": relabelings}
    inputs = monitoring_inputs.dcgm_exporter(
        resolve(spec(cluster={"monitoring": True}, dcgmExporter={"serviceMonitor": monitor}))
    )
    assert inputs is not None
    (endpoint,) = render(DcgmExporter, inputs)["ServiceMonitor/nvidia-dcgm-exporter"]["spec"]["endpoints"]
    assert endpoint["relabelings"] == [{"action": "replace", **relabelings[0]}, relabelings[1]]


@pytest.mark.parametrize(
    ("written", "kept"),
    [(0.5, "500m"), ("1.5Gi", "1536Mi"), ("1000m", "1"), ("08", "8"), (2, "2"), (1e-05, "10e-6")],
)
def test_every_amount_of_an_object(written: Any, kept: str) -> None:
    """Limits, claims of a StatefulSet, overheads, volumes and targets are written as the API server gives them back
    (apimachinery's Quantity: CanonicalizeBytes), floats included."""
    amounts = {"cpu": written}
    pod: dict[str, Any] = {
        "containers": [{"name": "c", "image": "a", "resources": {"limits": amounts}}],
        "overhead": amounts,
        "resources": {"requests": amounts},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": written}}],
    }
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": written}}}}
    target = {"type": "Pods", "pods": {"target": {"type": "AverageValue", "averageValue": written}}}
    bodies: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Pod", "spec": pod},
        {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [{"max": amounts, "default": amounts}]}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": amounts}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"capacity": {"storage": written}}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"volumeClaimTemplates": [claim]}},
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "overhead": {"podFixed": amounts}},
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"metrics": [target]}},
    ]
    for body in bodies:
        text = json.dumps(clean({"metadata": {"name": "x"}, **body}))
        assert f": {json.dumps(kept)}" in text
        assert kept == written or f": {json.dumps(written)}" not in text
