"""Inputs of the dashboards about GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...catalog.dashboards import Name
from ...cluster import dashboards
from ...cluster.metrics import served
from ..parts.common_inputs import Inputs

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster

SIDECAR = {"grafana_dashboard": "1"}
"""The label that the sidecar of Grafana's chart looks for, unless it is told otherwise."""
GRAFANAS = {"dashboards": "grafana"}
"""The label that a Grafana of the operator has in its documentation."""


class DashboardsInputs(Inputs):
    """The dashboards `names` as objects in `namespace`. `lacking` are metrics that nobody serves, `stack` is the
    namespace of the stack, `cluster_label` "" where the data source knows one cluster. `instances` are labels of the
    operator's Grafana objects. `honor_labels`: the exporter's names of the pod that has a GPU are those of its series.
    """

    names: tuple[Name, ...]
    lacking: tuple[str, ...] = ()
    output: Literal["configMap", "grafanaOperator"] = "configMap"
    namespace: str
    stack: str
    labels: dict[str, str] = {}
    folder: str = ""
    instances: dict[str, str] = {}
    cluster_label: str = ""
    honor_labels: bool = False


def from_cluster(cluster: Cluster) -> DashboardsInputs | None:
    """None where the policy asks for no dashboard."""
    spec, said = cluster.spec, cluster.spec.dashboards
    names = dashboards.names(cluster)
    if said is None or not names:
        return None
    sidecar = said.output == "configMap"
    return DashboardsInputs(
        names=tuple(names),
        lacking=tuple(dashboards.lacking(cluster, served(spec))),
        output=said.output,
        namespace=said.namespace or spec.cluster.namespace,
        stack=spec.cluster.namespace,
        labels=said.labels or (SIDECAR if sidecar else {}),
        folder=said.folder or "",
        instances={} if sidecar else said.instanceSelector or GRAFANAS,
        cluster_label=said.clusterLabel or "",
        honor_labels=bool(cluster.stack.dcgmExporter.serviceMonitor.honorLabels),
    )
