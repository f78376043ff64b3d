"""Node pools whose nodes are the same: what they get must not differ."""

from __future__ import annotations

from collections.abc import Iterator

from ...api import keys
from ...cluster.resolve import Cluster, resolve
from ...policy.language.node_pools import NodePool
from ...policy.language.spec import ClusterPolicySpec
from ..rule import Hit, hit, rule

EXPECTED = (keys.PRODUCT, keys.WORKLOAD)
"""Labels that come from pools, so they tell no nodes apart, unless a pool selects by them."""


def overlaps(spec: ClusterPolicySpec) -> Iterator[tuple[int, int]]:
    """Pairs of pools, each once, of which all nodes of the first belong to the second too.

    A node belongs to every pool whose nodeSelector, os, kernel and ostreeVersion it has. Pools of which only some nodes
    may be the same (one selects by zone, one by size) are left out: nobody knows.
    """
    labels = [_telling(spec, pool) for pool in spec.nodePools]
    for index, mine in enumerate(labels):
        for other, wider in enumerate(labels):
            if other != index and wider.items() <= mine.items() and not (other < index and wider == mine):
                yield index, other


def _telling(spec: ClusterPolicySpec, pool: NodePool) -> dict[str, str]:
    known = {key: value for key, value in resolve(spec).of(pool).known_labels.items() if key not in EXPECTED}
    return {**known, **pool.nodeSelector}


@rule("GPU147", "error")
def pools_with_one_sharing(cluster: Cluster) -> Iterator[Hit]:
    """Nodes that belong to two pools which share their GPUs in different ways."""
    spec = cluster.spec
    if cluster.dra:
        return
    for index, other in overlaps(spec):
        pool, wider = spec.nodePools[index], spec.nodePools[other]
        if pool.sharing != wider.sharing and cluster.of(pool).workload == cluster.of(wider).workload == "container":
            which = index if pool.sharing.model_dump(exclude_none=True) else other
            yield hit(
                f"spec.nodePools[{which}].sharing", pool_name=pool.name, wider=wider.name, both=both(index, other)
            )


def both(index: int, other: int) -> str:
    """The paths of the pools INDEX and OTHER, in order."""
    return f"spec.nodePools[{min(index, other)}] and spec.nodePools[{max(index, other)}]"


@rule("GPU148", "warning")
def pools_with_one_workload(cluster: Cluster) -> Iterator[Hit]:
    """Nodes that belong to two pools with different workloads or vGPU devices."""
    spec = cluster.spec
    for index, other in overlaps(spec):
        pool, wider = spec.nodePools[index], spec.nodePools[other]
        serves, too = cluster.of(pool).workload, cluster.of(wider).workload
        if serves != too:
            field, what = "workload", f"serves {too}, not {serves}"
        elif serves == "vm-vgpu" and cluster.of(pool).vgpu_set != cluster.of(wider).vgpu_set:
            field, what = "vgpu", f"has the vGPU devices {cluster.of(wider).vgpu_set}, not {cluster.of(pool).vgpu_set}"
        else:
            continue
        which = index if getattr(pool, field) not in (None, type(pool.vgpu)()) else other
        yield hit(
            f"spec.nodePools[{which}].{field}",
            pool_name=pool.name,
            wider=wider.name,
            what=what,
            both=both(index, other),
        )
