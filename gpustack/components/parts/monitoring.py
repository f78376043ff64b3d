"""Monitors and rules in the words of who reads them: the Prometheus operator, that of VictoriaMetrics, Google's.

Each is made as the Prometheus operator has it and told again, so that what is scraped and what alerts is the same.
VictoriaMetrics' objects have the same fields under other names. Google's collectors find pods and not Services, know no
labels of targets but their own, and their rules see one namespace unless they are a cluster's (monitoring.md 1, 2).
"""

from __future__ import annotations

from ...model import Body
from ...policy.language.cluster import Monitoring
from .pod import sparse

RENAMED = {"relabelings": "relabelConfigs", "metricRelabelings": "metricRelabelConfigs"}
PACE, EVALUATED = "30s", "1m"
"""How often Google's collectors scrape what says nothing of it, which they want said; their default for rules."""


def monitor_for(reader: Monitoring, monitor: Body, port: int) -> Body:
    """What stands for a ServiceMonitor of one endpoint whose pods listen on PORT."""
    spec = monitor["spec"]
    (endpoint,) = spec["endpoints"]
    if reader == "victoria-metrics":
        told = {RENAMED.get(key, key): value for key, value in endpoint.items()}
        head = {"apiVersion": "operator.victoriametrics.com/v1beta1", "kind": "VMServiceScrape"}
        return {**monitor, **head, "spec": {**spec, "endpoints": [told]}}
    if reader == "google-managed":
        pace, limit = endpoint.get("interval", PACE), endpoint.get("scrapeTimeout", "")
        told = sparse(port=port, path=endpoint["path"], interval=pace, timeout=limit)
        targets = {"metadata": ["container", "pod"]}
        head = {"apiVersion": "monitoring.googleapis.com/v1", "kind": "PodMonitoring"}
        return {
            **monitor,
            **head,
            "spec": {"selector": spec["selector"], "endpoints": [told], "targetLabels": targets},
        }
    return monitor


def rules_for(reader: Monitoring, rule: Body) -> Body:
    """What stands for a PrometheusRule."""
    if reader == "victoria-metrics":
        return {**rule, "apiVersion": "operator.victoriametrics.com/v1beta1", "kind": "VMRule"}
    if reader == "google-managed":
        of_cluster = {key: value for key, value in rule["metadata"].items() if key != "namespace"}
        groups = [{"name": each["name"], "interval": EVALUATED, **each} for each in rule["spec"]["groups"]]
        head = {"apiVersion": "monitoring.googleapis.com/v1", "kind": "ClusterRules"}
        return {**rule, **head, "metadata": of_cluster, "spec": {"groups": groups}}
    return rule
