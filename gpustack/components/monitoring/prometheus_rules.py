"""Rules for Prometheus, and those of the operator for OpenShift's (catalog/data/openshift-rules.yaml).

The operator creates them whether or not their exporter runs; an exporter's rules belong to the exporter here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...catalog import _data
from ...model import Body
from ...policy.language.cluster import Monitoring
from ..parts.kube import metadata
from ..parts.monitoring import rules_for


def prometheus_rule(
    name: str, namespace: str, group: Body, labels: Mapping[str, str] | None = None, *, reader: Monitoring = True
) -> Body:
    """The rules NAME with one GROUP as READER has them, labelled app=NAME without the ending -alerts, and LABELS."""
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(name, namespace, labels={"app": name.removesuffix("-alerts"), **(labels or {})}),
        "spec": {"groups": [group]},
    }
    return rules_for(reader, rule)


def operators_rule(group: str, name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The PrometheusRule NAME with the GROUP of that name in the data file."""
    return prometheus_rule(name, namespace, _data.copy(_data.load("openshift-rules")[group]), labels)
