"""The exporter, how Prometheus finds it, and alerts over its metrics."""

from __future__ import annotations

from tests.checks.kinds import Row

MANY = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-H100-80GB-HBM3, gpusPerNode: 8}]\n"
FEW = "nodePools: [{name: a, os: ubuntu22.04, gpuProduct: NVIDIA-L4, gpusPerNode: 1}]\n"
MONITORED = "cluster: {monitoring: true}\n"


def alert(expression: str, labels: str = "") -> str:
    """A policy with an alert."""
    meta = f"{{name: gpus{', labels: ' + labels if labels else ''}}}"
    return (
        f"extraObjects:\n- apiVersion: monitoring.coreos.com/v1\n  kind: PrometheusRule\n  metadata: {meta}\n"
        f"  spec:\n    groups: [{{name: gpus, rules: [{{alert: Gpu, expr: '{expression}'}}]}}]\n"
    )


def limit(memory: str) -> str:
    """A policy with a memory limit of the exporter."""
    return f"dcgmExporter: {{resources: {{limits: {{memory: {memory}}}}}}}\n"


def monitor(options: str) -> str:
    """A policy with a ServiceMonitor."""
    return MONITORED + f"dcgmExporter: {{serviceMonitor: {{enabled: true{options}}}}}\n"


ROWS = [
    Row("B54", "GPU601", FEW + limit("500Mi"), FEW + limit("512Mi")),
    Row("B54", "GPU601", MANY + limit("1000Mi"), MANY + limit("1Gi"), "8 GPUs"),
    Row(
        "B55",
        "GPU602",
        monitor(""),
        monitor(", additionalLabels: {release: kube-prometheus-stack}"),
    ),
    Row(
        "B55",
        "GPU603",
        "dcgmExporter: {serviceMonitor: {enabled: true}}",
        "cluster: {monitoring: false}\ndcgmExporter: {serviceMonitor: {enabled: true}}",
        "without the CRD there is none; whoever says so knows",
    ),
    Row(
        "B55",
        "GPU607",
        monitor(", honorLabels: true") + alert('DCGM_FI_DEV_FB_USED{exported_container!="x"} > 1'),
        monitor("") + alert('DCGM_FI_DEV_FB_USED{exported_container!="x"} > 1'),
        "labels of the pod with the GPU",
    ),
    Row(
        "B55",
        "GPU611",
        monitor(", additionalLabels: {release: prom}") + alert("DCGM_FI_DEV_GPU_TEMP > 85"),
        monitor(", additionalLabels: {release: prom}") + alert("DCGM_FI_DEV_GPU_TEMP > 85", "{release: prom}"),
    ),
    Row(
        "B53",
        "GPU605",
        alert("DCGM_FI_DEV_POWER_USAGE / DCGM_FI_DEV_POWER_MGMT_LIMIT > 0.9"),
        alert("DCGM_FI_DEV_POWER_USAGE > 300"),
        "an alert over a field that the list of metrics doesn't have",
    ),
    Row(
        "B53",
        "GPU605",
        alert("increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[5m]) > 0"),
        alert("increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[5m]) > 0")
        + "dcgmExporter:\n  config:\n    data: |\n      DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Double-bit errors\n",
    ),
]
