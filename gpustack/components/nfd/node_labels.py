"""Labels of GPU nodes from rules of node feature discovery, for clusters that do without the reconciler's program.

The labels are those that the operator sets. Discovery sets them anew whenever it looks, so whatever takes one off a
node for a while (driver manager, MIG manager, a person) is overruled: `labelling: nodeFeatureRule` is refused where the
stack does so itself.
"""

from collections.abc import Iterator
from typing import Any

from ...model import Body
from ..component import Component
from ..parts.kube import object_of
from ..parts.pod import sparse
from .nfd_inputs import LabelRule, NodeLabelsInputs

GPU: dict[str, Any] = {
    "feature": "pci.device",
    "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}, "class": {"op": "In", "value": ["0300", "0302"]}},
}
"""NVIDIA's VGA and 3D controllers."""


class NodeLabels(Component[NodeLabelsInputs]):
    """One NodeFeatureRule with a rule for each kind of node."""

    stage = "discovery"

    def manifests(self, inputs: NodeLabelsInputs) -> Iterator[Body]:
        spec = {"rules": [rule_of(each) for each in inputs.rules]}
        yield object_of("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "gpustack-node-labels", spec)


def rule_of(rule: LabelRule) -> Body:
    """RULE in the words of node feature discovery."""
    found = {"system.osrelease": rule.system, "kernel.version": sparse(full=rule.kernel)}
    features = [GPU]
    for feature, wanted in found.items():
        if wanted:
            expressions = {name: {"op": "In", "value": [value]} for name, value in wanted.items()}
            features.append({"feature": feature, "matchExpressions": expressions})
    name = "-".join(rule.pools) or "gpu-nodes"
    return {"name": name, "labels": dict(rule.labels), "matchFeatures": features}
