"""Policies with virtual machines, for tests."""

from __future__ import annotations

from typing import Any

from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import spec

POOLS: list[dict[str, Any]] = [
    {"name": "containers", "os": "ubuntu22.04"},
    {"name": "whole", "workload": "vm-passthrough", "gpuProduct": "NVIDIA-L40S"},
    {"name": "parts", "workload": "vm-vgpu", "os": "ubuntu24.04", "gpuProduct": "NVIDIA-A10"},
]
"""One pool per workload; the one for passthrough needs no OS."""
MANAGER: dict[str, Any] = {"enabled": True, "repository": "registry.example", "version": "580.1"}


def machines(**sections: Any) -> ClusterPolicySpec:
    """A spec whose nodes may serve virtual machines, with SECTIONS besides; `sandboxWorkloads` adds to being on."""
    mode = {"enabled": True, **sections.pop("sandboxWorkloads", {})}
    return spec(**{"nodePools": POOLS, "sandboxWorkloads": mode, **sections})
