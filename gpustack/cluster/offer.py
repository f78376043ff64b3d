"""What a cluster offers to pods: resources of its nodes, taints, labels, RuntimeClasses.

Solves: whether a tenant's pod can ever run is decided by what the policy makes of the nodes, and the tenant doesn't
know the policy. What isn't known of the nodes is None here, so that nobody is told off for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..api import keys
from ..catalog import toolkit
from ..policy.language import images, reconciler
from .autoscaling import unseen
from .plugin_sharing import PoolSharing, UnknownSharing
from .scheduling import labels_of
from .virtual import absent, permitted

if TYPE_CHECKING:
    from ..policy.language.node_pools import Taint
    from .pool import Pool
    from .resolve import Cluster

Values = frozenset[str] | None
"""What a label may be on nodes of a pool; None where that isn't known."""


@dataclass(frozen=True, slots=True)
class PoolOffer:
    """What nodes of a pool have. `resources` is None where it isn't known (`unknown` says why), a number None likewise.

    `labels` are those that are known, and those of which it is known that programs set them. `sharing` says exclusive
    where it isn't known how pods share. `virtual`: the nodes serve virtual machines."""

    name: str
    resources: Mapping[str, int | None] | None
    unknown: str
    taints: tuple[Taint, ...]
    labels: Mapping[str, Values]
    sharing: PoolSharing
    mig: bool = False
    virtual: bool = False
    hours: int | None = None
    """How long the longest of its windows is; None where nodes may be worked on at any time, or nobody does."""
    own_labels: Mapping[str, str] = field(default_factory=dict)
    unseen: bool = False
    """Whether it may have no nodes, and its autoscaler then knows no label of discovery."""

    def has(self, wanted: Mapping[str, int]) -> bool:
        """Whether a node has all of WANTED, or may have."""
        if self.resources is None:
            return True
        known = {name: number for name, number in self.resources.items() if number is not None}
        return all(name in self.resources and number <= known.get(name, number) for name, number in wanted.items())


@dataclass(frozen=True, slots=True)
class Offer:
    """What a cluster has. `claims`: GPUs are allocated by claims, and are not resources.

    `tolerated_by_name`: the platform lets pods tolerate taints that are called like a resource they ask for.
    `network_cards`: the network operator is there, whose resources begin with nvidia.com/ too. `permitted` are the
    devices that KubeVirt is told to permit, None where others may permit more, `absent` those of no node.
    `writes_etc_nvidia`: the container toolkit writes into that folder of containers with GPUs."""

    pools: tuple[PoolOffer, ...]
    runtime_classes: frozenset[str]
    strategy: str
    claims: bool
    discovery: bool
    tolerated_by_name: bool
    network_cards: bool = False
    writes_etc_nvidia: bool = False
    permitted: frozenset[str] | None = None
    absent: frozenset[str] = frozenset()
    clients: frozenset[str] | None = None
    """Namespaces whose DaemonSets the driver manager takes off a node itself; None where nobody empties nodes."""

    rules: tuple[reconciler.PodRule, ...] = ()
    ignores_budgets: bool = False
    """Whether PodDisruptionBudgets hold up a node for some time only."""

    def becomes(self, labels: Mapping[str, Any], namespace: str) -> str:
        """What the first of `rules` that is about pods with LABELS in NAMESPACE says becomes of them; "" for none."""
        here = (rule for rule in self.rules if rule.namespace in (None, namespace))
        return next((rule.then for rule in here if rule.labels.items() <= labels.items()), "")

    @property
    def resources(self) -> frozenset[str]:
        """Every resource that nodes are known to have."""
        return frozenset(name for pool in self.pools for name in pool.resources or ())

    @property
    def complete(self) -> bool:
        """Whether it is known of all pools what their nodes have."""
        return bool(self.pools) and all(pool.resources is not None for pool in self.pools)


def offer(cluster: Cluster) -> Offer:
    """What CLUSTER offers. Never raises for a valid spec."""
    spec = cluster.spec
    program, toolkits = spec.reconciler if reconciler.runs(spec) else None, spec.toolkit.enabled and not cluster.dra
    return Offer(
        pools=tuple(pool.offer for pool in cluster.pools),
        runtime_classes=frozenset(cluster.runtime_classes),
        strategy=spec.mig.strategy or "none",
        claims=cluster.dra,
        discovery=spec.gfd.enabled and not cluster.dra,
        tolerated_by_name=cluster.platform.tolerates_by_name,
        network_cards=bool(spec.cluster.networkOperator),
        writes_etc_nvidia=toolkits and toolkit.writes_etc_nvidia(images.version(spec.toolkit)),
        permitted=permitted(cluster),
        absent=absent(cluster),
        clients=frozenset(program.clientNamespaces) if program else None,
        rules=tuple(program.podRules) if program else (),
        ignores_budgets=bool(program and program.ignoreBudgetsAfterSeconds is not None),
    )


def pool_offer(pool: Pool) -> PoolOffer:
    """What the nodes of POOL offer."""
    has, works = pool.capacity, reconciler.runs(pool.spec)
    resources = dict(has.per_node) if has.per_node else None
    known: PoolSharing | None = None
    with suppress(UnknownSharing):
        known = pool.sharing
    cut = pool.spec.mig.strategy in {"single", "mixed"} and pool.layout is not None
    return PoolOffer(
        name=pool.name,
        resources=resources,
        unknown=has.unknown[0] if resources is None and has.unknown else "",
        taints=tuple(pool.said.taints),
        labels=_labels(pool, known, cut=cut),
        sharing=known or PoolSharing(),
        mig=cut,
        hours=max((each.hours for each in pool.budget.windows), default=None) if works else None,
        virtual=pool.workload != "container" and not pool.cluster.kata,
        own_labels=dict(pool.said.nodeSelector),
        unseen=unseen(pool),
    )


def _labels(pool: Pool, sharing: PoolSharing | None, *, cut: bool) -> dict[str, Values]:
    """What is known of the labels of nodes of POOL once the stack runs there."""
    known: dict[str, Values] = {key: frozenset([value]) for key, value in labels_of(pool.said).items()}
    known[keys.PRESENT] = frozenset(["true"])
    if pool.spec.gfd.enabled and pool.workload == "container" and not pool.cluster.kata:
        known |= _discovered(pool, sharing, cut=cut)
        known[keys.PRODUCT] = _product(pool, sharing, cut=cut)
    if cut and keys.MIG_CONFIG not in known:
        known[keys.MIG_CONFIG] = frozenset([pool.layout.name or pool.name]) if pool.layout else None
    return known


def _discovered(pool: Pool, sharing: PoolSharing | None, *, cut: bool) -> dict[str, Values]:
    """What GPU feature discovery says about nodes of POOL, as far as the policy tells (node-labels.yaml).

    SHARING is None where it isn't known. The labels of whole GPUs speak of the resource nvidia.com/gpu alone."""
    labels: dict[str, Values] = {"nvidia.com/gpu.sharing-strategy": None}
    if sharing is not None and not cut:
        shared = sharing.replicas(keys.GPU) > 1
        strategy = {"mps": "mps", "timeSlicing": "time-slicing"}[sharing.kind] if shared else "none"
        labels["nvidia.com/gpu.sharing-strategy"] = frozenset([strategy])
        labels["nvidia.com/gpu.replicas"] = frozenset([str(sharing.labelled(keys.GPU))])
    if (product := pool.product) is not None:
        major, _, minor = product.compute_capability.partition(".")
        labels["nvidia.com/gpu.family"] = frozenset([product.family])
        labels["nvidia.com/gpu.compute.major"] = frozenset([major])
        labels["nvidia.com/gpu.compute.minor"] = frozenset([minor or "0"])
        labels[keys.MIG_CAPABLE] = frozenset(["true" if product.mig_capable else "false"])
    if pool.said.gpusPerNode is not None and not cut:
        labels["nvidia.com/gpu.count"] = frozenset([str(pool.said.gpusPerNode)])
    return labels


def _product(pool: Pool, sharing: PoolSharing | None, *, cut: bool) -> Values:
    """The label nvidia.com/gpu.product of nodes of POOL, None where it isn't known. It ends with -SHARED where
    nvidia.com/gpu is shared and keeps its name (seen on a GPU, tests/hardware), and with strategy single it has the
    profile, a plus in it as a dot (NVIDIA/k8s-device-plugin, internal/lm)."""
    name = pool.said.gpuProduct
    if not name or sharing is None:
        return None
    if cut and pool.spec.mig.strategy == "single":
        profiles = {profile for group in pool.groups or () for profile in group.layout or {"": 0}}
        if len(profiles) != 1 or "" in profiles:
            return None
        name = f"{name}-MIG-{profiles.pop().replace('+', '.')}"
    shared = sharing.replicas(keys.GPU) > 1 and not sharing.renamed
    return frozenset([f"{name}-SHARED" if shared else name])
