"""OpenShift's own Prometheus may find the stack's exporters (operator.md 6, 9.3).

It watches namespaces with the label openshift.io/cluster-monitoring (namespace.py sets it), and needs a right in each
to look up the Services and pods behind a ServiceMonitor. Without, targets stay empty and nothing says why
(bug-reports.md B24).
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.kube import RBAC, binding, metadata, rule
from .monitoring_inputs import OpenShiftMonitoringInputs

NAME = "prometheus-k8s"
"""The ServiceAccount of OpenShift's Prometheus, and by OpenShift's custom the roles that others give it."""
LABELS = {"app": "gpu-operator"}


class OpenShiftMonitoring(Component[OpenShiftMonitoringInputs]):
    """A Role for OpenShift's Prometheus in the stack's namespace."""

    stage = "monitoring"

    def manifests(self, inputs: OpenShiftMonitoringInputs) -> Iterator[Body]:
        subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "openshift-monitoring"}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": metadata(NAME, inputs.namespace, labels=LABELS),
            "rules": [rule("", "services endpoints pods", "get list watch")],
        }
        yield binding("RoleBinding", NAME, subject, namespace=inputs.namespace, labels=LABELS)
