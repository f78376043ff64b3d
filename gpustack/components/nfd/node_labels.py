"""Labels of GPU nodes from rules of node feature discovery, for clusters that do without the reconciler's program.

The labels are those that the operator sets. Discovery sets them anew whenever it looks, so whatever takes one off a
node for a while (driver manager, MIG manager, a person) is overruled: `labelling: nodeFeatureRule` is refused where the
stack does so itself.
"""

from collections.abc import Iterator
from typing import Any

from ...model import Body
from ..component import Component
from ..parts.kube import metadata
from .nfd_rules import GROUP, VERSION
from .node_labels_inputs import LabelRule, NodeLabelsInputs

NAME = "gpustack-node-labels"
GPU: dict[str, Any] = {
    "feature": "pci.device",
    "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}, "class": {"op": "In", "value": ["0300", "0302"]}},
}
"""NVIDIA's VGA and 3D controllers."""


class NodeLabels(Component[NodeLabelsInputs]):
    """One NodeFeatureRule with a rule for each kind of node."""

    stage = "discovery"

    def manifests(self, inputs: NodeLabelsInputs) -> Iterator[Body]:
        yield {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "NodeFeatureRule",
            "metadata": metadata(NAME),
            "spec": {"rules": [rule_of(each) for each in inputs.rules]},
        }


def rule_of(rule: LabelRule) -> Body:
    """RULE in the words of node feature discovery."""
    features = [GPU]
    if rule.system:
        features.append(matching("system.osrelease", rule.system))
    if rule.kernel:
        features.append(matching("kernel.version", {"full": rule.kernel}))
    return {"name": "-".join(rule.pools) or "gpu-nodes", "labels": dict(rule.labels), "matchFeatures": features}


def matching(feature: str, wanted: dict[str, str]) -> dict[str, Any]:
    """The term that FEATURE has the values WANTED."""
    expressions = {name: {"op": "In", "value": [value]} for name, value in wanted.items()}
    return {"feature": feature, "matchExpressions": expressions}
