"""What the nodes of a pool serve: containers, virtual machines with whole GPUs, or virtual machines with vGPUs.

The label nvidia.com/gpu.workload.config of a node decides in the cluster, and `sandboxWorkloads.defaultWorkload` for
nodes without it (operator.md 2.2). Here the pool says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..catalog import vgpu
from ..catalog.releases import release

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec

Workload = Literal["container", "vm-passthrough", "vm-vgpu"]
DEFAULT_VGPU_CONFIG = "default-vgpu-devices-config"
"""The ConfigMap with the sets of vGPU devices that come with a release."""


def sandbox(spec: ClusterPolicySpec) -> bool:
    """Whether nodes may serve virtual machines at all."""
    return bool(spec.sandboxWorkloads.enabled)


def kata(spec: ClusterPolicySpec) -> bool:
    """Whether nodes for passthrough serve Kata containers and not KubeVirt; releases before v26.3 know no such mode."""
    return spec.sandboxWorkloads.mode == "kata" and release(spec.release).traits.kata_mode


def offered_to_kubevirt(spec: ClusterPolicySpec) -> bool:
    """Whether our device plugin for KubeVirt runs, which offers every NVIDIA device that is bound to vfio-pci, and
    every vGPU. KubeVirt's own plugin must then offer none of them.
    """
    return sandbox(spec) and bool(spec.sandboxDevicePlugin.enabled) and not kata(spec)


def workload(spec: ClusterPolicySpec, pool: NodePool) -> Workload:
    """What the nodes of POOL serve; containers, whatever it says, where nodes may serve nothing else."""
    if not sandbox(spec):
        return "container"
    return pool.workload or default_workload(spec)


def default_workload(spec: ClusterPolicySpec) -> Workload:
    """What nodes serve that nobody has labelled."""
    return spec.sandboxWorkloads.defaultWorkload or "container"


def serving(spec: ClusterPolicySpec, what: Workload) -> list[int]:
    """The positions in `nodePools` of the pools that serve WHAT, in policy order."""
    return [index for index, pool in enumerate(spec.nodePools) if workload(spec, pool) == what]


def vgpu_set(spec: ClusterPolicySpec, pool: NodePool) -> str:
    """The name of the set of vGPU devices that nodes of POOL get."""
    return pool.vgpu.config or spec.vgpuDeviceManager.config.default


def vgpu_sets(spec: ClusterPolicySpec) -> Mapping[str, Any] | None:
    """All sets of vGPU devices by name, or None where their text is not in the policy."""
    config = spec.vgpuDeviceManager.config
    if config.data and config.create:
        return vgpu.parsed(config.data.get("config.yaml", ""))
    name = config.name or DEFAULT_VGPU_CONFIG
    for body in spec.extraObjects:
        if body["kind"] == "ConfigMap" and body["metadata"]["name"] == name:
            return vgpu.parsed(str(body.get("data", {}).get("config.yaml", "")))
    return vgpu.default_config(spec.release) if name == DEFAULT_VGPU_CONFIG else None
