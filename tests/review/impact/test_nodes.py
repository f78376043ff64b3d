"""On how many nodes the pods of a DaemonSet are: those that they can be on, by what a policy says of its pools."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.review.impact import nodes
from tests.review.impact.test_rules import spec

DEPLOY = "nvidia.com/gpu.deploy."
GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
POOLS: dict[str, dict[str, Any]] = {
    "a100": {"count": 1, "gpuProduct": "NVIDIA-A100-SXM4-80GB"},
    "l4": {"count": 2, "gpuProduct": "NVIDIA-L4", "sharing": {"mps": {"replicas": 2}}},
    "unknown": {"count": 4},
    "passthrough": {"count": 8, "gpuProduct": "NVIDIA-L40S", "workload": "vm-passthrough"},
    "vgpu": {"count": 16, "gpuProduct": "NVIDIA-A40", "workload": "vm-vgpu"},
    "tainted": {"count": 32, "gpuProduct": "NVIDIA-L4", "taints": [{**GPU, "key": "example.com/team"}]},
}


def counted(selector: dict[str, str], **pod: Any) -> tuple[int, int] | None:
    """On how many nodes of POOLS the pods of a DaemonSet with SELECTOR are."""
    pools = [{"name": name, "nodeSelector": {"pool": name}, **said} for name, said in POOLS.items()]
    sandbox = {"enabled": True, "mode": "kubevirt", "defaultWorkload": "container"}
    policy = spec("lab-a100", nodePools=pools, sandboxWorkloads=sandbox)
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    body = {"spec": {"template": {"spec": {"nodeSelector": selector, "tolerations": tolerations, **pod}}}}
    return nodes.of(policy, body)


@pytest.mark.parametrize(
    ("selector", "number"),
    [
        ({f"{DEPLOY}device-plugin": "true"}, 1 + 2 + 4),
        ({f"{DEPLOY}mig-manager": "true"}, 1 + 4),
        ({f"{DEPLOY}device-plugin": "true", "nvidia.com/mps.capable": "true"}, 2),
        ({f"{DEPLOY}vfio-manager": "true"}, 8),
        ({f"{DEPLOY}sandbox-device-plugin": "true"}, 8 + 16),
        ({f"{DEPLOY}vgpu-device-manager": "true"}, 16),
        ({f"{DEPLOY}kata-sandbox-device-plugin": "true"}, 0),
        ({f"{DEPLOY}device-plugin": "true", "kubernetes.io/os": "windows"}, 0),
    ],
)
def test_where_pods_of_operands_are(selector: dict[str, str], number: int) -> None:
    """By the labels that each workload gets, the MIG manager's for GPUs with MIG alone (operator.md 2.2), and GFD's for
    MPS (7.5). What isn't known of a pool leaves its nodes in; a taint that isn't tolerated takes them out."""
    assert counted(selector) == (number, number)


def test_where_pods_that_tolerate_all_are() -> None:
    """The taints of a pool keep away what doesn't tolerate them, and an affinity what it excludes."""
    plugin = {f"{DEPLOY}device-plugin": "true"}
    every = {"tolerations": [{"operator": "Exists"}]}
    assert counted(plugin, **every) == (39, 39)
    terms = [{"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a100"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert counted(plugin, **every, affinity=affinity) == (38, 38)


def test_drivers_are_not_on_nodes_that_bring_theirs() -> None:
    """None of `drivers` selects pool b, so no driver pod is for its nodes (operator.md 10.1)."""
    pools = [{"name": name, "count": 3, "nodeSelector": {"pool": name}} for name in "ab"]
    drivers = [{"name": "one", "nodeSelector": {"pool": "a"}}]
    policy = spec("lab-a100", nodePools=pools, driver={"useNvidiaDriverCRD": True}, drivers=drivers)
    body = {"spec": {"template": {"spec": {"nodeSelector": {f"{DEPLOY}driver": "true"}}}}}
    assert nodes.of(policy, body) == (3, 3)
