"""OpenShift's own Prometheus may find the stack's exporters (operator.md 6, 9.3).

It watches namespaces with the label openshift.io/cluster-monitoring (namespace.py sets it), and needs a right in each
to look up what is behind a ServiceMonitor: else targets stay empty, silently (bug-reports.md B24).
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.kube import grant, rights
from .monitoring_inputs import OpenShiftMonitoringInputs

NAME = "prometheus-k8s"
"""The ServiceAccount of OpenShift's Prometheus, and by OpenShift's custom the roles that others give it."""


class OpenShiftMonitoring(Component[OpenShiftMonitoringInputs]):
    """A Role for OpenShift's Prometheus in the stack's namespace."""

    stage = "monitoring"

    def manifests(self, inputs: OpenShiftMonitoringInputs) -> Iterator[Body]:
        home, labels = "openshift-monitoring", {"app": "gpu-operator"}
        yield from grant(NAME, NAME, inputs.namespace, home=home, labels=labels, **rights(NAME))
