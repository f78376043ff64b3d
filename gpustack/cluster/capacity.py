"""What the nodes of each pool will advertise: extended resources, from GPUs per node, sharing and MIG.

Solves: a pod that asks for `nvidia.com/gpu` where nodes offer `nvidia.com/gpu.shared` stays pending without an error.
So the numbers are computed before anything is deployed, the way the device plugin counts (plugin-config.yaml),
and what can't be known is said instead of guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..api import keys
from ..catalog import gpus, vgpu
from ..catalog.mig import IllegalProfile, UnknownProfile, resource_name
from ..policy.language import images
from .mig_layouts import Group
from .plugin_sharing import UnknownSharing, strategy

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool
    from ..policy.language.spec import ClusterPolicySpec
    from .pool import Pool
    from .resolve import Cluster

Range = tuple[int, int]
"""The fewest and the most of something; equal where the number is fixed."""

Counts = dict[str, int | None]
"""Resource to number; None for a number that isn't known."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one of a resource is. A name says less: nvidia.com/gpu is a whole GPU on some nodes, and an instance of MIG
    or a share of a smaller GPU on others. `profile` is None for what isn't cut, `shared_by` is 1 for what isn't shared.
    """

    product: str | None
    profile: str | None = None
    shared_by: int = 1

    def __str__(self) -> str:
        product = self.product or "a GPU that the policy doesn't name"
        part = f"{self.profile} of " if self.profile else ""
        shared = f", shared by {self.shared_by}" if self.shared_by > 1 else ""
        return f"{part}{product}{shared}"


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """What nodes of a pool advertise.

    `nodes` and `gpus` (per node) are None where the policy doesn't say them. `per_node` is empty where nodes advertise
    nothing, and where it isn't known what: `unknown` then says why. `units` says of each resource what one is."""

    name: str
    product: str | None
    nodes: Range | None
    gpus: int | None
    per_node: Mapping[str, int | None]
    unknown: tuple[str, ...] = ()
    units: Mapping[str, Unit] = field(default_factory=dict)

    @property
    def total(self) -> dict[str, Range | None]:
        """What all nodes of the pool advertise together; None for a number that isn't known."""
        return {
            name: None if count is None or self.nodes is None else (count * self.nodes[0], count * self.nodes[1])
            for name, count in self.per_node.items()
        }


@dataclass(frozen=True, slots=True)
class Total:
    """All of one UNIT under one name: the sum of what is known (None if nothing is), and the pools whose part isn't."""

    unit: Unit
    known: Range | None
    without: tuple[str, ...] = ()


class _Unknown(Exception):  # noqa: N818  # the reason is the value
    """What nodes advertise isn't known; the text says why."""


def capacity(pool: Pool) -> PoolCapacity:
    """What the nodes of POOL advertise. Never raises for a valid spec."""
    said = pool.said
    nodes = (said.count.min, said.count.max) if said.count else None
    unknown = [] if nodes else ["count isn't said, so the number of nodes isn't known"]
    per_node, units = Counts(), dict[str, Unit]()
    try:
        per_node, units = _per_node(pool)
    except (_Unknown, UnknownSharing) as reason:
        unknown.insert(0, str(reason))
    if None in per_node.values():
        unknown.insert(0, "gpusPerNode isn't said, so the number of GPUs isn't known")
    ordered = {name: per_node[name] for name in sorted(per_node)}
    return PoolCapacity(pool.name, said.gpuProduct, nodes, said.gpusPerNode, ordered, tuple(unknown), units)


def totals(pools: Iterable[PoolCapacity]) -> dict[str, list[Total]]:
    """Every resource that nodes of POOLS advertise, by name: a sum for each thing that the name stands for."""
    pools = list(pools)
    by_name: dict[str, list[Total]] = {}
    for name in sorted({name for pool in pools for name in pool.per_node}):
        having = [pool for pool in pools if name in pool.per_node]
        for unit in sorted({pool.units[name] for pool in having}, key=str):
            parts = {pool.name: pool.total[name] for pool in having if pool.units[name] == unit}
            known = [part for part in parts.values() if part is not None]
            both = (sum(low for low, _ in known), sum(high for _, high in known)) if known else None
            total = Total(unit, both, tuple(pool for pool, part in parts.items() if part is None))
            by_name.setdefault(name, []).append(total)
    return by_name


def _per_node(pool: Pool) -> tuple[Counts, dict[str, Unit]]:
    """What a node advertises, and what one of each is."""
    if pool.cluster.dra:
        raise _Unknown("GPUs are offered by dynamic resource allocation: devices of resource slices, and no resources")
    if pool.workload in {"vm-passthrough", "vm-vgpu"}:
        whole = _passthrough(pool) if pool.workload == "vm-passthrough" else _vgpus(pool)
        return whole, dict.fromkeys(whole, Unit(pool.said.gpuProduct))
    if not pool.spec.devicePlugin.enabled:
        raise _Unknown("devicePlugin is off, so whatever else runs on the nodes decides")
    own = pool.said.sharing.mps or pool.said.sharing.timeSlicing
    counts_by = strategy(pool.spec, None if own else pool.plugin_config)
    how = pool.sharing
    if how.kind == "mps" and counts_by == "mixed":
        raise _Unknown("the device plugin refuses MPS with mig.strategy mixed")
    before = _unshared(pool, counts_by)
    profiles = _profiles(pool, counts_by)
    units = {how.shown(name): Unit(pool.said.gpuProduct, profiles.get(name), how.replicas(name)) for name in before}
    after = {how.shown(name): None if count is None else count * how.replicas(name) for name, count in before.items()}
    return after, units


def _profiles(pool: Pool, counts_by: str) -> dict[str, str]:
    """The MIG profiles behind each name of a resource where GPUs are cut, before sharing."""
    if counts_by == "none" or (pool.product is not None and not pool.product.mig_capable):
        return {}
    by_name: dict[str, list[str]] = {}
    for profile in sorted({profile for group in pool.groups or () for profile in group.layout or ()}):
        name = keys.GPU if counts_by == "single" else resource_name(profile, images.version(pool.spec.devicePlugin))
        by_name.setdefault(name, []).append(profile)
    return {name: " or ".join(profiles) for name, profiles in by_name.items()}


def _unshared(pool: Pool, counts_by: str) -> Counts:
    """What a node offers before sharing, by the rules of the MIG strategy COUNTS_BY."""
    product, chosen, each = pool.product, pool.layout, pool.said.gpusPerNode
    if chosen is None or (product is not None and not product.mig_capable):
        return {keys.GPU: each}
    if chosen.elements is None:
        raise _Unknown(f"what the MIG layout {chosen.name} is, isn't in the policy")
    made = pool.groups
    if made is None:
        raise _Unknown("gpuProduct isn't known, and the MIG layout differs by board")
    if product is not None and gpus.mig_profiles(product) and not all(_fits(product, group) for group in made):
        raise _Unknown(f"the MIG layout doesn't fit on {product.name}")
    if counts_by == "none" or all(group.layout is None for group in made):
        return {keys.GPU: each}
    if counts_by == "single":
        return _single(pool.said, made)
    counts: Counts = {}
    for group in made:
        number = _number(pool.said, group, made)
        for name, count in _instances(pool.spec, group).items() if group.layout is not None else [(keys.GPU, 1)]:
            before = counts.get(name, 0)
            counts[name] = None if number is None or before is None else before + number * count
    return {name: count for name, count in counts.items() if count != 0}


def _single(pool: NodePool, made: list[Group]) -> Counts:
    """All instances under the name of a GPU, if they are of one profile and no GPU stays whole."""
    profiles = {name for group in made for name in group.layout or ()}
    whole = any(group.indices for group in made if group.layout is None)
    if len(profiles) != 1 or any(group.layout == {} for group in made) or whole:
        raise _Unknown("the device plugin refuses nodes whose GPUs aren't all cut alike, with mig.strategy single")
    total: int | None = 0
    for group in made:
        number = _number(pool, group, made)
        count = sum(group.layout.values()) if group.layout else 0
        total = None if number is None or total is None else total + number * count
    return {keys.GPU: total}


def _number(pool: NodePool, group: Group, made: list[Group]) -> int | None:
    """How many GPUs of a node GROUP is."""
    if group.indices is not None:
        return len(group.indices)
    return pool.gpusPerNode if len(made) == 1 else None


def _instances(spec: ClusterPolicySpec, group: Group) -> dict[str, int]:
    """Resources of one GPU of GROUP, and how many of each, as the device plugin of SPEC names them."""
    counts: dict[str, int] = {}
    for profile, count in (group.layout or {}).items():
        try:
            name = resource_name(profile, images.version(spec.devicePlugin))
        except IllegalProfile:
            raise _Unknown(f"the device plugin has no name for {profile}, a part of an instance") from None
        counts[name] = counts.get(name, 0) + count
    return counts


def _fits(product: gpus.Product, group: Group) -> bool:
    try:
        return not group.layout or gpus.fits(product, group.layout)
    except UnknownProfile:
        return False


def _passthrough(pool: Pool) -> Counts:
    """GPUs that virtual machines get whole, as the device plugin for KubeVirt names them."""
    product = pool.product
    _offered(pool.cluster)
    if product is None or len(product.pci_ids) != 1:
        raise _Unknown("gpuProduct isn't known, and the device plugin for KubeVirt names GPUs by their PCI id")
    return {vgpu.pci_resource(product.pci_ids[0]): pool.said.gpusPerNode}


def _vgpus(pool: Pool) -> Counts:
    """The vGPUs of a node, as the device plugin for KubeVirt names them."""
    product, spec = pool.product, pool.spec
    _offered(pool.cluster)
    elements = (pool.cluster.vgpu_sets or {}).get(pool.vgpu_set) if spec.vgpuDeviceManager.enabled else None
    if product is None or not elements:
        raise _Unknown("which vGPUs the nodes have isn't known: say gpuProduct and vgpu.config")
    counts: Counts = {}
    names = spec.kubevirt.vgpuNames if spec.kubevirt else {}
    for vgpu_type, each, devices in _vgpu_types(elements, product):
        number = pool.said.gpusPerNode if devices is None else devices
        resource = vgpu.vgpu_resource(vgpu.vgpu_name(vgpu_type, product, names))
        counts[resource] = None if number is None else (counts.get(resource) or 0) + each * number
    return counts


def _vgpu_types(elements: Iterable[Mapping[str, Any]], product: gpus.Product) -> Iterator[tuple[str, int, int | None]]:
    """Each vGPU type of ELEMENTS on PRODUCT, how many a GPU has, and how many GPUs that is for; None for all."""
    for element in elements:
        devices = element.get("devices")
        for name, each in (element.get("vgpu-devices") or {}).items() if vgpu.fits(element, product) else ():
            yield str(name), int(each), len(devices) if isinstance(devices, list) else None


def _offered(cluster: Cluster) -> None:
    if cluster.kata:
        raise _Unknown("the device plugin for Kata containers names GPUs on the node")
    if not cluster.offered_to_kubevirt:
        raise _Unknown("sandboxDevicePlugin is off, so KubeVirt's own plugin decides")
