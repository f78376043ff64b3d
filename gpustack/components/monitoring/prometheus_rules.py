"""Rules for OpenShift's Prometheus: metrics by the names of its dashboards, and alerts on nodes (operator.md 9.3).

The operator creates them whether or not their exporter runs; an exporter's rules belong to the exporter here. Names,
labels and expressions are the operator's, because dashboards, silences and routes go by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model import Body
from ..parts.kube import metadata

ACCELERATOR_METRICS: Mapping[str, str] = {
    "accelerator_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "accelerator_memory_used_bytes": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "accelerator_memory_total_bytes": "DCGM_FI_DEV_FB_TOTAL",
    "accelerator_power_usage_watts": "DCGM_FI_DEV_POWER_USAGE",
    "accelerator_temperature_celsius": "DCGM_FI_DEV_GPU_TEMP",
    "accelerator_sm_clock_hertz": "DCGM_FI_DEV_SM_CLOCK",
    "accelerator_memory_clock_hertz": "DCGM_FI_DEV_MEM_CLOCK",
}
"""The metric's name in OpenShift, and what DCGM calls it. Some names promise another unit than DCGM delivers."""


class Failure(NamedTuple):
    """A way in which a node can fail: the end of the alert's name, the words that tell of it, and when it holds."""

    name: str
    what: str
    expressions: tuple[str, ...]


DRIVER_WORKS = "gpu_operator_node_driver_validation == 1"
FAILURES = (
    Failure("", "offers no GPUs", ("gpu_operator_node_device_plugin_devices_total == 0",)),
    Failure("Driver", "has no working driver", ("gpu_operator_node_driver_validation == 0",)),
    Failure("Toolkit", "has no working container toolkit", ("gpu_operator_node_toolkit_ready == 0", DRIVER_WORKS)),
    Failure("Cuda", "runs no CUDA programs", ("gpu_operator_node_cuda_ready == 0", DRIVER_WORKS)),
)


def prometheus_rule(name: str, namespace: str, group: Body, labels: Mapping[str, str] | None = None) -> Body:
    """A PrometheusRule NAME with one GROUP, labelled app=NAME without the ending -alerts, and with LABELS."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(name, namespace, labels={"app": name.removesuffix("-alerts"), **(labels or {})}),
        "spec": {"groups": [group]},
    }


def accelerator_metrics(name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The rule NAME that records DCGM's metrics under the names that OpenShift has for accelerators of any vendor."""
    rules = [
        {"record": record, "expr": expression, "labels": {"vendor": "nvidia"}}
        for record, expression in ACCELERATOR_METRICS.items()
    ]
    group = {"name": "dcgm.accelerator.metrics", "interval": "30s", "rules": rules}
    return prometheus_rule(name, namespace, group, labels)


def node_alerts(name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The rule NAME that warns of nodes which the node status exporter has reported as failed for half an hour."""
    rules = [
        {
            "alert": f"GPUOperatorNodeDeployment{failure.name}Failed",
            "expr": "\nAND\n".join(failure.expressions) + "\n",
            "for": "30m",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": f"A GPU node {failure.what}",
                "description": f"Node {{{{ $labels.node }}}} {failure.what}, for 30 minutes now.",
            },
        }
        for failure in FAILURES
    ]
    return prometheus_rule(name, namespace, {"name": "Alert on node deployment failure", "rules": rules}, labels)
