"""Inputs of the dashboards about GPUs."""

from ...catalog.dashboards import Name
from ...cluster import dashboards
from ...cluster.metrics import served
from ...cluster.resolve import Cluster
from ...policy.language.alerts import Dashboards
from ..parts.common_inputs import Inputs


class DashboardsInputs(Inputs):
    """The dashboards `names`, as the policy `said`. `stack` is the namespace of the stack, `lacking` metrics that none
    serves, `honor_labels` that the exporter's names of the pod that has a GPU are those of its series.
    """

    names: tuple[Name, ...]
    said: Dashboards
    stack: str
    lacking: tuple[str, ...] = ()
    honor_labels: bool = False


def from_cluster(cluster: Cluster) -> DashboardsInputs | None:
    """None where the policy asks for no dashboard."""
    spec, names = cluster.spec, dashboards.names(cluster)
    if spec.dashboards is None or not names:
        return None
    return DashboardsInputs(
        names=tuple(names),
        said=spec.dashboards,
        stack=spec.cluster.namespace,
        lacking=tuple(dashboards.lacking(cluster, served(spec))),
        honor_labels=cluster.stack.dcgmExporter.serviceMonitor.honorLabels,
    )
