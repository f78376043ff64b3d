"""Inputs of the node status exporter."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ...policy.language.cluster import Monitoring
from ..parts.common_inputs import OperandInputs, operand, prometheus_rules


class NodeStatusExporterInputs(OperandInputs):
    """`monitoring`: the Prometheus operator's CRDs are there, so that a ServiceMonitor can be; it and the rules have
    `monitoring_labels`. `rules`: OpenShift's Prometheus alerts on nodes that fail.
    """

    monitoring: Monitoring = False
    monitoring_labels: dict[str, str] = {}
    rules: bool = False


def from_cluster(cluster: Cluster) -> NodeStatusExporterInputs | None:
    """None where the exporter is off, which is the default of all releases."""
    spec = cluster.spec
    section = spec.nodeStatusExporter
    if not section.enabled:
        return None
    shared = operand(spec, section, "nodeStatusExporter")
    return NodeStatusExporterInputs(
        **shared,
        monitoring=spec.cluster.monitoring,
        monitoring_labels=spec.cluster.monitoringLabels,
        rules=prometheus_rules(spec),
    )
