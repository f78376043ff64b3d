"""What a cluster offers to pods: resources of its nodes, taints, labels, RuntimeClasses.

Solves: whether a tenant's pod can ever run is decided by what the policy makes of the nodes, and the tenant doesn't
know the policy. What isn't known of the nodes is None here, so that nobody is told off for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..catalog import plugin_config
from ..catalog.gpus import Product
from .capacity import PLUGIN_LABEL, PoolCapacity, capacity
from .mig_layouts import LABEL as MIG_LABEL
from .mig_layouts import choice, product_of, source, texts_of
from .plugin_configs import read_plugin_config
from .scheduling import labels_of
from .workloads import kata, sandbox, workload

if TYPE_CHECKING:
    from .node_pools import NodePool, Taint
    from .spec import ClusterPolicySpec

CDI_CLASSES = ("nvidia-cdi", "nvidia-legacy")
"""RuntimeClasses beside the default one, where CDI is on."""

Values = frozenset[str] | None
"""What a label may be on nodes of a pool; None where that isn't known."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How pods share: timeSlicing, mps or "", and whether a request for more than one share is refused."""

    kind: str = ""
    refuses_more: bool = False


@dataclass(frozen=True, slots=True)
class PoolOffer:
    """What nodes of a pool have. `resources` is None where it isn't known (`unknown` says why), a number None likewise.

    `labels` are those that are known, and those of which it is known that programs set them.
    """

    name: str
    resources: Mapping[str, int | None] | None
    unknown: str
    taints: tuple[Taint, ...]
    labels: Mapping[str, Values]
    sharing: Sharing
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
    sharing = _sharing(spec, pool)
    cut = spec.mig.strategy in {"single", "mixed"} and choice(spec, pool, source(spec)) is not None
    return PoolOffer(
        name=pool.name,
        resources=resources,
        unknown=has.unknown[0] if resources is None and has.unknown else "",
        taints=tuple(pool.taints),
        labels=_labels(spec, pool, sharing, cut=cut),
        sharing=sharing,
        mig=cut,
        own_labels=dict(pool.nodeSelector),
    )


def _sharing(spec: ClusterPolicySpec, pool: NodePool) -> Sharing:
    if pool.sharing.mps is not None:
        return Sharing("mps", pool.sharing.mps.failRequestsGreaterThanOne is not False)
    if pool.sharing.timeSlicing is not None:
        return Sharing("timeSlicing", bool(pool.sharing.timeSlicing.failRequestsGreaterThanOne))
    config = spec.devicePlugin.config
    name = pool.nodeSelector.get(PLUGIN_LABEL) or config.default
    texts = {text.key: text.text or "" for text in texts_of(spec, config, "devicePlugin.config")}
    shared = read_plugin_config(texts[name]).sharing if name and name in texts else {}
    for kind in ("mps", "timeSlicing"):
        if kind in shared:
            fails = shared[kind].fails
            default = bool(plugin_config.sharing()["mps_fail_requests_default"]) if kind == "mps" else False
            return Sharing(kind, default if fails is None else fails)
    return Sharing()


def _labels(spec: ClusterPolicySpec, pool: NodePool, sharing: Sharing, *, cut: bool) -> dict[str, Values]:
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


def _discovered(pool: NodePool, product: Product | None, sharing: Sharing, *, cut: bool) -> dict[str, Values]:
    """What GPU feature discovery says about nodes of POOL, as far as the policy tells (device-plugin-config.yaml)."""
    found: dict[str, Values] = {
        "nvidia.com/gpu.sharing-strategy": frozenset(
            [{"mps": "mps", "timeSlicing": "time-slicing"}.get(sharing.kind, "none")]
        ),
        "nvidia.com/gpu.product": None,
    }
    if pool.gpuProduct and not cut:
        # which of the two it is depends on renameByDefault
        found["nvidia.com/gpu.product"] = frozenset(
            [pool.gpuProduct, *([f"{pool.gpuProduct}-SHARED"] if sharing.kind else ())]
        )
    if product is not None:
        major, _, minor = product.compute_capability.partition(".")
        found["nvidia.com/gpu.family"] = frozenset([product.family])
        found["nvidia.com/gpu.compute.major"] = frozenset([major])
        found["nvidia.com/gpu.compute.minor"] = frozenset([minor or "0"])
        found["nvidia.com/mig.capable"] = frozenset(["true" if product.mig_capable else "false"])
    if pool.gpusPerNode is not None and not cut:
        found["nvidia.com/gpu.count"] = frozenset([str(pool.gpusPerNode)])
    return found
