"""Monitors and rules in the words of who reads them: the Prometheus operator, that of VictoriaMetrics, Google's.

Each is made as the Prometheus operator has it and told again, so that what is scraped and what alerts is the same.
VictoriaMetrics' objects have the same fields under other names. Google's collectors find pods and not Services, know no
labels of targets but their own, and their rules see one namespace unless they are a cluster's (monitoring.md 1, 2). The
operator's rules for OpenShift (catalog/data/openshift-rules.yaml) are here with the exporter that they are of.
"""

from collections.abc import Mapping
from typing import Any

from ...catalog import _data
from ...model import Body
from ...policy.language.cluster import Monitoring
from .pod import sparse
from .template import template

PACE, EVALUATED = "30s", "1m"
"""How often Google's collectors scrape what says nothing of it, which they want said; their default for rules."""


def service_monitor(
    name: str,
    namespace: str,
    *,
    port: str,
    number: int,
    job_label: str,
    endpoint: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    reader: Monitoring = True,
) -> Body:
    """What lets READER scrape /metrics at PORT of the Service NAME, of which the pods listen on NUMBER. ENDPOINT has
    further fields of a ServiceMonitor's."""
    at: Body = {"path": "/metrics", **(endpoint or {})}
    if reader == "google-managed":
        told = {"port": number, "path": at["path"], "interval": at.get("interval", PACE)}
        at = told | sparse(timeout=at.get("scrapeTimeout", ""))
    else:
        renamed = {"relabelings": "relabelConfigs"} if reader == "victoria-metrics" else {}
        at = {"port": port, **{renamed.get(key, key): value for key, value in at.items()}}
    words = {"name": name, "namespace": namespace, "labels": {"app": name, **(labels or {})}}
    return template(__file__, _form("monitor", reader), **words, endpoint=at, job_label=job_label)


def prometheus_rule(
    name: str, namespace: str, group: Body, labels: Mapping[str, str] | None = None, *, reader: Monitoring = True
) -> Body:
    """The rules NAME with one GROUP as READER has them, labelled app=NAME without the ending -alerts, and LABELS."""
    own = {"app": name.removesuffix("-alerts"), **(labels or {})}
    if reader == "google-managed":
        group = {"name": group["name"], "interval": EVALUATED, **group}
    return template(__file__, _form("rules", reader), name=name, namespace=namespace, labels=own, group=group)


def _form(what: str, reader: Monitoring) -> str:
    return f"{what}-{reader}" if isinstance(reader, str) else what


def operators_rule(group: str, name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The PrometheusRule NAME with the GROUP of that name in the data file."""
    return prometheus_rule(name, namespace, _data.copy(_data.load("openshift-rules")[group]), labels)
