"""The section `kubevirt`, and what a pool says about its vGPUs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gpustack.cluster.resolve import resolve
from gpustack.policy.language.sandbox import KubeVirt
from tests.components.common import spec

WORKLOADS = ["container", "vm-passthrough", "vm-vgpu"]


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ({"pciDevices": [{"selector": "10de:2236", "resourceName": "a.b/c"}]}, "capitals"),
        ({"pciDevices": [{"selector": "2236", "resourceName": "a.b/c"}]}, "vendor"),
        ({"pciDevices": [{"selector": "10DE:2236", "resourceName": "A10"}]}, "domain"),
        ({"mediatedDevices": [{"name": "NVIDIA_A10-8Q", "resourceName": "a.b/c"}]}, "blanks"),
        ({"vgpuNames": {"A10 8Q": "NVIDIA A10-8Q"}}, "vGPU type"),
        ({"featureGates": ["Host Devices"]}, "feature gate"),
    ],
)
def test_refused(section: dict[str, Any], word: str) -> None:
    """What KubeVirt would take without a word and never match is refused, and the form is said."""
    with pytest.raises(ValidationError) as refused:
        KubeVirt.model_validate(section)
    (error,) = refused.value.errors()
    assert word in f"{error['msg']} {error['ctx']}"


def test_accepted() -> None:
    """Empty, and with all that can be said."""
    assert KubeVirt.model_validate({}).featureGates is None
    section = {
        "target": "hyperconverged",
        "name": "kubevirt-hyperconverged",
        "namespace": "openshift-cnv",
        "pciDevices": [{"selector": "10DE:2236", "resourceName": "nvidia.com/GA102GL_A10"}],
        "mediatedDevices": [{"name": "NVIDIA A10-8Q", "resourceName": "nvidia.com/NVIDIA_A10-8Q"}],
        "vgpuNames": {"A100-1-5CME": "NVIDIA A100-1-5CME"},
    }
    assert KubeVirt.model_validate(section).model_dump(exclude_none=True, exclude_defaults=True) == section


@given(st.lists(st.sampled_from([*WORKLOADS, None]), max_size=5), st.sampled_from([*WORKLOADS, None]), st.booleans())
def test_every_pool_serves_one_thing(pools: list[str | None], default: str | None, on: bool) -> None:
    """A pool's own word, else the default, else containers; containers alone where virtual machines are off (2.2)."""
    policy = spec(
        sandboxWorkloads={"enabled": on, **({"defaultWorkload": default} if default else {})},
        nodePools=[{"name": f"p{i}", **({"workload": each} if each else {})} for i, each in enumerate(pools)],
    )
    found = [pool.workload for pool in resolve(policy).pools]
    assert found == ([each or default or "container" for each in pools] if on else ["container"] * len(pools))
    by_kind = [resolve(policy).serving(what) for what in ("container", "vm-passthrough", "vm-vgpu")]
    assert sorted(index for kind in by_kind for index in kind) == list(range(len(pools)))
