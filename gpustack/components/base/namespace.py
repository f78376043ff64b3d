"""The stack's namespace: Pod Security and monitoring labels, and the quota without which GKE admits no critical pod.

The operator labels a namespace that somebody else made (operator.md 2.5); here it is part of the render, so that the
first sync of an empty cluster works.
"""

from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.template import template
from .base_inputs import NamespaceInputs


class Namespace(Component[NamespaceInputs]):
    """The namespace object and what must exist in it before the first pod."""

    stage = "base"

    def manifests(self, inputs: NamespaceInputs) -> Iterator[Body]:
        modes = ("audit", "enforce", "warn") if inputs.privileged else ()
        labels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in modes}
        if inputs.monitored:
            labels["openshift.io/cluster-monitoring"] = "true"
        if inputs.ignored:
            labels["admission.gatekeeper.sh/ignore"] = "gpustack"
        if inputs.admin_access:
            labels["resource.kubernetes.io/admin-access"] = "true"
        yield template(__file__, "namespace", name=inputs.name, labels=labels)
        if inputs.quota:
            yield template(__file__, "quota", name=inputs.name)
