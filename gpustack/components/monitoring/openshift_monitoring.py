"""OpenShift's own Prometheus may find the stack's exporters (operator.md 6, 9.3).

It watches namespaces with the label openshift.io/cluster-monitoring (namespace.py sets it), and needs a right in each
to look up the Services and pods behind a ServiceMonitor. Without, targets stay empty and nothing says why
(bug-reports.md B24).

Rules for Prometheus are here as well, those of the operator for OpenShift's included
(catalog/data/openshift-rules.yaml). The operator creates them whether or not their exporter runs; an exporter's rules
belong to the exporter here.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ...catalog import _data
from ...model import Body, Stage
from ...policy.language.cluster import Monitoring
from ..component import Component
from ..parts.kube import RBAC, binding, metadata, rule
from ..parts.monitoring import rules_for
from .monitoring_inputs import OpenShiftMonitoringInputs


def prometheus_rule(
    name: str, namespace: str, group: Body, labels: Mapping[str, str] | None = None, *, reader: Monitoring = True
) -> Body:
    """The rules NAME with one GROUP as READER has them, labelled app=NAME without the ending -alerts, and LABELS."""
    made = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(name, namespace, labels={"app": name.removesuffix("-alerts"), **(labels or {})}),
        "spec": {"groups": [group]},
    }
    return rules_for(reader, made)


def operators_rule(group: str, name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The PrometheusRule NAME with the GROUP of that name in the data file."""
    return prometheus_rule(name, namespace, _data.copy(_data.load("openshift-rules")[group]), labels)


NAME = "prometheus-k8s"
"""The ServiceAccount of OpenShift's Prometheus, and by OpenShift's custom the roles that others give it."""
LABELS = {"app": "gpu-operator"}


class OpenShiftMonitoring(Component[OpenShiftMonitoringInputs]):
    """A Role for OpenShift's Prometheus in the stack's namespace."""

    stage: ClassVar[Stage] = "monitoring"

    def manifests(self, inputs: OpenShiftMonitoringInputs) -> Iterator[Body]:
        subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "openshift-monitoring"}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": metadata(NAME, inputs.namespace, labels=LABELS),
            "rules": [rule("", "services endpoints pods", "get list watch")],
        }
        yield binding("RoleBinding", NAME, subject, namespace=inputs.namespace, labels=LABELS)
