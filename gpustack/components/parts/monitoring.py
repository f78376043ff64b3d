"""Monitors and rules in the words of who reads them: the Prometheus operator, that of VictoriaMetrics, Google's.

Each is made as the Prometheus operator has it and told again, so that what is scraped and what alerts is the same.
VictoriaMetrics' objects have the same fields under other names. Google's collectors find pods and not Services, know no
labels of targets but their own, and their rules see one namespace unless they are a cluster's (monitoring.md 1, 2).
The rules that the operator has for OpenShift (catalog/data/openshift-rules.yaml) are an exporter's here, and are there
where that is.
"""

from collections.abc import Mapping
from typing import Any

from ...catalog import _data
from ...model import Body
from ...policy.language.cluster import Monitoring
from .kube import metadata
from .pod import sparse

VICTORIA, GOOGLE = "operator.victoriametrics.com/v1beta1", "monitoring.googleapis.com/v1"
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
    further fields of a ServiceMonitor's.
    """
    head = {"metadata": metadata(name, namespace, labels={"app": name, **(labels or {})})}
    at, selector = {"path": "/metrics", **(endpoint or {})}, {"matchLabels": {"app": name}}
    if reader == "google-managed":
        told = {"port": number, "path": at["path"], "interval": at.get("interval", PACE)}
        told |= sparse(timeout=at.get("scrapeTimeout", ""))
        spec = {"endpoints": [told], "selector": selector, "targetLabels": {"metadata": ["container", "pod"]}}
        return {"apiVersion": GOOGLE, "kind": "PodMonitoring", **head, "spec": spec}
    spec = {"jobLabel": job_label, "namespaceSelector": {"matchNames": [namespace]}, "selector": selector}
    if reader == "victoria-metrics":
        renamed = {"relabelConfigs" if key == "relabelings" else key: value for key, value in at.items()}
        spec["endpoints"] = [{"port": port, **renamed}]
        return {"apiVersion": VICTORIA, "kind": "VMServiceScrape", **head, "spec": spec}
    spec["endpoints"] = [{"port": port, **at}]
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", **head, "spec": spec}


def prometheus_rule(
    name: str, namespace: str, group: Body, labels: Mapping[str, str] | None = None, *, reader: Monitoring = True
) -> Body:
    """The rules NAME with one GROUP as READER has them, labelled app=NAME without the ending -alerts, and LABELS."""
    own = {"app": name.removesuffix("-alerts"), **(labels or {})}
    rest: Body = {"metadata": metadata(name, namespace, labels=own), "spec": {"groups": [group]}}
    if reader == "google-managed":
        groups = [{"name": group["name"], "interval": EVALUATED, **group}]
        rest = {"metadata": metadata(name, labels=own), "spec": {"groups": groups}}
        return {"apiVersion": GOOGLE, "kind": "ClusterRules", **rest}
    if reader == "victoria-metrics":
        return {"apiVersion": VICTORIA, "kind": "VMRule", **rest}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", **rest}


def operators_rule(group: str, name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The PrometheusRule NAME with the GROUP of that name in the data file."""
    return prometheus_rule(name, namespace, _data.copy(_data.load("openshift-rules")[group]), labels)
