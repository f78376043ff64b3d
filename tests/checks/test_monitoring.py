"""Rules about the exporter, how Prometheus finds it, and alerts over its metrics."""

from __future__ import annotations

import pytest
import yaml

from gpustack.text.quantities import milliseconds
from tests.checks.kinds.monitoring import alert, monitor
from tests.checks.spec_rules import paths, said

EXPR = "spec.extraObjects[0].spec.groups[0].rules[0].expr"


@pytest.mark.parametrize(
    ("expression", "rule", "remedy"),
    [
        ("DCGM_FI_DEV_MEM_USED > 1", "GPU604", "write DCGM_FI_DEV_FB_USED"),
        ("DCGM_FI_DEV_NVLINK_TEMPERATURE > 1", "GPU604", "DCGM has nothing like it"),
        ("DCGM_FI_DEV_GPU_TMP > 1", "GPU604", "write DCGM_FI_DEV_GPU_TEMP"),
        # the field that the exporter's image serves comes before those like it that it doesn't (dcgm.yaml, default)
        ("DCGM_FI_DEV_GPU_UTILIZATION > 1", "GPU604", "write DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_VGPU_UTILIZATIONS"),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0", "GPU605", "add the row `DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, ...`"),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS > 0", "GPU605", "write DCGM_FI_DEV_GPU_TEMP"),
        ("DCGM_FI_DRIVER_VERSION == 1", "GPU605", "give it another type in the list"),
        ("nvidia_gpu_temperature_celsius > 85", "GPU606", "write DCGM_FI_DEV_GPU_TEMP, and mind the unit"),
        ("nvidia_gpu_minor_number > 85", "GPU606", "look for the field in DCGM"),
        ("nvml_temperature > 85", "GPU606", "look for the field in DCGM"),
        ("nv_gpu_utilization > 0.9", "GPU606", "look for the field in DCGM"),
        ("gpu_operator_reconciliation_status == 0", "GPU606", "look for the field in DCGM"),
        ("gpu_operator_node_driver_ready == 0", "GPU606", "set spec.nodeStatusExporter.enabled: true"),
        ("gpustack_reconciler_failures_total > 0", "GPU606", "look for the field in DCGM"),
        ("increase(DCGM_FI_DEV_XID_ERRORS[5m]) > 0", "GPU609", "compare the value itself, or let the exporter serve"),
        ("rate(DCGM_FI_PROF_PCIE_TX_BYTES[5m]) > 0", "GPU609", "compare the value itself"),
    ],
)
def test_alerts_that_never_fire(expression: str, rule: str, remedy: str) -> None:
    """Each kind of wrong name has its rule, at the expression, with what to write (dcgm.yaml)."""
    (found,) = said(rule, alert(expression))
    assert found.path == EXPR
    assert found.remedy.startswith(remedy)
    others = {"GPU604", "GPU605", "GPU606", "GPU609"} - {rule}
    assert [other for other in others if said(other, alert(expression))] == []


@pytest.mark.parametrize(
    "expression",
    [
        "DCGM_FI_DEV_GPU_TEMP > 85",
        "avg by (DCGM_FI_DRIVER_VERSION) (DCGM_FI_DEV_GPU_UTIL) > 0",
        "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.9",
        "rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[5m]) > 1",
        "changes(DCGM_FI_DEV_XID_ERRORS[5m]) > 0",
        'up{job="nvidia-dcgm-exporter"} == 0',
        'gpustack_reconciler_nodes{state="quarantined"} > 0',
        "rate(gpustack_reconciler_pass_seconds_count[5m]) == 0",
    ],
)
def test_alerts_that_work(expression: str) -> None:
    """What the exporter serves by default is not complained about."""
    for rule in ("GPU604", "GPU605", "GPU606", "GPU609"):
        assert said(rule, alert(expression)) == ()


def test_metrics_of_the_node_status_exporter() -> None:
    """Where it runs, it serves gpu_operator_node_* (operator.md 14)."""
    assert said("GPU606", alert("gpu_operator_node_driver_ready == 0") + "nodeStatusExporter: {enabled: true}") == ()


def test_recorded_metrics_are_served_by_prometheus() -> None:
    """A name that a rule of the policy records is there, whatever it looks like."""
    rules = "[{record: nvidia_gpu_busy, expr: DCGM_FI_DEV_GPU_UTIL}, {alert: A, expr: nvidia_gpu_busy > 90}]"
    meta = "apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: a}"
    assert said("GPU606", f"extraObjects: [{{{meta}, spec: {{groups: [{{name: a, rules: {rules}}}]}}}}]") == ()


@pytest.mark.parametrize(
    "unknown",
    [
        "dcgmExporter: {config: {name: elsewhere}}\n",
        "dcgmExporter: {enabled: false}\n",
        "dcgmExporter: {env: [{name: DCGM_EXPORTER_COLLECTORS, value: /etc/mine.csv}]}\n",
    ],
)
def test_what_is_served_may_not_be_known(unknown: str) -> None:
    """Where the list isn't in the policy, nobody knows what it has."""
    assert said("GPU605", alert("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0") + unknown) == ()


@pytest.mark.parametrize(
    ("options", "expression", "right"),
    [
        (", honorLabels: true", "sum by (exported_pod) (DCGM_FI_DEV_GPU_UTIL) > 0", "write pod"),
        (", honorLabels: true", "sum by (pod) (DCGM_FI_DEV_GPU_UTIL) > 0", ""),
        ("", "sum by (pod) (DCGM_FI_DEV_GPU_UTIL) > 0", "write exported_pod"),
        ("", "sum by (exported_pod) (DCGM_FI_DEV_GPU_UTIL) > 0", ""),
        ("", 'absent(DCGM_FI_DEV_GPU_UTIL{namespace="gpu-operator"})', ""),
        ("", 'absent(DCGM_FI_DEV_GPU_UTIL{container="nvidia-dcgm-exporter"})', ""),
        ("", "sum by (pod) (container_memory_rss) > 0", ""),
    ],
)
def test_labels_of_the_pod_with_the_gpu(options: str, expression: str, right: str) -> None:
    """They are exported_* unless honorLabels is true; selectors of the exporter itself are meant so (B55)."""
    found = said("GPU607", monitor(options) + alert(expression))
    assert [finding.remedy for finding in found] == ([right] if right else [])


@pytest.mark.parametrize(
    ("more", "host", "expected"),
    [
        ("", "nvidia-dcgm:5555", True),
        ("dcgm: {enabled: true}\n", "nvidia-dcgm.gpu-operator.svc:5555", False),
        ("", "[::1]:5555", True),
        ("hostNetwork", "localhost:5555", False),
        ("", "engine.example.com:5555", False),
        ("dcgm: {enabled: true}\n", "engine.example.com", True),
        ("", "", False),
    ],
)
def test_engines_that_are_not_there(more: str, host: str, expected: bool) -> None:
    """The stack's engine is a Service that there is only with dcgm.enabled; localhost is the exporter's own pod."""
    network = "hostNetwork: true, " if more == "hostNetwork" else ""
    env = f"[{{name: DCGM_REMOTE_HOSTENGINE_INFO, value: '{host}'}}]"
    policy = f"{'' if network else more}dcgmExporter: {{{network}env: {env}}}"
    assert bool(said("GPU608", policy)) is expected


def test_openshift_selects_by_namespace() -> None:
    """OpenShift's Prometheus looks at no label of a ServiceMonitor."""
    cluster = "cluster: {platform: openshift, monitoring: true}\n"
    assert said("GPU602", cluster + "dcgmExporter: {serviceMonitor: {enabled: true}}\n") == ()


@pytest.mark.parametrize(
    ("limits", "gpus", "expected"),
    [("memory: 512Mi", 7, False), ("memory: 512Mi", 8, True), ("memory: 1G", 8, True), ("cpu: 100m", 8, False)],
)
def test_memory_of_the_exporter(limits: str, gpus: int, expected: bool) -> None:
    """1 GiB from 8 GPUs on, in whatever unit it is written (B54)."""
    pool = f"nodePools: [{{name: a, os: ubuntu22.04, gpusPerNode: {gpus}}}]\n"
    assert bool(paths("GPU601", f"{pool}dcgmExporter: {{resources: {{limits: {{{limits}}}}}}}")) is expected


@pytest.mark.parametrize(
    ("duration", "expected"), [("15s", 15_000), ("1m30s", 90_000), ("500ms", 500), ("1h", 3_600_000)]
)
def test_durations(duration: str, expected: int) -> None:
    """As Prometheus reads them."""
    assert milliseconds(duration) == expected


def group(**rule: object) -> str:
    """A policy with a PrometheusRule that has one RULE."""
    body = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "gpus"}}
    return yaml.safe_dump({"extraObjects": [{**body, "spec": {"groups": [{"name": "gpus", "rules": [rule]}]}}]})


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({"alert": "A", "expr": "))(("}, "unexpected right parenthesis"),
        ({"alert": "A", "expr": "rate(a)"}, "expected type matrix"),
        ({"alert": "A", "expr": 'a{b=~"("}'}, "illegal regex"),
        ({"alert": "A", "expr": 'a{b=~"x{2000}"}'}, "regular expression"),
        ({"alert": "A", "expr": ""}, "no expression"),
        ({"alert": "A", "expr": "1+" * 5000 + "1"}, "8000 characters"),
        ({"alert": "A", "record": "a:b", "expr": "1"}, "both alert and record"),
        ({"expr": "1"}, "or neither"),
        ({"record": "a-b", "expr": "1"}, "not a valid series name"),
        ({"record": "a:b", "expr": "1", "for": "5m"}, "has for"),
        ({"alert": "A", "expr": "a", "labels": {"a-b": "c"}}, "a-b is not a valid label name"),
        ({"alert": "A", "expr": "a", "annotations": {"s": "{{ $labels."}}, "template in s"),
        ({"alert": "A", "expr": "a", "labels": {"severity": "{{ if }}"}}, "template in severity"),
    ],
)
def test_rules_that_the_operator_refuses(rule: dict[str, object], what: str) -> None:
    """One of them, and the whole object is left out: it is refused with its place."""
    (found,) = said("GPU612", group(**rule))
    assert what in found.what
    assert found.path.startswith("spec.extraObjects[0].spec.groups[0].rules[0]")


@pytest.mark.parametrize(
    "rule",
    [
        {"alert": "A", "expr": 1, "annotations": {"summary": "{{ $labels.pod }} has {{ $value | humanize }}"}},
        {"alert": "A", "expr": "holt_winters(a[5m], 0.1, 0.1) > 1", "for": "5m", "labels": {"severity": "page"}},
        {"record": "a:b:c", "expr": "sum by (a) (rate(b[5m])) / on (a) group_left (c) d", "labels": {"x": "{{ y"}},
    ],
)
def test_rules_that_the_operator_takes(rule: dict[str, object]) -> None:
    """What is read is quiet."""
    assert said("GPU612", group(**rule)) == ()


def test_groups_of_one_name() -> None:
    """Names of groups are unique within an object; two objects may each have a group of the same name."""
    rules = yaml.safe_load(group(alert="A", expr="a"))["extraObjects"][0]
    other = {**rules, "metadata": {"name": "others"}}
    assert paths("GPU612", yaml.safe_dump({"extraObjects": [rules, other]})) == []
    twice = {**rules, "spec": {"groups": rules["spec"]["groups"] * 2}}
    where = ["spec.extraObjects[0].spec.groups[1].name"]
    assert paths("GPU612", yaml.safe_dump({"extraObjects": [twice]})) == where
