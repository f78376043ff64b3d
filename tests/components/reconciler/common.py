"""What the reconciler's components render of a policy."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.components import NodeLabels, NodePolicies, Reconciler
from gpustack.components.nfd import nfd_inputs
from gpustack.components.reconciler import node_policies_inputs as policies_inputs
from gpustack.components.reconciler import reconciler_inputs as program_inputs
from gpustack.model import Body
from tests.components.common import render, spec

IMAGE = "registry.example/gpustack-reconciler:1"
POOL: dict[str, Any] = {"name": "a", "os": "ubuntu22.04"}


def policy(reconciler: dict[str, Any] | None = None, release: str = "v26.7.0", **sections: Any) -> Any:
    """The spec of a policy with a reconciler that has an image and what RECONCILER says."""
    return spec(release, **{"nodePools": [POOL], **sections, "reconciler": {"image": IMAGE, **(reconciler or {})}})


def program(reconciler: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """The objects of the program."""
    found = program_inputs.from_cluster(resolve(policy(reconciler, **sections)))
    return render(Reconciler, found) if found else {}


def node_policies(reconciler: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """The NodePolicies and their CRD."""
    found = policies_inputs.from_cluster(resolve(policy(reconciler, **sections)))
    return render(NodePolicies, found) if found else {}


def specs(reconciler: dict[str, Any] | None = None, **sections: Any) -> dict[str, Body]:
    """The specs of the NodePolicies by name."""
    bodies = node_policies(reconciler, **sections)
    return {key.partition("/")[2]: body["spec"] for key, body in bodies.items() if body["kind"] == "NodePolicy"}


def label_rules(**sections: Any) -> list[Body]:
    """The rules by which node feature discovery labels nodes that bring their driver."""
    off = {"driver": {"enabled": False}, "migManager": {"enabled": False}}
    by_discovery = spec(**{"nodePools": [POOL], **off, **sections, "reconciler": {"labelling": "nodeFeatureRule"}})
    found = nfd_inputs.node_labels(resolve(by_discovery))
    if found is None:
        return []
    rules: list[Body] = render(NodeLabels, found)["NodeFeatureRule/gpustack-node-labels"]["spec"]["rules"]
    return rules


def told_apart(written: dict[str, Any]) -> dict[str, Any]:
    """The spec of a measured case, with a label for the nodes of each pool where pools differ in more than their GPUs:
    the cases know no labels of pools, and a node can be of one pool only.
    """
    pools = written.get("nodePools", [])
    if not any("workload" in pool or pool.get("sharing") or pool.get("driver") for pool in pools):
        return written
    return {**written, "nodePools": [{**pool, "nodeSelector": {"pool": pool["name"]}} for pool in pools]}
