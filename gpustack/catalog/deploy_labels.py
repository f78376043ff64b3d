"""Which operands a node is to run, by what it serves: the labels nvidia.com/gpu.deploy.*."""

from __future__ import annotations

from typing import Any, Literal

from gpustack.catalog import _data, _versions

PREFIX = "nvidia.com/gpu.deploy."
Serving = Literal["container", "vm-passthrough", "kata", "vm-vgpu", "dra"]


def components(serving: Serving, release: str) -> tuple[str, ...]:
    """The ends of the labels that the operator of RELEASE gives a node that serves SERVING, sorted."""
    facts: dict[str, Any] = _data.load("deploy-labels")
    since: dict[str, str] = facts["since"]
    known = _versions.key(release)
    return tuple(
        sorted(name for name in facts["sets"][serving] if name not in since or _versions.key(since[name]) <= known)
    )
