"""Rules about GPUs that pods share: what MPS and time-slicing can't do, and what they don't keep apart."""

from __future__ import annotations

from collections.abc import Iterator

from ...api import keys
from ...catalog import plugin_config
from ...cluster.mig_layouts import product_of
from ...cluster.plugin_sharing import STRATEGY, environment, strategy
from ...cluster.resolve import Cluster
from ...policy.configurations.plugin_text import Entry, Shared
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule
from .plugin_config import MIG, Named, configs


@rule("GPU503", "error")
def sharing_that_fails(cluster: Cluster) -> Iterator[Hit]:
    """Sharing that the device plugin or MPS can't do."""
    spec = cluster.spec
    for named in configs(spec):
        mps, sliced = named.config.sharing.get("mps"), named.config.sharing.get("timeSlicing")
        if mps and sliced:
            yield hit(named.path, "both", named=named.name, inside=sliced.place)
        yield from _mps(spec, named, mps) if mps else ()
    for index, pool in enumerate(spec.nodePools):
        if pool.sharing.mps and not cluster.dra:
            path = f"spec.nodePools[{index}].sharing.mps"
            if strategy(spec, None) == "mixed":
                yield _mixed(path, f"node pool {pool.name} shares by MPS")
            most = _most_clients([pool])
            if pool.sharing.mps.replicas > most:
                yield _too_many(f"{path}.replicas", pool.sharing.mps.replicas, most, pool.gpuProduct or "")


def choosers(spec: ClusterPolicySpec, name: str) -> list[NodePool]:
    """The pools whose nodes get the configuration NAME."""
    default = spec.devicePlugin.config.default or ""
    return [pool for pool in spec.nodePools if (pool.nodeSelector.get(keys.PLUGIN_CONFIG) or default) == name]


def _mps(spec: ClusterPolicySpec, named: Named, mps: Shared) -> Iterator[Hit]:
    if strategy(spec, named.config) == "mixed":
        own = None if environment(spec, STRATEGY) else named.config.flags.get(STRATEGY)
        yield _mixed(named.path, f"{named.name}: sharing by MPS", own[1] if own else mps.place)
    most = _most_clients(choosers(spec, named.name))
    products = {pool.gpuProduct for pool in choosers(spec, named.name) if _most_clients([pool]) == most}
    for entry in mps.entries:
        if entry.name.startswith(MIG):
            yield hit(named.path, "instances", named=named.name, entry=entry.name, inside=entry.place)
        if entry.replicas > most:
            yield _too_many(
                named.path,
                entry.replicas,
                most,
                ", ".join(sorted(filter(None, products))),
                name=named.name,
                entry=entry,
            )


def _mixed(path: str, whose: str, place: tuple[int, int] | None = None) -> Hit:
    return hit(path, "mixed", whose=whose, inside=place)


def _most_clients(pools: list[NodePool]) -> int:
    """The most clients that MPS serves on every GPU of POOLS."""
    products = [product_of(pool) for pool in pools]
    limits = [plugin_config.max_mps_replicas(product.compute_capability) for product in products if product]
    return min(limits, default=max(limit["replicas"] for limit in plugin_config.sharing()["mps_max_replicas"]))


def _too_many(path: str, wanted: int, most: int, products: str, *, name: str = "", entry: Entry | None = None) -> Hit:
    return Hit(
        path,
        f"{name}: replicas is {wanted} under mps" if name else f"{wanted} replicas by MPS",
        f"MPS serves {most} clients of a GPU at most" + (f", on {products}" if products else "") + ": the others fail",
        f"write {most} or less, or use timeSlicing",
        entry.replicas_place if entry else None,
    )


@rule("GPU510", "note")
def what_sharing_isolates(cluster: Cluster) -> Iterator[Hit]:
    """Pods that share a GPU, and what that does not keep apart."""
    spec = cluster.spec
    for index, pool in enumerate(spec.nodePools):
        for kind in ("timeSlicing", "mps"):
            if getattr(pool.sharing, kind) is not None:
                part = "one MIG instance" if pool.sharing.mig else "one GPU"
                yield _shares(f"spec.nodePools[{index}].sharing.{kind}", f"node pool {pool.name}", kind, part)
    for named in configs(spec):
        kind = named.config.kind
        if kind and named.config.sharing[kind].entries:
            place = named.config.sharing[kind].place
            yield _shares(named.path, f"nodes with {named.name}", kind, "one GPU", place)


def _shares(path: str, whose: str, kind: str, part: str, place: tuple[int, int] | None = None) -> Hit:
    if kind == "mps":
        why = "MPS gives each an equal part of the memory, but a fault of one ends all that share the GPU"
    else:
        why = "each sees all of its memory, so one can take what the others need, and a fault of one can end all"
    return hit(path, why=why, whose=whose, part=part, inside=place)
