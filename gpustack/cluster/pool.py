"""A group of nodes: what the policy says of it, and all that follows from that.

`resolve.py` says why everybody asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ..api import keys
from ..catalog import node_labels as known
from ..catalog import oses
from ..catalog.gpus import Product
from ..policy.configurations.plugin_text import PluginConfig
from . import drivers, mig_layouts, node_labels, ownership, plugin_sharing, scheduling
from .budgets import Budget, budget
from .capacity import PoolCapacity, capacity
from .offer import PoolOffer, pool_offer
from .plugin_sharing import PoolSharing

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec
    from .resolve import Cluster

Workload = Literal["container", "vm-passthrough", "vm-vgpu"]
"""What nodes serve: containers, virtual machines with whole GPUs, or virtual machines with vGPUs."""
Engine = Literal["containerd", "cri-o", "docker"]
ENGINES: dict[str, Engine] = {"containerd": "containerd", "cri-o": "cri-o", "crio": "cri-o", "docker": "docker"}
"""Container runtimes, by what a node's containerRuntimeVersion begins with."""
EVERYWHERE = "all-gpu-nodes"
"""What the nodes of a cluster without pools are called together."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A node pool of CLUSTER, number INDEX, as the policy SAID it; without an index all nodes with a GPU, of which
    nothing is known. `said` is for fields that mean what they say."""

    cluster: Cluster
    index: int | None
    said: NodePool

    @property
    def spec(self) -> ClusterPolicySpec:
        """The effective spec."""
        return self.cluster.spec

    @property
    def name(self) -> str:
        return self.said.name

    @property
    def path(self) -> str:
        """Where the policy describes these nodes."""
        return "spec.nodePools" if self.index is None else f"spec.nodePools[{self.index}]"

    @cached_property
    def product(self) -> Product | None:
        """The GPU of the nodes, None where the policy doesn't say it, or the catalogue doesn't know it."""
        return mig_layouts.product_of(self.said)

    @cached_property
    def system(self) -> oses.OperatingSystem | None:
        """The operating system, None where the policy doesn't say it, or the catalogue doesn't know it."""
        try:
            return oses.operating_system(self.said.os) if self.said.os else None
        except oses.UnknownOS:
            return None

    @property
    def arch(self) -> str | None:
        """The architecture, as the pool says it or its GPU implies it; None where neither does."""
        return scheduling.arch_of(self.said)

    @property
    def runtime(self) -> str:
        """The container runtime, with its version where that is said ("containerd://1.7.27")."""
        return self.said.containerRuntime or self.spec.cluster.containerRuntime

    @property
    def engine(self) -> Engine:
        """Which container runtime that is: the platform's, where that has one whatever is said."""
        runtime = self.cluster.platform.container_runtime or self.runtime
        return ENGINES.get(runtime.partition(":")[0].lower(), "containerd")

    @cached_property
    def workload(self) -> Workload:
        """What the nodes serve, in the cluster by their label nvidia.com/gpu.workload.config (operator.md 2.2)."""
        return (self.said.workload or self.cluster.default_workload) if self.cluster.sandbox else "container"

    @cached_property
    def driver(self) -> drivers.NodeDriver | None:
        """The driver that the nodes get from this policy, and why. None where they bring it, and for all as one."""
        return None if self.index is None else drivers.driver_of(self)

    @cached_property
    def runs(self) -> drivers.NodeDriver | None:
        """The driver that the nodes run: `driver`, or the one that they bring, where the policy says its version."""
        return self.driver or (None if self.index is None else drivers.brought(self))

    @cached_property
    def claims(self) -> list[int]:
        """The positions in `drivers` of all that select the nodes, less the default one; a rule refuses two."""
        others = [each for each in enumerate(self.spec.drivers) if not ownership.is_default(self.spec, each[1])]
        return [number for number, driver in others if driver.nodeSelector.items() <= self.known_labels.items()]

    @cached_property
    def layout(self) -> mig_layouts.Choice | None:
        """The MIG layout of the nodes, None where GPUs stay whole."""
        return mig_layouts.choice(self.path, self.said, self.cluster.layouts)

    @cached_property
    def groups(self) -> list[mig_layouts.Group] | None:
        """The GPUs of a node by how they are cut, None where that isn't known."""
        if self.layout is None:
            return [mig_layouts.Group(None, None)]
        return None if self.layout.elements is None else mig_layouts.groups(self.layout.elements, self.said)

    @property
    def handed_out(self) -> int:
        """How many sevenths of a GPU its instances are at least; all of them where it stays whole or nobody knows."""
        cut = [group.layout for group in self.groups or () if group.layout is not None]
        return min((mig_layouts.sevenths(layout) for layout in cut), default=7)

    @cached_property
    def sharing(self) -> PoolSharing:
        """How pods share the nodes' GPUs. UnknownSharing where that can't be said."""
        return plugin_sharing.pool_sharing(self.spec, self.said)

    @property
    def plugin_config(self) -> PluginConfig | None:
        """The device plugin's configuration that the nodes choose. UnknownSharing where that can't be said."""
        return plugin_sharing.configuration(self.spec, self.said)

    @property
    def vgpu_set(self) -> str:
        """The name of the set of vGPU devices that the nodes get."""
        return self.said.vgpu.config or self.spec.vgpuDeviceManager.config.default

    @cached_property
    def selection(self) -> dict[str, str]:
        """Labels by which the nodes are selected, all of them there before anything of NVIDIA's runs."""
        return node_labels.selection(self.spec, self.said)

    @cached_property
    def known_labels(self) -> dict[str, str]:
        """All labels that the nodes have as far as the policy says it, those of discovery among them."""
        return ownership.node_labels(self.spec, self.said)

    @property
    def components(self) -> tuple[str, ...]:
        """The ends of the nodes' labels nvidia.com/gpu.deploy.*, whatever is enabled (reconciler.md L14)."""
        serving: known.Serving = "dra" if self.cluster.dra else self.workload
        if serving == "vm-passthrough" and self.cluster.kata:
            serving = "kata"
        return known.components(serving, self.spec.release)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Labels that say which configuration of a component is the nodes', and which driver.

        The MIG layout is not among them: GPUs are cut when their node is empty, and not when a label is due."""
        said, further = self.said, dict[str, str]()
        if self.index is not None and not self.cluster.dra:
            if self.cluster.sandbox:
                further[keys.WORKLOAD] = self.workload
            if self.workload == "vm-vgpu" and said.vgpu.config:
                further[keys.VGPU_CONFIG] = said.vgpu.config
            if self.spec.devicePlugin.enabled and (said.sharing.timeSlicing or said.sharing.mps):
                further[keys.PLUGIN_CONFIG] = self.name
        owner = self.driver.owner if self.driver else ""
        return {**further, **({keys.DRIVER_OWNER: owner} if owner else {})}

    @property
    def all_labels(self) -> dict[str, str]:
        """Every label that the nodes get and that does not depend on what their GPUs can do."""
        deploy = {f"{known.DEPLOY}{name}": "true" for name in self.components if name != "mig-manager"}
        return {keys.PRESENT: "true", **deploy, **self.labels}

    @cached_property
    def budget(self) -> Budget:
        """How fast the nodes may be taken out of service."""
        return budget(self)

    @cached_property
    def capacity(self) -> PoolCapacity:
        """What the nodes advertise."""
        return capacity(self)

    @property
    def offer(self) -> PoolOffer:
        """What the nodes offer to pods of tenants."""
        return pool_offer(self)
