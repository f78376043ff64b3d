"""Rules about `alerts`: what can't be rendered, what could never fire, and what has ended."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import alerts as known
from ...catalog import dcgm
from ...cluster import alerts
from ...cluster.metrics import served, telemetry
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule


@rule("GPU613", "error")
def nothing_reads_them(cluster: Cluster) -> Iterator[Hit]:
    """Alerts in a cluster without the Prometheus operator."""
    said = cluster.spec.alerts
    if said is not None and said.enabled and not cluster.spec.cluster.monitoring:
        yield hit("spec.alerts")


@rule("GPU614", "error")
def can_not_fire(cluster: Cluster) -> Iterator[Hit]:
    """An alert that is asked for and could never fire, or for a pool that isn't there."""
    said = cluster.spec.alerts
    every = {pool.name for pool in cluster.pools}
    for name, one in said.rules.items() if said and said.enabled else ():
        alert = known.alert(name)
        why, pools = alerts.why_not(cluster, alert), set(alerts.switched(cluster)) if alert.pools else every
        if one.enabled and why:
            path = f"spec.alerts.rules.{name}.enabled"
            yield Hit(path, f"the alert {name} could never fire", why, f"change that, or leave out {path}")
        for pool in one.perPool:
            if pool not in pools and (pool not in every or not why):
                what = (
                    f"the alert {name} is not about node pool {pool}"
                    if pool in every
                    else f"there is no node pool {pool}"
                )
                yield Hit(
                    f"spec.alerts.rules.{name}.perPool.{pool}",
                    what,
                    "what is said of its nodes would be about none",
                    f"write one of {', '.join(sorted(pools))}" if pools else "leave it out: the policy has no pools",
                    key=True,
                )


@rule("GPU615", "warning")
def counter_not_served(cluster: Cluster) -> Iterator[Hit]:
    """An alert over a counter that the policy's own list of metrics lacks."""
    spec = cluster.spec
    have, path = served(spec), telemetry(spec).path
    if have is None:
        return
    for alert in dict.fromkeys(one.alert.name for one in alerts.rules(cluster)):
        lacking = [name for name in known.alert(alert).counters if have.get(name, "label") == "label"]
        if lacking:
            rows = " and ".join(f"`{name}, {dcgm.field(name).type}, ...`" for name in lacking)
            yield hit(f"{path}dcgmExporter.config", alert=alert, fields=" and ".join(lacking), rows=rows)


@rule("GPU616", "warning")
def silence_has_ended(cluster: Cluster) -> Iterator[Hit]:
    """A silence that has ended."""
    said = cluster.spec.alerts
    for index, one in enumerate(said.silence if said and said.enabled else ()):
        at, ends = f"spec.alerts.silence[{index}]", one.ends
        yield hit(at, since=ends, alert=one.alert, ends=ends, last=one.until, reason=one.reason)


@rule("GPU617", "note")
def said_in_vain(cluster: Cluster) -> Iterator[Hit]:
    """What is said of an alert that isn't rendered in this cluster."""
    said = cluster.spec.alerts
    if said is None or not said.enabled:
        return
    named = [(f"rules.{name}", name) for name, one in said.rules.items() if not one.enabled]
    named += [(f"silence[{index}]", one.alert) for index, one in enumerate(said.silence)]
    for path, name in named:
        why = alerts.why_not(cluster, known.alert(name))
        if why:
            yield hit(f"spec.alerts.{path}", why=why, alert=name)


@rule("GPU618", "note")
def labels_of_nodes(cluster: Cluster) -> Iterator[Hit]:
    """Alerts by labels of nodes, which kube-state-metrics has to be told."""
    several = len(cluster.pools) > 1
    rules = list(alerts.rules(cluster))
    keys = {key for pool in cluster.pools for key in pool.selection} if several and rules else set()
    keys |= {key for one in rules for key in one.alert.node_labels}
    if keys:
        yield hit("spec.alerts", keys=",".join(sorted(keys)))


@rule("GPU619", "warning")
def nobody_scrapes(cluster: Cluster) -> Iterator[Hit]:
    """Alerts over the exporter, and nothing that is rendered scrapes it."""
    exporter = cluster.stack.dcgmExporter
    about = any("exporter" in one.alert.needs for one in alerts.rules(cluster))
    monitors = any(body["kind"] in {"ServiceMonitor", "PodMonitor"} for body in cluster.spec.extraObjects)
    if about and exporter.enabled and not exporter.serviceMonitor.enabled and not monitors:
        yield hit(f"spec.{cluster.at('dcgmExporter')}.serviceMonitor.enabled")
