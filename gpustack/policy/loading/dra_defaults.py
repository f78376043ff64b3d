"""What a `gpuCluster` is made of where the policy doesn't say: the release's DRA driver, and the sections beside it.

The operator's chart makes ClusterPolicy and GPUCluster of the same values: `dcgmExporter.env` reaches the exporter of
either. Here a cluster's layers are shared by clusters with and without DRA in the same way, so each field of
`daemonsets`, `dcgm`, `dcgmExporter` and `hostPaths` that `gpuCluster` lacks is taken from the section beside it.

Rejected: defaults of the release alone. Every layer with a toleration or an exporter setting would have to be written
twice, and whoever forgets it gets pods that miss the tainted nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpustack.catalog import releases
from gpustack.model import Path
from gpustack.policy.loading.layers import Part, merge

GPU_CLUSTER = "gpuCluster"
SHARED = ("daemonsets", "dcgm", "dcgmExporter", "hostPaths")
"""Sections that both kinds have. Of hostPaths, GPUCluster has no `rootFS`; a rule speaks up where one is set."""


def gpu_cluster(
    written: dict[str, Any], below: Sequence[Part], user: Sequence[Part], release: str | None
) -> list[Part]:
    """The parts below a `gpuCluster` that the policy has; none where it has none. WRITTEN is what USER merges to.

    BELOW are the defaults that hold for every cluster of the release and platform.
    """
    if not isinstance(written.get(GPU_CLUSTER), dict):
        return []
    parts: list[Part] = []
    if release:
        own = releases.release(release).gpu_cluster
        parts.append(Part("release", f"release {release}", {GPU_CLUSTER: dict(own)}, because=("release",)))
    beside = merge([*below, *user]).spec
    parts += [_inherited(name, beside[name]) for name in SHARED if isinstance(beside.get(name), dict)]
    return parts


def _inherited(name: str, data: dict[str, Any]) -> Part:
    because: Path = (name,)
    taken = {key: value for key, value in data.items() if (name, key) != ("hostPaths", "rootFS")}
    return Part("derived", f"derived from spec.{name}", {GPU_CLUSTER: {name: taken}}, because=because)
