"""What the nodes of each pool will advertise: extended resources, from GPUs per node, sharing and MIG.

Solves: a pod that asks for `nvidia.com/gpu` where nodes offer `nvidia.com/gpu.shared` stays pending without an error.
So the numbers are computed before anything is deployed, the way the device plugin counts (device-plugin-config.yaml),
and what can't be known is said instead of guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..catalog import gpus, kubevirt, vgpu
from ..catalog.mig import ProfileName, resource_name
from .mig_layouts import Choice, Group, Source, choice, groups, product_of, source, texts_of
from .workloads import kata, offered_to_kubevirt, vgpu_set, vgpu_sets, workload

if TYPE_CHECKING:
    from .node_pools import NodePool
    from .spec import ClusterPolicySpec

GPU = "nvidia.com/gpu"
PLUGIN_LABEL = "nvidia.com/device-plugin.config"
"""The node's label that names its configuration of the device plugin."""

Range = tuple[int, int]
"""The fewest and the most of something; equal where the number is fixed."""

Counts = dict[str, int | None]
"""Resource to number; None for a number that isn't known."""


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """What nodes of a pool advertise.

    `nodes` and `gpus` (per node) are None where the policy doesn't say them. `per_node` is empty where nodes advertise
    nothing, and where it isn't known what: `unknown` then says why.
    """

    name: str
    product: str | None
    nodes: Range | None
    gpus: int | None
    per_node: Mapping[str, int | None]
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> dict[str, Range | None]:
        """What all nodes of the pool advertise together; None for a number that isn't known."""
        return {
            name: None if count is None or self.nodes is None else (count * self.nodes[0], count * self.nodes[1])
            for name, count in self.per_node.items()
        }


@dataclass(frozen=True, slots=True)
class Total:
    """A resource in all pools: the sum of what is known (None if nothing is), and the pools whose part isn't."""

    known: Range | None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Shared:
    """How a node's resources are shared: entries by resource name. `kind` is timeSlicing, mps, or "" for exclusive."""

    kind: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict)
    renamed: bool = False


class _Unknown(Exception):  # noqa: N818  # the reason is the value
    """What nodes advertise isn't known; the text says why."""


def capacity(spec: ClusterPolicySpec) -> tuple[PoolCapacity, ...]:
    """What the nodes of each pool of SPEC advertise, in the order of the pools. Never raises for a valid spec."""
    names: Source | None = None
    found = []
    for pool in spec.nodePools:
        nodes = (pool.count.min, pool.count.max) if pool.count else None
        unknown = [] if nodes else ["count isn't said, so the number of nodes isn't known"]
        per_node: Counts = {}
        try:
            names = names or source(spec)
            per_node = _per_node(spec, pool, names)
        except _Unknown as reason:
            unknown.insert(0, str(reason))
        if None in per_node.values():
            unknown.insert(0, "gpusPerNode isn't said, so the number of GPUs isn't known")
        ordered = {name: per_node[name] for name in sorted(per_node)}
        found.append(PoolCapacity(pool.name, pool.gpuProduct, nodes, pool.gpusPerNode, ordered, tuple(unknown)))
    return tuple(found)


def totals(pools: Iterable[PoolCapacity]) -> dict[str, Total]:
    """Every resource that nodes of POOLS advertise, by name."""
    pools = list(pools)
    found: dict[str, Total] = {}
    for name in sorted({name for pool in pools for name in pool.per_node}):
        parts = {pool.name: pool.total[name] for pool in pools if name in pool.per_node}
        known = [part for part in parts.values() if part is not None]
        without = tuple(pool for pool, part in parts.items() if part is None)
        found[name] = Total((sum(low for low, _ in known), sum(high for _, high in known)) if known else None, without)
    return found


def _per_node(spec: ClusterPolicySpec, pool: NodePool, names: Source) -> Counts:
    if spec.gpuCluster is not None:
        raise _Unknown("GPUs are offered by dynamic resource allocation: devices of resource slices, and no resources")
    serves = workload(spec, pool)
    if serves == "vm-passthrough":
        return _passthrough(spec, pool)
    if serves == "vm-vgpu":
        return _vgpus(spec, pool)
    if spec.devicePlugin.enabled is False:
        raise _Unknown("devicePlugin is off, so whatever else runs on the nodes decides")
    unshared = _unshared(spec, pool, choice(spec, pool, names))
    return _after_sharing(spec, unshared, _sharing(spec, pool, unshared))


def _unshared(spec: ClusterPolicySpec, pool: NodePool, chosen: Choice | None) -> Counts:
    """What a node offers before sharing, by the rules of the MIG strategy."""
    product = product_of(pool)
    if chosen is None or (product is not None and not product.mig_capable):
        return {GPU: pool.gpusPerNode}
    if chosen.elements is None:
        raise _Unknown(f"what the MIG layout {chosen.name} is, isn't in the policy")
    made = groups(chosen.elements, pool)
    if made is None:
        raise _Unknown("gpuProduct isn't known, and the MIG layout differs by board")
    if product is not None and gpus.mig_profiles(product) and not all(_fits(product, group) for group in made):
        raise _Unknown(f"the MIG layout doesn't fit on {product.name}")
    cut = [group for group in made if group.layout is not None]
    if not cut or spec.mig.strategy in (None, "none"):
        return {GPU: pool.gpusPerNode}
    if spec.mig.strategy == "single":
        return _single(pool, made)
    counts: Counts = {}
    for group in made:
        number = _number(pool, group, made)
        for name, count in _instances(group).items() if group.layout is not None else [(GPU, 1)]:
            before = counts.get(name, 0)
            counts[name] = None if number is None or before is None else before + number * count
    return {name: count for name, count in counts.items() if count != 0}


def _single(pool: NodePool, made: list[Group]) -> Counts:
    """All instances under the name of a GPU, if they are of one profile and no GPU stays whole."""
    profiles = {name for group in made if group.layout is not None for name in group.layout}
    whole = [group for group in made if group.layout is None]
    if len(profiles) != 1 or any(group.layout == {} for group in made) or any(group.indices for group in whole):
        raise _Unknown("the device plugin refuses nodes whose GPUs aren't all cut alike, with mig.strategy single")
    total: int | None = 0
    for group in made:
        number = _number(pool, group, made)
        count = sum(_instances(group).values()) if group.layout else 0
        total = None if number is None or total is None else total + number * count
    return {GPU: total}


def _number(pool: NodePool, group: Group, made: list[Group]) -> int | None:
    """How many GPUs of a node GROUP is."""
    if group.indices is not None:
        return len(group.indices)
    return pool.gpusPerNode if len(made) == 1 else None


def _instances(group: Group) -> dict[str, int]:
    """Resources of one GPU of GROUP, and how many of each; parts of instances are none."""
    named = ((ProfileName.parse(name), count) for name, count in (group.layout or {}).items())
    return {resource_name(name): count for name, count in named if name.exposed}


def _fits(product: gpus.Product, group: Group) -> bool:
    try:
        return not group.layout or gpus.fits(product, group.layout)
    except gpus.UnknownProfile:
        return False


def _sharing(spec: ClusterPolicySpec, pool: NodePool, unshared: Counts) -> _Shared:
    """How the device plugin shares the resources of nodes of POOL."""
    for kind in ("mps", "timeSlicing"):
        how = getattr(pool.sharing, kind)
        if how is not None:
            return _Shared(kind, dict.fromkeys(unshared, how.replicas), bool(how.renameByDefault))
    config = spec.devicePlugin.config
    shared = any(other.sharing.mps or other.sharing.timeSlicing for other in spec.nodePools)
    if shared or not (config.name or config.data):
        return _Shared()
    texts = {text.key: text.text or "" for text in texts_of(spec, config, "devicePlugin.config")}
    name = pool.nodeSelector.get(PLUGIN_LABEL) or config.default
    if not name:
        return _Shared()  # the config manager falls back to an empty configuration (operator.md 7.4)
    if not texts:
        raise _Unknown(f"the device plugin's configuration {name} isn't in the policy")
    if name not in texts:
        raise _Unknown(f"the device plugin has no configuration {name}, and waits for one")
    return _of_text(texts[name])


def _of_text(text: str) -> _Shared:
    """The sharing that TEXT, a configuration file of the device plugin, asks for."""
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
        sharing = data.get("sharing") or {} if isinstance(data, dict) else {}
        kind = next((kind for kind in ("mps", "timeSlicing") if sharing.get(kind)), "")
        entries = sharing[kind].get("resources") or [] if kind else []
        replicas = {_prefixed(str(entry["name"])): int(entry["replicas"]) for entry in entries}
        return _Shared(kind, replicas, bool(kind and sharing[kind].get("renameByDefault")))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise _Unknown("the device plugin's configuration can't be read") from None


def _prefixed(name: str) -> str:
    return name if "/" in name else f"nvidia.com/{name}"


def _after_sharing(spec: ClusterPolicySpec, unshared: Counts, how: _Shared) -> Counts:
    if how.kind == "mps" and spec.mig.strategy == "mixed":
        raise _Unknown("the device plugin refuses MPS with mig.strategy mixed")
    counts: Counts = {}
    for name, count in unshared.items():
        replicas = how.replicas.get(name, 1)
        shown = f"{name}.shared" if how.renamed and name in how.replicas else name
        counts[shown] = None if count is None else count * replicas
    return counts


def _passthrough(spec: ClusterPolicySpec, pool: NodePool) -> Counts:
    """GPUs that virtual machines get whole, as the device plugin for KubeVirt names them."""
    product = product_of(pool)
    _offered(spec)
    if product is None or len(product.pci_ids) != 1:
        raise _Unknown("gpuProduct isn't known, and the device plugin for KubeVirt names GPUs by their PCI id")
    return {kubevirt.pci_resource(product.pci_ids[0]): pool.gpusPerNode}


def _vgpus(spec: ClusterPolicySpec, pool: NodePool) -> Counts:
    """The vGPUs of a node, as the device plugin for KubeVirt names them."""
    product = product_of(pool)
    _offered(spec)
    elements = (vgpu_sets(spec) or {}).get(vgpu_set(spec, pool)) if spec.vgpuDeviceManager.enabled else None
    if product is None or not elements:
        raise _Unknown("which vGPUs the nodes have isn't known: say gpuProduct and vgpu.config")
    counts: Counts = {}
    names = spec.kubevirt.vgpuNames if spec.kubevirt else {}
    for vgpu_type, each, devices in _vgpu_types(elements, product):
        number = pool.gpusPerNode if devices is None else devices
        resource = kubevirt.vgpu_resource(kubevirt.vgpu_name(vgpu_type, product, names))
        counts[resource] = None if number is None else (counts.get(resource) or 0) + each * number
    return counts


def _vgpu_types(elements: Iterable[Mapping[str, Any]], product: gpus.Product) -> Iterator[tuple[str, int, int | None]]:
    """Each vGPU type of ELEMENTS on PRODUCT, how many a GPU has, and how many GPUs that is for; None for all."""
    for element in elements:
        devices = element.get("devices")
        for name, each in (element.get("vgpu-devices") or {}).items() if vgpu.fits(element, product) else ():
            yield str(name), int(each), len(devices) if isinstance(devices, list) else None


def _offered(spec: ClusterPolicySpec) -> None:
    if kata(spec):
        raise _Unknown("the device plugin for Kata containers names GPUs on the node")
    if not offered_to_kubevirt(spec):
        raise _Unknown("sandboxDevicePlugin is off, so KubeVirt's own plugin decides")
