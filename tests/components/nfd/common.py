"""Rendering node feature discovery for tests, and finding things in it."""

from __future__ import annotations

from typing import Any

import yaml

from gpustack.cluster.resolve import resolve
from gpustack.components import NodeFeatureDiscovery
from gpustack.components.nfd.nfd_inputs import NfdInputs
from gpustack.components.nfd.nfd_inputs import nfd as from_cluster
from gpustack.model import Body
from tests.components import common

NAME = "gpu-operator-node-feature-discovery"
ROLES = {"master": f"Deployment/{NAME}-master", "worker": f"DaemonSet/{NAME}-worker", "gc": f"Deployment/{NAME}-gc"}


def inputs(nfd: dict[str, Any] | None = None, **sections: Any) -> NfdInputs | None:
    """The inputs of a policy whose `nfd` is NFD."""
    return from_cluster(resolve(common.spec(nfd=nfd or {}, **sections)))


def rendered(nfd: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """All objects of a policy whose `nfd` is NFD."""
    found = inputs(nfd, **sections)
    return common.render(NodeFeatureDiscovery, found) if found else {}


def pod(bodies: dict[str, Body], role: str) -> Body:
    """The pod spec of ROLE."""
    found: Body = bodies[ROLES[role]]["spec"]["template"]["spec"]
    return found


def config(bodies: dict[str, Body], role: str) -> Any:
    """The configuration file that ROLE reads, as data."""
    return yaml.safe_load(bodies[f"ConfigMap/{NAME}-{role}-conf"]["data"][f"nfd-{role}.conf"])


def rule_object(**labels: str) -> Body:
    """A NodeFeatureRule of the policy's own that sets LABELS ("example_com__a" for example.com/a)."""
    keys = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": "own"},
        "spec": {"rules": [{"name": "r", "labels": keys}]},
    }
