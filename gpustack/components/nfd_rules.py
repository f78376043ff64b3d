"""What node feature discovery may and should conclude: the operator's rule, and whom a finder may speak for."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Body
from .gfd import ACCOUNT
from .inputs.nfd import Installation
from .kube import metadata

GROUP, VERSION = "nfd.k8s-sigs.io", "v1alpha1"
MODULES = {"gdrdrv": "gdrcopy", "nvidia_fs": "gds", "nvidia_peermem": "peermem"}
"""Kernel module -> what a node that has loaded it is capable of (releases.yaml node_feature_rule_labels)."""

POLICY = "gpustack-nodefeatures-of-own-node"
NODE_LABEL = "nfd.node.kubernetes.io/node-name"
"""The label of a NodeFeature object that says which node it is about: the master labels that node."""
TOKEN_NODE = "authentication.kubernetes.io/node-name"  # noqa: S105 - the name of a fact about a token, no password
"""Where the API server puts the node of the pod that a token was made for."""


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


def own_node_only(found: Installation) -> Iterator[Body]:
    """An admission policy: a NodeFeature object is written by a pod of the node that it is about.

    RBAC can't say it: the worker and GFD may write all NodeFeature objects of the namespace, and the master takes each
    at its word. So one taken-over node could label, or strip of labels, all others. An object that is replaced must be
    the own node's too. A token that names no node is refused; since Kubernetes 1.30 every pod's token names one.
    """
    accounts = [f"system:serviceaccount:{found.namespace}:{name}" for name in (f"{found.name}-worker", ACCOUNT)]
    about = f"metadata.?labels[?'{NODE_LABEL}']"
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata(POLICY),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["nodefeatures"],
                    }
                ]
            },
            "matchConditions": [{"name": "finder", "expression": f"request.userInfo.username in {accounts}"}],
            "variables": [
                {"name": "here", "expression": f"request.userInfo.?extra[?'{TOKEN_NODE}'].orValue([])"},
                {"name": "node", "expression": f"object.{about}.orValue('')"},
                {"name": "before", "expression": f"oldObject == null ? '' : oldObject.{about}.orValue('')"},
            ],
            "validations": [
                {
                    "expression": "variables.here == [variables.node] && variables.before in ['', variables.node]",
                    "message": "a pod may write NodeFeature objects about its own node only",
                }
            ],
        },
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata(POLICY),
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }
