"""Inputs of what OpenShift's own Prometheus needs to scrape the stack."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import Inputs, prometheus_rules


class OpenShiftMonitoringInputs(Inputs):
    """`namespace` is where the exporters are."""

    namespace: str


def from_cluster(cluster: Cluster) -> OpenShiftMonitoringInputs | None:
    """The inputs for CLUSTER, or None outside OpenShift and where nothing monitors."""
    spec = cluster.spec
    return OpenShiftMonitoringInputs(namespace=spec.cluster.namespace) if prometheus_rules(spec) else None
