"""What the Prometheus operator takes and refuses (validateRelabelConfig), and what counts beside gpuCluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from tests.checks.snippets import loaded

ON = {"cluster": {"monitoring": True}}
RULES = {rule.id: rule for rule in all_rules()}


def told(number: str, **sections: Any) -> list[tuple[str, str]]:
    """Places and remedies of what the rule says."""
    policy = loaded(json.dumps({**ON, **sections}))
    return [(one.path, one.remedy) for one in RULES[number].findings(policy.spec)]


def relabeled(*rules: dict[str, Any]) -> dict[str, Any]:
    """The section of an exporter with relabelings."""
    return {"dcgmExporter": {"serviceMonitor": {"enabled": True, "relabelings": list(rules)}}}


@pytest.mark.parametrize(
    "rule",
    [
        {"action": "replace", "sourceLabels": ["a"]},
        {"action": "replace", "targetLabel": "a-b"},
        {"action": "hashmod", "sourceLabels": ["a"], "targetLabel": "b"},
        {"action": "HashMod", "sourceLabels": ["a"], "targetLabel": "$1", "modulus": 2},
        {"action": "drop", "sourceLabels": ["a"], "regex": "("},
        {"action": "drop", "sourceLabels": ["a"], "regex": "(?=x)"},
        {"action": "drop", "sourceLabels": ["a-b"], "regex": "x"},
        {"action": "labeldrop", "regex": "a", "sourceLabels": ["b"]},
        {"action": "labelkeep", "regex": "a", "targetLabel": "b"},
        {"action": "labelkeep", "regex": "a", "separator": ","},
        {"action": "labeldrop", "regex": "a", "replacement": "$2"},
        {"action": "labelmap", "regex": "a(.*)", "replacement": "a-$1"},
        {"action": "lowercase", "sourceLabels": ["a"], "targetLabel": "b", "replacement": "c"},
        {"action": "keepequal", "sourceLabels": ["a"], "targetLabel": "b", "regex": "c"},
        {"action": "uppercase", "sourceLabels": ["a"]},
    ],
)
def test_refused(rule: dict[str, Any]) -> None:
    """Each is refused by the validator, in the exporter's section and in a monitor of the policy's own."""
    assert told("GPU620", **relabeled(rule))
    endpoint = {"port": "metrics", "metricRelabelings": [rule]}
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "x"}}
    found = told("GPU620", extraObjects=[{**body, "spec": {"endpoints": [endpoint]}}])
    assert found[0][0].startswith("spec.extraObjects[0].spec.endpoints[0].metricRelabelings[0]")


@pytest.mark.parametrize(
    "rule",
    [
        {"sourceLabels": ["a"], "targetLabel": "b"},
        {"action": "replace", "sourceLabels": ["a"], "regex": "(.*)", "targetLabel": "x_${1}_$2", "replacement": "$1"},
        {"action": "hashmod", "sourceLabels": ["a"], "targetLabel": "b", "modulus": 4},
        {"action": "keep", "sourceLabels": ["a"], "regex": "x|y"},
        {"action": "labelmap", "regex": "__meta_(.+)"},
        {"action": "labeldrop", "regex": "pod"},
        {"action": "labeldrop", "regex": "pod", "separator": ";", "replacement": "$1"},
        {"action": "LabelKeep", "regex": "pod", "separator": ";"},
        {"action": "DropEqual", "sourceLabels": ["a"], "targetLabel": "b", "separator": ";"},
    ],
)
def test_taken(rule: dict[str, Any]) -> None:
    """Each passes."""
    assert told("GPU620", **relabeled(rule)) == []


def test_remedies_pass() -> None:
    """A modulus, a target, and nothing that has no use."""
    wrong = {"action": "hashmod", "sourceLabels": ["a"]}
    assert len(told("GPU620", **relabeled(wrong))) == 2
    assert told("GPU620", **relabeled({**wrong, "targetLabel": "b", "modulus": 1})) == []


def test_long_names_are_read_in_time() -> None:
    """A text that makes no name is refused at once, however long."""
    assert told("GPU620", **relabeled({"sourceLabels": ["a"], "targetLabel": "$a" * 2000 + "-"}))


def test_times_of_monitors_of_ones_own() -> None:
    """A timeout beyond the interval (validateScrapeIntervalAndTimeout)."""
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "x"}}
    slow = {"podMetricsEndpoints": [{"interval": "15s", "scrapeTimeout": "1m"}]}
    assert [path for path, _ in told("GPU620", extraObjects=[{**body, "spec": slow}])] == [
        "spec.extraObjects[0].spec.podMetricsEndpoints[0].scrapeTimeout"
    ]


DRA = {"drivers": [{"name": "default", "default": True}], "cluster": {"monitoring": True, "kubernetesVersion": "1.35"}}


@pytest.mark.parametrize(
    ("number", "exporter"),
    [
        ("GPU601", {"resources": {"limits": {"memory": "256Mi"}}}),
        ("GPU608", {"env": [{"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": "localhost:5555"}]}),
        ("GPU610", {"serviceMonitor": {"enabled": True, "interval": "5s", "scrapeTimeout": "30s"}}),
        ("GPU520", {"config": {"data": "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature, in C\n"}}),
        ("GPU620", {"serviceMonitor": {"enabled": True, "relabelings": [{"action": "hashmod"}]}}),
    ],
)
def test_exporters_of_a_gpu_cluster(number: str, exporter: dict[str, Any]) -> None:
    """What holds for the exporter beside the device plugin holds for that of a gpuCluster, repeated or inherited."""
    (own, *_) = told(number, **DRA, gpuCluster={"dcgmExporter": exporter})
    assert own[0].startswith("spec.gpuCluster.dcgmExporter.")
    (inherited, *_) = told(number, **DRA, gpuCluster={}, dcgmExporter=exporter)
    assert inherited[0].startswith("spec.dcgmExporter.")
    assert told(number, **DRA, gpuCluster={}) == []


def test_memory_of_the_engine() -> None:
    """The stand-alone engine has DCGM's memory (bug-reports.md B54)."""
    small = {"enabled": True, "resources": {"limits": {"memory": "128Mi"}}}
    ((path, _),) = told("GPU601", dcgm=small)
    assert path == "spec.dcgm.resources.limits.memory"
    assert told("GPU601", dcgm={**small, "enabled": False}) == []


def test_nri_and_cri_o() -> None:
    """CRI-O 1.34 is the first with the NRI that is needed (the operator's documentation); OpenShift 4.20 has 1.33."""
    on = {"cdi": {"enabled": True, "nriPluginEnabled": True}}
    for version, wanted in (("1.33", True), ("1.34", False)):
        cluster = {"kubernetesVersion": version, "containerRuntime": "cri-o"}
        assert bool(told("GPU405", **on, cluster=cluster)) == wanted
        openshift = {"kubernetesVersion": version, "containerRuntime": None, "platform": "openshift"}
        assert bool(told("GPU405", **on, cluster=openshift)) == wanted


def test_invented_metrics() -> None:
    """No exporter of this stack has metrics that begin with nvidia_."""
    group = {"name": "g", "rules": [{"alert": "a", "expr": "nvidia_nvlink_bandwidth_total > 0"}]}
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "x"}}
    assert len(told("GPU606", extraObjects=[{**body, "spec": {"groups": [group]}}])) == 1


@pytest.mark.parametrize(
    ("label", "found"),
    [("exported_pod", True), ("UUID", True), ("__meta_kubernetes_pod_node_name", False), ("namespace", False)],
)
def test_labels_that_targets_do_not_have(label: str, found: bool) -> None:
    """The exporter's labels come with its samples (dcgm.yaml), which metricRelabelings alone see (NVIDIA/gpu-operator
    issue 2938); a policy is sent to honorLabels, and a monitor of its own to the right list."""
    rules = [{"action": "replace", "sourceLabels": [label], "targetLabel": "a"}]
    on: dict[str, Any] = {"cluster": {"monitoring": True}}
    own = told("GPU623", **on, dcgmExporter={"serviceMonitor": {"enabled": True, "relabelings": rules}})
    assert [path for path, _ in own] == ["spec.dcgmExporter.serviceMonitor.relabelings[0]"] * found
    assert all(".honorLabels: true" in remedy for _, remedy in own)
    for lists, count in (({"relabelings": rules}, found), ({"metricRelabelings": rules}, 0)):
        body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "x"}}
        theirs = told("GPU623", **on, extraObjects=[{**body, "spec": {"endpoints": [{"port": "x", **lists}]}}])
        assert [path for path, _ in theirs] == ["spec.extraObjects[0].spec.endpoints[0].relabelings[0]"] * count


def test_metrics_with_our_own_prefix() -> None:
    """What the reconciler serves is listed (docs/reconciler.md); other names that begin as ours are invented."""
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "x"}}
    for name, count in (("gpustack_driver_rollouts", 1), ("gpustack_reconciler_nodes", 0)):
        group = {"name": "g", "rules": [{"alert": "a", "expr": f"{name} > 0"}]}
        assert len(told("GPU606", extraObjects=[{**body, "spec": {"groups": [group]}}])) == count


PASSTHROUGH = [{"name": "a", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-A10", "workload": "vm-passthrough"}]
VGPUS = [{**PASSTHROUGH[0], "workload": "vm-vgpu"}]


@pytest.mark.parametrize(
    ("sections", "parts"),
    [
        ({"nodePools": PASSTHROUGH, "vfioManager": {"enabled": False}}, ["vfioManager"]),
        ({"nodePools": VGPUS, "vgpuDeviceManager": {"enabled": False}}, ["vgpuManager", "vgpuDeviceManager"]),
        (
            {"nodePools": PASSTHROUGH, "kataSandboxDevicePlugin": {"enabled": False}, "mode": "kata"},
            ["kataSandboxDevicePlugin"],
        ),
        ({"nodePools": PASSTHROUGH}, []),
    ],
)
def test_parts_that_are_off(sections: dict[str, Any], parts: list[str]) -> None:
    """What a pool's workload waits for (operator.md 7.12, 7.13), and enabling it passes."""
    sections = dict(sections)
    on: dict[str, Any] = {"sandboxWorkloads": {"enabled": True, "mode": sections.pop("mode", "kubevirt")}}
    assert [path for path, _ in told("GPU211", **on, **sections)] == [f"spec.{part}.enabled" for part in parts]
    assert told("GPU211", **on, **sections, **{part: {"enabled": True} for part in parts if part not in sections}) == [
        (f"spec.{part}.enabled", f"set spec.{part}.enabled: true") for part in parts if part in sections
    ]
