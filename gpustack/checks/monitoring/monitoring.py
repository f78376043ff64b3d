"""Rules about the exporter and how Prometheus finds it. Rules about alerts are in alert_rules.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...catalog import dcgm
from ...cluster.metrics import telemetry
from ...cluster.resolve import Cluster
from ...model import Body
from ...policy.language.dcgm import Dcgm, DcgmExporter
from ...policy.language.spec import ClusterPolicySpec
from ...text.quantities import milliseconds, size
from ..rule import Hit, hit, rule
from ..subjects import Written

HOST_ENGINE = "DCGM_REMOTE_HOSTENGINE_INFO"
SERVICES = {False: "nvidia-dcgm", True: "nvidia-dcgm-dra"}
"""The Service of the stand-alone engine, by whether GPUs are allocated by claims."""
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


def exporting(spec: ClusterPolicySpec) -> bool:
    """Whether an exporter is rendered."""
    return telemetry(spec).exporter.enabled


def monitored(spec: ClusterPolicySpec) -> bool:
    """Whether the exporter's ServiceMonitor is rendered."""
    return exporting(spec) and bool(spec.cluster.monitoring) and bool(telemetry(spec).exporter.serviceMonitor.enabled)


@rule("GPU601", "warning")
def exporter_memory(cluster: Cluster) -> Iterator[Hit]:
    """A memory limit at which the exporter is killed."""
    spec = cluster.spec
    path, exporter, engine = telemetry(spec)
    facts = dcgm.exporter()
    largest = max((pool.gpusPerNode or 0 for pool in spec.nodePools), default=0)
    least = facts["least_memory_of_many"] if largest >= facts["many_gpus"] else facts["least_memory"]
    of: list[tuple[str, str, Dcgm | DcgmExporter]] = []
    if exporting(spec):
        of.append((f"{path}dcgmExporter", "the exporter", exporter))
    if engine.enabled:
        of.append((f"{path}dcgm", "the DCGM engine", engine))
    for where, who, section in of:
        limits = (section.resources and section.resources.limits) or {}
        if "memory" in limits and size(limits["memory"]) < size(least):
            whose = f" on nodes with {largest} GPUs" if largest >= facts["many_gpus"] else ""
            at = f"{where}.resources.limits.memory"
            yield hit(at, who=who, limit=limits["memory"], whose=whose, least=least)


@rule("GPU602", "note")
def monitor_without_labels(cluster: Cluster) -> Iterator[Hit]:
    """A ServiceMonitor by whose labels Prometheus may not select it."""
    spec = cluster.spec
    path, exporter, _ = telemetry(spec)
    only = exporter.serviceMonitor.additionalLabels
    if not monitored(spec) or cluster.on_openshift or spec.cluster.monitoringLabels:
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
    asked = exporting(spec) and exporter.serviceMonitor.enabled and by_user
    if asked and spec.cluster.monitoring is None:
        yield Hit(path, "the ServiceMonitor is not rendered")


@rule("GPU608", "warning")
def no_host_engine(cluster: Cluster) -> Iterator[Hit]:
    """An exporter that is told to ask a DCGM engine which isn't there."""
    spec = cluster.spec
    whose, exporter, engine = telemetry(spec)
    name = SERVICES[cluster.dra]
    for index, entry in enumerate(exporter.env or ()) if exporting(spec) else ():
        host = re.sub(r":[0-9]+$", "", (entry.value or "").strip())
        if entry.name != HOST_ENGINE or not host:
            continue
        path = f"{whose}dcgmExporter.env[{index}]"
        service = host.split(".", maxsplit=1)[0] == name
        if service and not engine.enabled:
            yield hit(path, "off", asked=entry.value, whose=whose)
        elif host in LOCAL and not exporter.hostNetwork:
            yield hit(path, "pod", asked=entry.value)
        elif engine.enabled and not service:
            yield hit(path, "beside", asked=entry.value, whose=whose)


@rule("GPU610", "error")
def timeout_beyond_interval(cluster: Cluster) -> Iterator[Hit]:
    """A scrape that may take longer than the time between two."""
    spec = cluster.spec
    path, exporter, _ = telemetry(spec)
    monitor = exporter.serviceMonitor
    if monitored(spec) and monitor.interval and monitor.scrapeTimeout:
        interval, timeout = milliseconds(monitor.interval), milliseconds(monitor.scrapeTimeout)
        if timeout > interval:
            at = f"{path}dcgmExporter.serviceMonitor.scrapeTimeout"
            yield hit(at, timeout=monitor.scrapeTimeout, interval=monitor.interval)


@rule("GPU611", "warning")
def rules_without_labels(cluster: Cluster) -> Iterator[Hit]:
    """A PrometheusRule or monitor of the policy without the labels by which Prometheus selects."""
    spec = cluster.spec
    own = telemetry(spec).exporter.serviceMonitor.additionalLabels if monitored(spec) else {}
    wanted = {**spec.cluster.monitoringLabels, **own}
    for index, body in enumerate(spec.extraObjects):
        if wanted and body["kind"] in {"PrometheusRule", "ServiceMonitor", "PodMonitor"}:
            lacking = {key: value for key, value in wanted.items() if _labels(body).get(key) != value}
            if lacking:
                written = ", ".join(f"{key}: {value}" for key, value in lacking.items())
                name = f"{body['kind']} {body['metadata']['name']}"
                yield hit(f"spec.extraObjects[{index}].metadata", object=name, labels=written)


def _labels(body: Body) -> dict[str, object]:
    labels = body["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}
