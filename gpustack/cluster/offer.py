"""What a cluster offers to pods: resources of its nodes, taints, labels, RuntimeClasses.

Solves: whether a tenant's pod can ever run is decided by what the policy makes of the nodes, and the tenant doesn't
know the policy. What isn't known of the nodes is None here, so that nobody is told off for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..catalog.gpus import Product
from .capacity import GPU, PoolCapacity, capacity
from .mig_layouts import LABEL as MIG_LABEL
from .mig_layouts import choice, product_of, source
from .plugin_sharing import PoolSharing, UnknownSharing, pool_sharing
from .scheduling import labels_of
from .workloads import kata, sandbox, workload

if TYPE_CHECKING:
    from ..policy.language.node_pools import NodePool, Taint
    from ..policy.language.spec import ClusterPolicySpec

CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")
"""RuntimeClasses beside the default one, where CDI is on."""

Values = frozenset[str] | None
"""What a label may be on nodes of a pool; None where that isn't known."""


@dataclass(frozen=True, slots=True)
class PoolOffer:
    """What nodes of a pool have. `resources` is None where it isn't known (`unknown` says why), a number None likewise.

    `labels` are those that are known, and those of which it is known that programs set them. `sharing` says exclusive
    where it isn't known how pods share.
    """

    name: str
    resources: Mapping[str, int | None] | None
    unknown: str
    taints: tuple[Taint, ...]
    labels: Mapping[str, Values]
    sharing: PoolSharing
    mig: bool = False
    own_labels: Mapping[str, str] = field(default_factory=dict)

    def has(self, wanted: Mapping[str, int]) -> bool:
        """Whether a node has all of WANTED, or may have."""
        if self.resources is None:
            return True
        return all(
            name in self.resources and (self.resources[name] is None or number <= (self.resources[name] or 0))
            for name, number in wanted.items()
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """What a cluster has. `claims`: GPUs are allocated by claims, and are no resources.

    `tolerated_by_name`: the platform lets pods tolerate taints that are called like a resource they ask for.
    `network_cards`: the network operator is there, whose resources begin with nvidia.com/ too.
    """

    pools: tuple[PoolOffer, ...]
    runtime_classes: frozenset[str]
    strategy: str
    claims: bool
    discovery: bool
    tolerated_by_name: bool
    network_cards: bool = False

    @property
    def resources(self) -> frozenset[str]:
        """Every resource that nodes are known to have."""
        return frozenset(name for pool in self.pools for name in pool.resources or ())

    @property
    def complete(self) -> bool:
        """Whether it is known of all pools what their nodes have."""
        return bool(self.pools) and all(pool.resources is not None for pool in self.pools)


def offer(spec: ClusterPolicySpec) -> Offer:
    """What the cluster of SPEC offers. Never raises for a valid spec."""
    found = capacity(spec)
    pools = tuple(_pool(spec, pool, has) for pool, has in zip(spec.nodePools, found, strict=True))
    return Offer(
        pools=pools,
        runtime_classes=frozenset(runtime_classes(spec)),
        strategy=spec.mig.strategy or "none",
        claims=spec.gpuCluster is not None,
        discovery=spec.gfd.enabled is not False and spec.gpuCluster is None,
        tolerated_by_name=(spec.cluster.platform or "").startswith("gke"),
        network_cards=bool(spec.cluster.networkOperator),
    )


def runtime_classes(spec: ClusterPolicySpec) -> list[str]:
    """The names of the RuntimeClasses that are rendered, brought along or counted on (operator.md 5.5)."""
    found = [body["metadata"]["name"] for body in spec.extraObjects if body["kind"] == "RuntimeClass"]
    found += [reference.name for reference in spec.references if reference.kind == "RuntimeClass"]
    if spec.gpuCluster is None and not spec.cdi.nriPluginEnabled:
        found += [spec.operator.runtimeClass or "nvidia", *(CDI_CLASSES if spec.cdi.enabled else ())]
    if sandbox(spec) and spec.kataManager.enabled:
        found += [one.name for one in spec.kataManager.config.runtimeClasses]
    return found


def _pool(spec: ClusterPolicySpec, pool: NodePool, has: PoolCapacity) -> PoolOffer:
    resources = dict(has.per_node) if has.per_node else None
    try:
        sharing, known = pool_sharing(spec, pool), True
    except UnknownSharing:
        sharing, known = PoolSharing(), False
    cut = spec.mig.strategy in {"single", "mixed"} and choice(spec, pool, source(spec)) is not None
    return PoolOffer(
        name=pool.name,
        resources=resources,
        unknown=has.unknown[0] if resources is None and has.unknown else "",
        taints=tuple(pool.taints),
        labels=_labels(spec, pool, sharing if known else None, cut=cut),
        sharing=sharing,
        mig=cut,
        own_labels=dict(pool.nodeSelector),
    )


def _labels(spec: ClusterPolicySpec, pool: NodePool, sharing: PoolSharing | None, *, cut: bool) -> dict[str, Values]:
    """What is known of the labels of nodes of POOL once the stack runs there."""
    product = product_of(pool)
    found: dict[str, Values] = {key: frozenset([value]) for key, value in labels_of(pool).items()}
    found["nvidia.com/gpu.present"] = frozenset(["true"])
    if spec.gfd.enabled is not False and workload(spec, pool) == "container" and not kata(spec):
        found |= _discovered(pool, product, sharing, cut=cut)
    if cut and MIG_LABEL not in found:
        chosen = choice(spec, pool, source(spec))
        found[MIG_LABEL] = frozenset([chosen.name or pool.name]) if chosen else None
    return found


def _discovered(
    pool: NodePool, product: Product | None, sharing: PoolSharing | None, *, cut: bool
) -> dict[str, Values]:
    """What GPU feature discovery says about nodes of POOL, as far as the policy tells (device-plugin-config.yaml).

    SHARING is None where it isn't known. The labels of whole GPUs speak of the resource nvidia.com/gpu alone, and the
    product's ends with -SHARED where that is shared and keeps its name (seen on a GPU, tests/hardware).
    """
    found: dict[str, Values] = {"nvidia.com/gpu.sharing-strategy": None, "nvidia.com/gpu.product": None}
    if sharing is not None and not cut:
        shared = sharing.replicas(GPU) > 1
        strategy = {"mps": "mps", "timeSlicing": "time-slicing"}[sharing.kind] if shared else "none"
        found["nvidia.com/gpu.sharing-strategy"] = frozenset([strategy])
        found["nvidia.com/gpu.replicas"] = frozenset([str(sharing.labelled(GPU))])
        if pool.gpuProduct:
            ending = "-SHARED" if shared and not sharing.renamed else ""
            found["nvidia.com/gpu.product"] = frozenset([pool.gpuProduct + ending])
    if product is not None:
        major, _, minor = product.compute_capability.partition(".")
        found["nvidia.com/gpu.family"] = frozenset([product.family])
        found["nvidia.com/gpu.compute.major"] = frozenset([major])
        found["nvidia.com/gpu.compute.minor"] = frozenset([minor or "0"])
        found["nvidia.com/mig.capable"] = frozenset(["true" if product.mig_capable else "false"])
    if pool.gpusPerNode is not None and not cut:
        found["nvidia.com/gpu.count"] = frozenset([str(pool.gpusPerNode)])
    return found
