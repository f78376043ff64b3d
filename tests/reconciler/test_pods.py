"""Which pods count as users of a node's GPUs, and what stands against evicting them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpustack.reconciler.objects import Pod
from gpustack.reconciler.pods import CLIENT, Uses, obstacle
from gpustack.reconciler.policy import PodDeletion

DAEMON = {"kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
REPLICAS = {"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}


def pod(*owners: dict[str, Any], namespace: str = "tenant", **selector: str) -> Pod:
    """A running pod that asks for a GPU."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": namespace, "ownerReferences": list(owners)},
            "spec": {"containers": [container], "nodeSelector": {CLIENT: "true", **selector}},
            "status": {"phase": "Running"},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("found", "uses"),
    [
        (pod(), True),
        (pod(REPLICAS), True),
        (pod(DAEMON), True),
        (pod(REPLICAS, namespace="monitoring"), True),
        (pod(namespace="monitoring"), True),
        (pod(DAEMON, namespace="monitoring", **{CLIENT: "false"}), True),
        (pod(DAEMON, namespace="monitoring"), False),
    ],
    ids=["bare", "replicas", "tenant's daemon", "named, replicas", "named, bare", "named, selects others", "named"],
)
def test_only_daemons_of_named_namespaces_are_left_to_others(found: Pod, uses: bool) -> None:
    """A nodeSelector is anybody's to write. Only a DaemonSet's pods go when its label goes, and only where the policy
    names the namespace is that believed; all others would keep the driver in use."""
    assert Uses("gpu-operator", clients={"monitoring"}).gpu(found) is uses


def test_what_to_do_about_a_daemon() -> None:
    """What is said against a DaemonSet is what would help: the selector where it lacks, and the namespace."""
    text = obstacle(pod(DAEMON), PodDeletion())
    assert "spec.reconciler.clientNamespaces" in text
    assert "nodeSelector" not in text
    bare = msgspec.structs.replace(pod(DAEMON), spec=msgspec.structs.replace(pod(DAEMON).spec, nodeSelector={}))
    assert f'nodeSelector {CLIENT}: "true", and name its namespace' in obstacle(bare, PodDeletion())
