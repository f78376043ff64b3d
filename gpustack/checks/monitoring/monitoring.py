"""Rules about the exporter, its list of metrics and how Prometheus finds it; and about `alerts` and `dashboards`: what
can't be rendered, what could never fire, and what has ended. Rules of a policy's own are in alert_rules.py.
"""

import re
from collections.abc import Iterator

from ...catalog import alerts as known
from ...catalog import dashboards as graphs
from ...catalog import dcgm
from ...cluster import alerts, dashboards
from ...cluster.metrics import listed, series, served, telemetry
from ...cluster.resolve import Cluster
from ...model import MONITORS, RULES, few, mapping
from ...policy.configurations.dcgm_csv import Row
from ...policy.language.spec import ClusterPolicySpec
from ...text.quantities import milliseconds, size
from ..rule import Hit, hit, rule
from ..subjects import Written, told

HOST_ENGINE = "DCGM_REMOTE_HOSTENGINE_INFO"
SERVICES = {False: "nvidia-dcgm", True: "nvidia-dcgm-dra"}
"""The Service of the stand-alone engine, by whether GPUs are allocated by claims."""
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


def monitored(spec: ClusterPolicySpec) -> bool:
    """Whether the exporter's ServiceMonitor is rendered."""
    exporter = telemetry(spec).exporter
    return exporter.enabled and bool(spec.cluster.monitoring) and exporter.serviceMonitor.enabled


@rule("GPU601", "warning")
def exporter_memory(cluster: Cluster) -> Iterator[Hit]:
    """A memory limit at which the exporter is killed."""
    path, exporter, engine = telemetry(cluster.spec)
    facts, largest = dcgm.exporter(), max((pool.gpusPerNode or 0 for pool in cluster.spec.nodePools), default=0)
    many = largest >= facts["many_gpus"]
    least, whose = facts["least_memory_of_many" if many else "least_memory"], f" on nodes with {largest} GPUs"
    for name, who, section in (("dcgmExporter", "the exporter", exporter), ("dcgm", "the DCGM engine", engine)):
        limit = ((section.resources and section.resources.limits) or {}).get("memory") if section.enabled else None
        if limit is not None and size(limit) < size(least):
            at = f"{path}{name}.resources.limits.memory"
            yield hit(at, who=who, limit=limit, whose=whose if many else "", least=least)


@rule("GPU602", "note")
def monitor_without_labels(cluster: Cluster) -> Iterator[Hit]:
    """A ServiceMonitor by whose labels Prometheus may not select it."""
    spec = cluster.spec
    path, exporter, _ = telemetry(spec)
    only, said = exporter.serviceMonitor.additionalLabels, spec.cluster
    if not monitored(spec) or said.monitoring is not True or cluster.platform.own_monitoring or said.monitoringLabels:
        return
    if only and (spec.reconciler or spec.alerts):
        yield hit(f"{path}dcgmExporter.serviceMonitor.additionalLabels", "alone")
    if not only:
        yield hit(f"{path}dcgmExporter.serviceMonitor", "none")


@rule("GPU603", "warning", over="origins")
def monitor_in_vain(written: Written) -> Iterator[Hit]:
    """A ServiceMonitor that is asked for, and no word about whether the cluster has its CRD."""
    spec = written.spec
    whose, exporter, _ = telemetry(spec)
    path = f"{whose}dcgmExporter.serviceMonitor.enabled"
    by_user = written.by_user(path) or written.by_user("spec.dcgmExporter.serviceMonitor.enabled")
    asked = exporter.enabled and exporter.serviceMonitor.enabled and by_user
    if asked and not (spec.cluster.monitoring or written.by_user("spec.cluster.monitoring")):
        yield hit(path)


@rule("GPU624", "error")
def not_to_be_had(cluster: Cluster) -> Iterator[Hit]:
    """What the monitoring that the cluster has doesn't know."""
    reader, (whose, exporter, _) = cluster.spec.cluster.monitoring, telemetry(cluster.spec)
    path, said = f"{whose}dcgmExporter.serviceMonitor", exporter.serviceMonitor
    googles = reader == "google-managed" and monitored(cluster.spec)
    if isinstance(reader, str) and cluster.platform.own_monitoring:
        yield hit("spec.cluster.monitoring", "openshift", reader=reader)
    if googles and said.relabelings:
        yield hit(f"{path}.relabelings", "relabelings")
    if googles and said.honorLabels:
        yield hit(f"{path}.honorLabels", "honorLabels")


@rule("GPU608", "warning")
def no_host_engine(cluster: Cluster) -> Iterator[Hit]:
    """An exporter that is told to ask a DCGM engine which isn't there."""
    whose, exporter, engine = telemetry(cluster.spec)
    for index, entry in enumerate(exporter.env or ()) if exporter.enabled else ():
        host = re.sub(r":[0-9]+$", "", (entry.value or "").strip())
        if entry.name != HOST_ENGINE or not host:
            continue
        path = f"{whose}dcgmExporter.env[{index}]"
        service = host.split(".", maxsplit=1)[0] == SERVICES[cluster.dra]
        if service and not engine.enabled:
            yield hit(path, "off", asked=entry.value, whose=whose)
        elif host in LOCAL and not exporter.hostNetwork:
            yield hit(path, "pod", asked=entry.value)
        elif engine.enabled and not service:
            yield hit(path, "beside", asked=entry.value, whose=whose)


@rule("GPU610", "error")
def timeout_beyond_interval(cluster: Cluster) -> Iterator[Hit]:
    """A scrape that may take longer than the time between two."""
    path, exporter, _ = telemetry(cluster.spec)
    interval, timeout = exporter.serviceMonitor.interval, exporter.serviceMonitor.scrapeTimeout
    if monitored(cluster.spec) and interval and timeout and milliseconds(timeout) > milliseconds(interval):
        yield hit(f"{path}dcgmExporter.serviceMonitor.scrapeTimeout", timeout=timeout, interval=interval)


@rule("GPU611", "warning")
def rules_without_labels(cluster: Cluster) -> Iterator[Hit]:
    """A PrometheusRule or monitor of the policy without the labels by which Prometheus selects."""
    spec = cluster.spec
    own = telemetry(spec).exporter.serviceMonitor.additionalLabels if monitored(spec) else {}
    wanted = {**spec.cluster.monitoringLabels, **own}
    for index, body in enumerate(spec.extraObjects):
        if wanted and body["kind"] in (*MONITORS, *RULES):
            labels = mapping(body["metadata"].get("labels"))
            if lacking := ", ".join(f"{key}: {value}" for key, value in wanted.items() if labels.get(key) != value):
                name = f"{body['kind']} {body['metadata']['name']}"
                yield hit(f"spec.extraObjects[{index}].metadata", object=name, labels=lacking)


CONSUMER = ("GeForce", "TITAN")
"""What the names of GPUs without the profiling counters have in them."""


@rule("GPU520", "error")
def list_that_stops(cluster: Cluster) -> Iterator[Hit]:
    """A list of metrics at which the exporter stops."""
    if csv := listed(cluster.spec):
        yield from told(csv.text.path, csv.metrics.problems)


@rule("GPU521", "error")
def never_exported(cluster: Cluster) -> Iterator[Hit]:
    """A field in the list of metrics that the exporter can't serve."""
    csv = listed(cluster.spec)
    never = dcgm.not_exported()
    for row in csv.metrics.rows if csv else ():
        if csv and row.name in never:
            others = any(other.name not in never for other in csv.metrics.rows)
            remedy = "delete the row" if others else ""
            yield hit(csv.text.path, remedy=remedy, inside=row.places[0], field=row.name)


@rule("GPU522", "warning")
def doubtful_field(cluster: Cluster) -> Iterator[Hit]:
    """A field in the list of metrics that will be missing, or that stands there twice."""
    if (csv := listed(cluster.spec)) is None:
        return
    first, old = dict[str, Row](), {new: name for name, new in dcgm.new_names().items()}
    products = {pool.gpuProduct or "" for pool in cluster.spec.nodePools}
    plain = sorted(name for name in products if any(word in name for word in CONSUMER))
    for row in csv.metrics.rows:
        other = first.setdefault(old.get(row.name, row.name), row)
        if other is not row:
            what = f"{row.name} stands twice" if other.name == row.name else f"{row.name} is {other.name}"
            why = f"line {other.places[0][0]} has the same field"
            yield Hit(csv.text.path, what, why, "delete one of the two rows", row.places[0])
        if row.profiling and plain:
            yield hit(csv.text.path, inside=row.places[0], field=row.name, gpus=", ".join(plain))


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
            yield hit(f"spec.alerts.rules.{name}.enabled", "never", why=why, alert=name)
        remedy = f"write one of {', '.join(sorted(pools))}" if pools else "leave it out: the policy has no pools"
        for pool in one.perPool:
            if pool not in pools and (pool not in every or not why):
                at, there = f"spec.alerts.rules.{name}.perPool.{pool}", pool in every
                yield hit(at, "others" if there else "no pool", remedy=remedy, alert=name, pool_name=pool, at_key=True)


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
        if why := alerts.why_not(cluster, known.alert(name)):
            yield hit(f"spec.alerts.{path}", why=why, alert=name)


@rule("GPU618", "note")
def labels_of_nodes(cluster: Cluster) -> Iterator[Hit]:
    """Alerts by labels of nodes, which kube-state-metrics has to be told."""
    rules, several = list(alerts.rules(cluster)), len(cluster.pools) > 1
    keys = {key for one in rules for key in one.alert.node_labels}
    keys |= {key for pool in cluster.pools if several and rules for key in pool.selection}
    if keys:
        yield hit("spec.alerts", keys=",".join(sorted(keys)))


@rule("GPU619", "warning")
def nobody_scrapes(cluster: Cluster) -> Iterator[Hit]:
    """Alerts over the exporter, and nothing that is rendered scrapes it."""
    exporter = cluster.stack.dcgmExporter
    about = any("exporter" in one.alert.needs for one in alerts.rules(cluster))
    monitors = any(body["kind"] in MONITORS for body in cluster.spec.extraObjects)
    if about and exporter.enabled and not exporter.serviceMonitor.enabled and not monitors:
        yield hit(f"spec.{cluster.at('dcgmExporter')}.serviceMonitor.enabled")


@rule("GPU621", "note")
def panels_left_out(cluster: Cluster) -> Iterator[Hit]:
    """Panels over a counter that the policy's own list of metrics lacks."""
    have = served(cluster.spec)
    lacking = {*dashboards.lacking(cluster, have)} & {*dashboards.counters(cluster)} if have else set[str]()
    boards = [(name, graphs.boards()[name].rows.values()) for name in dashboards.names(cluster)] if lacking else []
    panels = [f"{each.title} ({name})" for name, rows in boards for row in rows for each in row if each.reads & lacking]
    if panels:
        rows = ", ".join(f"`{name}, {dcgm.field(name).type}, ...`" for name in sorted(lacking))
        path = f"{telemetry(cluster.spec).path}dcgmExporter.config"
        yield hit(path, number=len(panels), panels=few(panels, 5), rows=rows)


@rule("GPU622", "error")
def too_many_series(cluster: Cluster) -> Iterator[Hit]:
    """More series than the limit."""
    limit, path = cluster.spec.cluster.seriesLimit, "spec.cluster.seriesLimit"
    parts = {pool.name: total[1] for pool in cluster.pools if (total := series(pool).total)} if limit else {}
    if limit and (needed := sum(parts.values())) > limit:
        most = ", ".join(f"{name} {number:,}" for name, number in parts.items())
        yield hit(path, number=f"{needed:,}", limit=f"{limit:,}", needed=needed, pools=most)
