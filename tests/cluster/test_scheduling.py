"""Taints, tolerations and selectors are understood as the scheduler does."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.scheduling import arch_of, excluded, kept_away, labels_of, toleration_of, written
from gpustack.policy.language.node_pools import NodePool, Taint

TAINT = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": ""}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "true"}, False),
        ({"key": "nvidia.com/gpu"}, False),
        ({"key": "sku", "operator": "Exists"}, False),
        ({"value": "present"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], tolerates: bool) -> None:
    """Existence takes any value, equality the same; no effect means every effect (Kubernetes, its documentation)."""
    assert (kept_away([TAINT], [toleration]) == []) is tolerates


def test_several_taints() -> None:
    """Every taint has to be tolerated, but for preferences."""
    taints = [TAINT, Taint(key="a", effect="NoExecute"), Taint(key="b", effect="PreferNoSchedule")]
    assert kept_away(taints, []) == taints[:2]
    assert kept_away(taints, [{"key": "nvidia.com/gpu", "operator": "Exists"}]) == [taints[1]]


def test_numbers() -> None:
    """Lt and Gt compare numbers, since Kubernetes 1.35."""
    taint = Taint(key="sla", value="950", effect="NoSchedule")
    assert kept_away([taint], [{"key": "sla", "operator": "Gt", "value": "900"}]) == []
    assert kept_away([taint], [{"key": "sla", "operator": "Lt", "value": "900"}]) == [taint]
    assert kept_away([taint], [{"key": "sla", "operator": "Gt", "value": "high"}]) == [taint]


def test_how_a_taint_is_written() -> None:
    """As kubectl does, and as the toleration for it."""
    assert written(TAINT) == "nvidia.com/gpu=present:NoSchedule"
    assert toleration_of(TAINT) == "{key: nvidia.com/gpu, operator: Equal, value: present, effect: NoSchedule}"
    assert toleration_of(Taint(key="a", effect="NoExecute")) == "{key: a, operator: Exists, effect: NoExecute}"


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    """A PodSpec with an affinity of alternative TERMS."""
    found = [{"matchExpressions": term} for term in terms]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}
    }


@pytest.mark.parametrize(
    ("pod", "out"),
    [
        ({}, False),
        ({"nodeSelector": {"pool": "a"}}, False),
        ({"nodeSelector": {"pool": "b"}}, True),
        ({"nodeSelector": {"other": "b"}}, False),
        (affinity([{"key": "pool", "operator": "In", "values": ["a", "b"]}]), False),
        (affinity([{"key": "pool", "operator": "In", "values": ["b"]}]), True),
        (affinity([{"key": "pool", "operator": "NotIn", "values": ["a"]}]), True),
        (affinity([{"key": "pool", "operator": "DoesNotExist"}]), True),
        (affinity([{"key": "pool", "operator": "Exists"}]), False),
        (affinity([{"key": "size", "operator": "Gt", "values": ["8"]}]), True),
        (affinity([{"key": "size", "operator": "Lt", "values": ["9"]}]), False),
        (affinity([{"key": "pool", "operator": "In", "values": ["b"]}], [{"key": "x", "operator": "Exists"}]), False),
        ({"nodeSelector": [], "affinity": []}, False),
    ],
)
def test_selectors(pod: dict[str, Any], out: bool) -> None:
    """Only what is known of labels excludes a pod: nodes may have more."""
    assert excluded(pod, {"pool": "a", "size": "8"}) is out


def test_labels_of_a_pool() -> None:
    """What the policy says, and what every node of its architecture has."""
    pool = NodePool.model_validate({"name": "a", "arch": "arm64", "nodeSelector": {"rack": "1"}})
    assert labels_of(pool) == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "rack": "1"}


@pytest.mark.parametrize(
    ("pool", "arch"),
    [
        ({"arch": "amd64"}, "amd64"),
        ({"gpuProduct": "NVIDIA-GB200"}, "arm64"),
        ({"gpuProduct": "NVIDIA-H100-80GB-HBM3"}, None),
        ({"gpuProduct": "NVIDIA-X"}, None),
        ({}, None),
    ],
)
def test_architectures(pool: dict[str, Any], arch: str | None) -> None:
    """What the pool says, else the CPU on the board of its GPU: GB200 comes with Grace, which is arm64."""
    made = NodePool.model_validate({"name": "a", **pool})
    assert arch_of(made) == arch
    assert labels_of(made).get("kubernetes.io/arch") == arch
