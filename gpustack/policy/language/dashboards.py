"""`dashboards`: boards about GPUs for Grafana. What they show is a fact (catalog/data/dashboards.yaml); a policy says
which of them there are, and how Grafana finds them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from gpustack.catalog.dashboards import Name

from .base import Section, items, mapping, own
from .forms import form
from .types import DnsLabel, Labels

FOLDER = form("dashboard_folder")
SERIES_LABEL = form("series_label")


class Dashboards(Section):
    """Dashboards about GPUs, for Grafana."""

    enabled: bool = own("dashboards.enabled")
    """Whether dashboards are rendered. Absent: true."""
    output: Literal["configMap", "grafanaOperator"] = own("dashboards.output")
    """As what: `configMap` for the sidecar of Grafana's chart, `grafanaOperator` for GrafanaDashboard objects. Absent:
    configMap."""
    namespace: DnsLabel | None = None
    """Namespace of the dashboards, which somebody else made. Absent: that of the stack."""
    labels: Labels = mapping()
    """Labels of the objects, by which the sidecar finds them. Absent: `grafana_dashboard: "1"` for the sidecar, none
    for the operator."""
    folder: Annotated[str, FOLDER] | None = None
    """Folder in Grafana: the annotation `grafana_folder`, or that of a GrafanaDashboard. Absent: none."""
    instanceSelector: Labels = mapping()
    """Labels of the Grafana objects that the operator gives the dashboards to. Absent: `dashboards: grafana`."""
    clusterLabel: Annotated[str, SERIES_LABEL] | None = None
    """Label by which series of several clusters are told apart, such as cluster; viewers then choose one, and the
    dashboard `fleet` is there. Absent: the data source knows one cluster."""
    kubeStateMetrics: bool = own("dashboards.kubeStateMetrics")
    """Whether kube-state-metrics is in the cluster. Absent: true."""
    leaveOut: list[Name] = items()
    """Dashboards that are not rendered. Absent: none."""
