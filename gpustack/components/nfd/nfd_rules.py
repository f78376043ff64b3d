"""What node feature discovery may and should conclude: the operator's rule, and whom a finder may speak for."""

from collections.abc import Iterator

from ...model import Body
from ..parts import admission
from ..parts.kube import metadata
from .nfd_inputs import Finders

GROUP, VERSION = "nfd.k8s-sigs.io", "v1alpha1"
MODULES = {"gdrdrv": "gdrcopy", "nvidia_fs": "gds", "nvidia_peermem": "peermem"}
"""Kernel module -> what a node that has loaded it is capable of (the chart's nodefeaturerules.yaml)."""


def kernel_modules() -> Body:
    """The operator's NodeFeatureRule of v26.3 and later: nvidia.com/gds.capable and the like, by the loaded modules."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "NodeFeatureRule",
        "metadata": metadata("nvidia-kernel-modules"),
        "spec": {
            "rules": [
                {
                    "name": f"kernel-module-{module}",
                    "labels": {f"nvidia.com/{capability}.capable": "true"},
                    "matchFeatures": [
                        {"feature": "kernel.loadedmodule", "matchExpressions": {module: {"op": "Exists"}}}
                    ],
                }
                for module, capability in MODULES.items()
            ]
        },
    }


def own_node_only(finders: Finders) -> Iterator[Body]:
    """An admission policy: a NodeFeature object is written by a pod of the node that it is about.

    RBAC can't say it: the worker and GFD may write all NodeFeature objects of the namespace, and the master takes each
    at its word. So one taken-over node could label, or strip of labels, all others.
    """
    who = {**admission.callers(finders.namespace, finders.accounts), "name": "finder"}
    return admission.policy("nodefeatures", finders.mode, who)
