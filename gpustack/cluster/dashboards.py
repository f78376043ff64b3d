"""Which dashboards a cluster gets, and what they lack there: a panel that stays empty looks like a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..catalog import dashboards as known
from ..catalog import dcgm
from ..policy.language.reconciler import runs
from . import alerts
from .resolve import Cluster

PEERS = "DCGM_EXP_P2P_STATUS"
"""Whether a GPU reaches each of the others over NVLink."""
NEEDS: Mapping[str, Callable[[Cluster], object]] = {
    "clusterLabel": lambda cluster: cluster.spec.dashboards and cluster.spec.dashboards.clusterLabel,
    "mig": lambda cluster: any(pool.layout for pool in cluster.pools),
    "reconciler": lambda cluster: runs(cluster.spec),
}
"""What a dashboard needs, and whether it is there."""


def names(cluster: Cluster) -> list[known.Name]:
    """The dashboards of CLUSTER, in the order of the catalogue."""
    said = cluster.spec.dashboards
    if said is None or not said.enabled:
        return []
    on = (name for name in known.boards() if name not in said.leaveOut)
    return [name for name in on if all(NEEDS[need](cluster) for need in known.boards()[name].needs)]


def counters(cluster: Cluster) -> list[str]:
    """The fields of the exporter that the dashboards of CLUSTER read. GPUs without NVSwitch reach none over it."""
    less = {PEERS} if not alerts.switched(cluster) else set[str]()
    return [name for name in sorted(known.read(names(cluster)) - less) if name.startswith("DCGM_")]


def lacking(cluster: Cluster, have: Mapping[str, str] | None) -> list[str]:
    """The metrics that CLUSTER's dashboards read and nobody serves; the exporter serves what it HAS (None: unknown)."""
    said, rules = cluster.spec.dashboards, list(alerts.rules(cluster))
    recorded = {f"gpustack:{name}" for rule in rules for name in rule.alert.records}
    fields = counters(cluster) if cluster.stack.dcgmExporter.enabled else ()

    def there(name: str) -> object:
        if name.startswith("kube_"):
            return said and said.kubeStateMetrics
        if name.startswith("gpustack_reconciler_"):
            return runs(cluster.spec)
        if not name.startswith("DCGM_"):
            return rules if name == "ALERTS" else name in recorded
        listed = have is None or (name in have and (have[name] == "label") == (dcgm.field(name).type == "label"))
        return name in fields and listed

    return [name for name in sorted(known.read(names(cluster))) if not there(name)]
