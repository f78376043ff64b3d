"""What a policy means, said once: who allocates GPUs, who describes drivers, and what each pool of nodes is and gets.

Solves: "which driver does this pool get", "is there a MIG manager", "what do its nodes offer" are asked by rules,
inputs, NodePolicies, `capacity` and reviews, and two readers of the same fields once gave two answers. Here each
question has one answer, and that has the policy path to blame. Rejected: computing all answers when a spec is loaded.
Most verbs ask few of them, so each is computed when it is first asked for, and kept.

`resolve` keeps the clusters of the specs that were asked about last. Rejected: keeping a cluster in its spec, where it
would travel with pickles and copies, and be compared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..catalog import platforms, releases, vgpu
from . import mig_layouts
from .budgets import Fleet, fleet
from .capacity import PoolCapacity
from .drivers import Features, NodeDriver, Source, container_drivers
from .offer import Offer, offer
from .pool import EVERYWHERE, Engine, Pool, Workload
from .tenancy import Grant, Unheld, grants

if TYPE_CHECKING:
    from ..policy.language.driver import DriverSettings, NvidiaDriver
    from ..policy.language.gpu_cluster import GpuCluster
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec

CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")
"""RuntimeClasses beside the default one, where CDI is on."""
KEPT = 64
"""How many clusters `resolve` keeps: those of one policy and its invented neighbours, and both sides of a review."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """What SPEC, an effective spec, means. `spec` is for fields that mean what they say."""

    spec: ClusterPolicySpec

    @property
    def dra(self) -> bool:
        """Whether GPUs are allocated by claims (operator.md 11.1)."""
        return self.allocation == "dra"

    @property
    def allocation(self) -> Literal["plugin", "dra"]:
        """Who allocates GPUs: the device plugin, or with `gpuCluster` the DRA driver, which excludes it."""
        return "plugin" if self.spec.gpuCluster is None else "dra"

    @property
    def drivers_by(self) -> Source:
        """Who describes drivers: `drivers` where the policy says so, always with `gpuCluster` (operator.md 10.1)."""
        if self.spec.driver.useNvidiaDriverCRD or self.dra:
            return "list"
        return "section" if self.spec.driver.enabled else "host"

    @property
    def listed(self) -> bool:
        """Whether `drivers` describe the drivers, and the section `driver` doesn't count."""
        return self.drivers_by == "list"

    @property
    def stack(self) -> ClusterPolicySpec | GpuCluster:
        """Who describes what is there with and without DRA: `daemonsets`, `dcgm`, `dcgmExporter` and `hostPaths`."""
        return self.spec.gpuCluster or self.spec

    def at(self, section: str) -> str:
        """Where SECTION of `stack` stands in the policy."""
        return f"gpuCluster.{section}" if self.dra else section

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The node pools, in policy order."""
        return tuple(Pool(self, index, said) for index, said in enumerate(self.spec.nodePools))

    @cached_property
    def everywhere(self) -> Pool:
        """All nodes with a GPU, as far as the policy tells without its pools."""
        from ..policy.language.node_pools import NodePool

        return Pool(self, None, NodePool(name=EVERYWHERE))

    @property
    def nodes(self) -> tuple[Pool, ...]:
        """The pools; where there are none, all nodes with a GPU as one."""
        return self.pools or (self.everywhere,)

    @property
    def drivers(self) -> Iterator[NodeDriver]:
        """The driver of each pool that serves containers and gets one from this policy."""
        return (pool.driver for pool in self.pools if pool.driver is not None and pool.driver.for_containers)

    @property
    def running(self) -> Iterator[NodeDriver]:
        """The driver of each pool that serves containers, whoever installs it, where its version may be known."""
        return (pool.runs for pool in self.pools if pool.runs is not None and pool.runs.for_containers)

    @cached_property
    def described(self) -> list[tuple[str, DriverSettings | NvidiaDriver]]:
        """What describes drivers that are installed, by path: `drivers`, or `driver` and that of pools."""
        if self.listed:
            return [(f"spec.drivers[{number}]", driver) for number, driver in enumerate(self.spec.drivers)]
        own = [(f"{pool.path}.driver", pool.said.driver) for pool in self.pools if pool.said.driver is not None]
        return [("spec.driver", self.spec.driver), *own] if self.spec.driver.enabled else []

    @property
    def host_versions(self) -> dict[str, str]:
        """The versions of drivers that nodes bring, by the paths that say so."""
        if not self.pools and self.spec.driver.hostVersion:
            return {"spec.driver.hostVersion": self.spec.driver.hostVersion}
        return {each.path: each.version for each in self.running if each.brought}

    @cached_property
    def container_drivers(self) -> list[Features]:
        """The drivers that a render brings to nodes for containers, none where the nodes have theirs."""
        return container_drivers(self.spec, self.drivers_by)

    @property
    def engine(self) -> Engine:
        """The toolkit's runtime: containerd where any node runs it, else that of the last pool (operator.md 3)."""
        engines = [pool.engine for pool in self.nodes]
        return "containerd" if "containerd" in engines else engines[-1]

    @property
    def sandbox(self) -> bool:
        """Whether nodes may serve virtual machines at all."""
        return bool(self.spec.sandboxWorkloads.enabled)

    @property
    def kata(self) -> bool:
        """Whether nodes for passthrough serve Kata containers and not KubeVirt; no release before v26.3 has them."""
        return self.spec.sandboxWorkloads.mode == "kata" and releases.release(self.spec.release).traits.kata_mode

    @property
    def offered_to_kubevirt(self) -> bool:
        """Whether our device plugin for KubeVirt runs, which offers all that is bound to vfio-pci, and every vGPU;
        KubeVirt's own plugin must then offer none of them."""
        return self.sandbox and bool(self.spec.sandboxDevicePlugin.enabled) and not self.kata

    @property
    def default_workload(self) -> Workload:
        """What nodes serve that nobody has labelled."""
        return self.spec.sandboxWorkloads.defaultWorkload or "container"

    @cached_property
    def vgpu_sets(self) -> Mapping[str, Any] | None:
        """All sets of vGPU devices by name, or None where their text is not in the policy."""
        config = self.spec.vgpuDeviceManager.config
        if config.data and config.create:
            return vgpu.parsed(config.data.get("config.yaml", ""))
        name = config.name or vgpu.CONFIG_MAP
        if held := mig_layouts.config_map(self.spec, name):
            return vgpu.parsed(str(held[1].get("config.yaml", "")))
        return vgpu.default_config(self.spec.release) if name == vgpu.CONFIG_MAP else None

    def of(self, said: NodePool) -> Pool:
        """The pool that the policy describes by SAID, one of `nodePools`."""
        return next(pool for pool in self.pools if pool.name == said.name)

    def serving(self, what: Workload) -> list[int]:
        """The positions in `nodePools` of the pools that serve WHAT, in policy order."""
        return [index for index, pool in enumerate(self.pools) if pool.workload == what]

    @property
    def mig_manager(self) -> bool:
        """Whether the MIG manager has its place here; with a gpuCluster it never has (reconciler.md M29)."""
        return not self.dra and self.spec.migManager.enabled

    @cached_property
    def layouts(self) -> mig_layouts.Source:
        """Where the names of MIG layouts come from."""
        return mig_layouts.source(self.spec)

    @cached_property
    def capacity(self) -> tuple[PoolCapacity, ...]:
        """What the nodes of each pool advertise, in policy order."""
        return tuple(pool.capacity for pool in self.pools)

    @cached_property
    def tenancy(self) -> tuple[list[Grant], list[tuple[str, Unheld]]]:
        """What tenants are given in the resources of nodes, and what they can't be given, each with its path."""
        return grants(self)

    @cached_property
    def platform(self) -> platforms.Platform:
        """The platform of the cluster, and so what it has of its own."""
        return platforms.of(self.spec.cluster.platform, openshift=self.spec.cluster.openshift is not None)

    @property
    def runtime_class(self) -> str:
        """The RuntimeClass of pods that use GPUs."""
        return self.spec.operator.runtimeClass

    @property
    def runtime_classes(self) -> list[str]:
        """The names of the RuntimeClasses that are rendered, brought along or counted on (operator.md 5.5)."""
        spec = self.spec
        names = [body["metadata"]["name"] for body in spec.extraObjects if body["kind"] == "RuntimeClass"]
        names += [reference.name for reference in spec.references if reference.kind == "RuntimeClass"]
        if not self.dra and not spec.cdi.nriPluginEnabled:
            names += [self.runtime_class, *(CDI_CLASSES if spec.cdi.enabled else ())]
        if self.sandbox and spec.kataManager.enabled:
            names += [one.name for one in spec.kataManager.config.runtimeClasses]
        return names

    @cached_property
    def offer(self) -> Offer:
        """What the cluster offers to tenants."""
        return offer(self)

    @cached_property
    def fleet(self) -> Fleet:
        """What holds over all pools together while drivers roll."""
        return fleet(self)

    @property
    def pausing(self) -> list[tuple[str, str]]:
        """What takes labels off nodes for a while and sets them again: its section, and what it is called."""
        pausing = []
        if self.container_drivers or (self.listed and self.spec.drivers):
            pausing.append(("drivers" if self.listed else "driver", "the driver manager"))
        if self.mig_manager:
            pausing.append(("migManager", "the MIG manager"))
        if self.sandbox:
            pausing.append(("sandboxWorkloads", "the managers of vfio-pci and vGPU"))
        return pausing


_kept: OrderedDict[int, Cluster] = OrderedDict()


def resolve(spec: ClusterPolicySpec) -> Cluster:
    """What SPEC means: the same object for the same spec, as long as few others are asked about in between."""
    cluster = _kept.get(id(spec))
    if cluster is None:
        cluster = _kept[id(spec)] = Cluster(spec)
        if len(_kept) > KEPT:
            _kept.popitem(last=False)
    return cluster
