"""Inputs of the node status exporter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common import OperandInputs, operand

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec


class NodeStatusExporterInputs(OperandInputs):
    """`monitoring`: the Prometheus operator's CRDs are there, so that a ServiceMonitor can be."""

    monitoring: bool = False


def from_spec(spec: ClusterPolicySpec) -> NodeStatusExporterInputs | None:
    """None where the exporter is off, which is the default of all releases."""
    section = spec.nodeStatusExporter
    if not section.enabled:
        return None
    shared = operand(spec, section, "nodeStatusExporter")
    return NodeStatusExporterInputs(**shared, monitoring=bool(spec.cluster.monitoring))
