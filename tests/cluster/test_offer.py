"""What a cluster offers to pods follows from its policy."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog.kubernetes import minor
from gpustack.cluster.resolve import resolve
from gpustack.components import RuntimeClasses
from gpustack.components.toolkit.toolkit_inputs import runtime_classes
from tests.components.common import render, spec

H100 = "NVIDIA-H100-80GB-HBM3"
POOL = {"name": "a", "os": "ubuntu22.04", "gpuProduct": H100, "gpusPerNode": 8}


def test_resources_taints_and_labels() -> None:
    """Numbers per node, taints, the policy's labels and those of GPU feature discovery that are sure."""
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    (pool,) = resolve(spec(nodePools=[{**POOL, "taints": [taint], "nodeSelector": {"rack": "1"}}])).offer.pools
    assert pool.resources == {"nvidia.com/gpu": 8}
    assert [found.key for found in pool.taints] == ["nvidia.com/gpu"]
    assert pool.labels["rack"] == frozenset(["1"])
    assert pool.labels["nvidia.com/gpu.product"] == frozenset([H100])
    assert pool.labels["nvidia.com/gpu.compute.major"] == frozenset(["9"])
    assert pool.labels["nvidia.com/gpu.sharing-strategy"] == frozenset(["none"])
    assert "nvidia.com/gpu.memory" not in pool.labels


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ({}, ("", False)),
        ({"timeSlicing": {"replicas": 2}}, ("timeSlicing", False)),
        (
            {"timeSlicing": {"replicas": 2, "failRequestsGreaterThanOne": True}},
            ("timeSlicing", True),
        ),
        ({"mps": {"replicas": 2}}, ("mps", True)),
        ({"mps": {"replicas": 2, "failRequestsGreaterThanOne": False}}, ("mps", False)),
    ],
)
def test_sharing(sharing: dict[str, Any], expected: tuple[str, bool]) -> None:
    """More than one share is refused under mps unless the policy says otherwise (plugin-config.yaml)."""
    (pool,) = resolve(spec(nodePools=[{**POOL, "sharing": sharing}])).offer.pools
    assert (pool.sharing.kind, pool.sharing.refuses_more) == expected
    kind = next(iter(sharing), "")
    if kind:
        text = f"version: v1\nsharing:\n  {kind}: {{resources: [{{name: nvidia.com/gpu, replicas: 2}}]"
        option = sharing[kind].get("failRequestsGreaterThanOne")
        text += f", failRequestsGreaterThanOne: {str(option).lower()}}}\n" if option is not None else "}\n"
        config = {"name": "c", "default": "one", "data": {"one": text}}
        (pool,) = resolve(spec(nodePools=[POOL], devicePlugin={"config": config})).offer.pools
        assert (pool.sharing.kind, pool.sharing.refuses_more) == expected
        assert pool.resources == {"nvidia.com/gpu": 16}


def test_what_nobody_knows() -> None:
    """A pool without a number of GPUs may have any; one whose resources nobody knows may have everything."""
    unknown = {"name": "b", "os": "ubuntu22.04", "sharing": {"mig": {"config": "mine"}}}
    settings: dict[str, Any] = {"migManager": {"config": {"name": "elsewhere"}}, "mig": {"strategy": "mixed"}}
    first, second = resolve(spec(nodePools=[{"name": "a", "os": "ubuntu22.04"}, unknown], **settings)).offer.pools
    assert first.resources == {"nvidia.com/gpu": None}
    assert first.has({"nvidia.com/gpu": 99})
    assert not first.has({"nvidia.com/mig-1g.10gb": 1})
    assert second.resources is None
    assert second.has({"nvidia.com/mig-1g.10gb": 1})


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"cdi": {"enabled": False}},
        {"cdi": {"enabled": True, "nriPluginEnabled": True}},
        {"operator": {"runtimeClass": "gpu"}},
        {"operator": {"runtimeClass": "nvidia-cdi"}},
    ],
)
def test_runtime_classes_are_those_that_are_rendered(sections: dict[str, Any]) -> None:
    """The names are those of the objects, whatever the policy says."""
    policy = spec(**sections)
    inputs = runtime_classes(resolve(policy))
    rendered = [key.partition("/")[2] for key in render(RuntimeClasses, inputs)] if inputs else []
    assert set(resolve(policy).runtime_classes) == set(rendered)
    assert minor(policy.cluster.kubernetesVersion) == "1.34"


def test_runtime_classes_of_others() -> None:
    """What the policy brings along or counts on is there as well."""
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}
    found = resolve(spec(extraObjects=[body], references=[{"kind": "RuntimeClass", "name": "kata"}])).runtime_classes
    assert {"gvisor", "kata", "nvidia"} <= set(found)
