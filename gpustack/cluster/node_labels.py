"""Which nodes a pool is, and the labels that they get: what the operator sets, and what the pool adds.

The selection is made of labels that a node has before anything of NVIDIA's runs there (reconciler.md A3): the pool's
own, and those of node feature discovery for the operating system, as driver DaemonSets select by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog import deploy_labels
from ..catalog.oses import UnknownOS, os_id, os_tag
from ..catalog.releases import release
from .mig_layouts import manager_runs
from .ownership import KERNEL, OS_RELEASE, OWNER, PRESENT, container_drivers, image_selector, in_charge, owners
from .workloads import Workload, default_workload, kata, sandbox, workload

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec

WORKLOAD = "nvidia.com/gpu.workload.config"
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
VGPU_CONFIG = "nvidia.com/vgpu.config"


def selection(spec: ClusterPolicySpec, pool: NodePool) -> dict[str, str]:
    """The labels of the nodes of POOL."""
    found = {**pool.nodeSelector, **os_selector(pool.os or "", spec.release)}
    if pool.kernel:
        found[KERNEL] = pool.kernel
    if pool.ostreeVersion:
        found[f"{OS_RELEASE}OSTREE_VERSION"] = pool.ostreeVersion
    return found


def os_selector(os: str, release: str) -> dict[str, str]:
    """NFD's labels of all nodes whose driver image is the one for OS; none where there is no such system."""
    try:
        return image_selector(*os_id(os), os_tag(os, release))
    except UnknownOS:
        return {}


def apart(first: dict[str, str], second: dict[str, str]) -> bool:
    """Whether no node can match both selections."""
    return any(second.get(key, value) != value for key, value in first.items())


def serves(spec: ClusterPolicySpec, pool: NodePool | None) -> Workload:
    """What the nodes of POOL serve, or those of a cluster without pools."""
    if pool is not None:
        return workload(spec, pool)
    return default_workload(spec) if sandbox(spec) else "container"


def components(spec: ClusterPolicySpec, pool: NodePool | None) -> tuple[str, ...]:
    """The ends of the labels nvidia.com/gpu.deploy.* of these nodes, whatever is enabled (reconciler.md L14)."""
    serving = serves(spec, pool)
    if spec.gpuCluster is not None:
        return deploy_labels.components("dra", spec.release)
    if serving == "vm-passthrough" and kata(spec):
        return deploy_labels.components("kata", spec.release)
    return deploy_labels.components(serving, spec.release)


def labels(spec: ClusterPolicySpec, pool: NodePool | None) -> dict[str, str]:
    """The further labels of these nodes: which configuration of a component is theirs, and which driver.

    The MIG layout is not among them: GPUs are cut when their node is empty, and not when a label is due.
    """
    found: dict[str, str] = {}
    owner = driver_of(spec, pool)
    if pool is not None and spec.gpuCluster is None:
        if sandbox(spec):
            found[WORKLOAD] = workload(spec, pool)
        if workload(spec, pool) == "vm-vgpu" and pool.vgpu.config:
            found[VGPU_CONFIG] = pool.vgpu.config
        if spec.devicePlugin.enabled and (pool.sharing.timeSlicing or pool.sharing.mps):
            found[PLUGIN_CONFIG] = pool.name
    return {**found, **({OWNER: owner} if owner else {})}


def driver_of(spec: ClusterPolicySpec, pool: NodePool | None) -> str:
    """What the label says that assigns a driver to these nodes; "" where there is nothing to choose from."""
    if in_charge(spec):
        if pool is None or not release(spec.release).traits.driver_owner_label:
            return ""
        index = owners(spec)[next(at for at, other in enumerate(spec.nodePools) if other is pool)]
        return spec.drivers[index].name if index is not None else ""
    mine = pool is not None and pool.driver is not None and workload(spec, pool) == "container"
    return pool.name if pool is not None and mine and spec.driver.enabled else ""


def all_labels(spec: ClusterPolicySpec, pool: NodePool | None) -> dict[str, str]:
    """Every label of these nodes that does not depend on what their GPUs can do."""
    deploy = {f"{deploy_labels.PREFIX}{name}": "true" for name in components(spec, pool) if name != "mig-manager"}
    return {PRESENT: "true", **deploy, **labels(spec, pool)}


def pausing(spec: ClusterPolicySpec) -> list[tuple[str, str]]:
    """What takes labels off nodes for a while and sets them again: its section, and what it is called."""
    found = []
    if container_drivers(spec) or (in_charge(spec) and spec.drivers):
        found.append(("drivers" if in_charge(spec) else "driver", "the driver manager"))
    if manager_runs(spec) and spec.migManager.enabled:
        found.append(("migManager", "the MIG manager"))
    if sandbox(spec):
        found.append(("sandboxWorkloads", "the managers of vfio-pci and vGPU"))
    return found
