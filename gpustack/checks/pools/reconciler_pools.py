"""Rules about pools that whoever labels nodes (the reconciler, node feature discovery, people) can't tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from ...api import keys
from ...api.keys import DEPLOY
from ...cluster import node_labels
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster, resolve
from ...policy.language.reconciler import labelling, runs
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec
    from ..subjects import Render


@rule("GPU823", "error")
def pools_that_discovery_cannot_tell_apart(cluster: Cluster) -> Iterator[Hit]:
    """Labels by node feature discovery, and pools that differ in what it doesn't see."""
    if labelling(cluster.spec) != "nodeFeatureRule":
        return
    for one, other in combinations(cluster.pools, 2):
        differ = one.all_labels != other.all_labels
        if differ and not node_labels.apart(_seen(one.selection), _seen(other.selection)):
            yield hit(other.path, other=other.name, one=one.name)


def _seen(selected: Mapping[str, str]) -> dict[str, str]:
    """The part of a selection that node feature discovery sees."""
    return {key: value for key, value in selected.items() if key.startswith(keys.OS_RELEASE) or key == keys.KERNEL}


@rule("GPU825", "error", over="render")
def pools_that_share_nodes(render: Render) -> Iterator[Hit]:
    """Two pools that want different things of the same nodes."""
    for (_, one, selects), (index, other, selected) in combinations(_policies(render), 2):
        if selects.items() <= selected.items() or selected.items() <= selects.items():
            inner, outer = (other, one) if selects.items() <= selected.items() else (one, other)
            yield hit(f"spec.nodePools[{index}]", inner=inner, outer=outer)


@rule("GPU826", "warning", over="render")
def pools_that_may_share_nodes(render: Render) -> Iterator[Hit]:
    """Two pools that select nodes by different labels, and a node may have both."""
    for (_, one, selects), (index, other, selected) in combinations(_policies(render), 2):
        certain = selects.items() <= selected.items() or selected.items() <= selects.items()
        if not certain and not node_labels.apart(selects, selected):
            yield hit(f"spec.nodePools[{index}].nodeSelector", one=one, other=other)
    yield from _labelled_twice(render.spec)


def _labelled_twice(spec: ClusterPolicySpec) -> Iterator[Hit]:
    """Pools that want different things of nodes which may be the same, where people or their tooling set labels. Those
    whose nodes are the same for certain are others' (GPU137, GPU147, GPU148).
    """
    if labelling(spec) is not None:
        return
    pools = [(pool.name, pool.selection, wants(pool)) for pool in resolve(spec).pools]
    for (_, (one, selects, gets)), (index, (other, selected, wanted)) in combinations(enumerate(pools), 2):
        certain = selects.items() <= selected.items() or selected.items() <= selects.items()
        if gets != wanted and not certain and not node_labels.apart(selects, selected):
            yield hit(f"spec.nodePools[{index}].nodeSelector", "labelled", one=one, other=other)


def wants(pool: Pool) -> tuple[object, ...]:
    """What the labels of a node of POOL come to: its driver, what it serves, and how its GPUs are cut and shared."""
    section = pool.cluster.drivers_by == "section"
    driver = pool.said.driver if section else pool.driver and pool.driver.owner
    vgpus = pool.vgpu_set if pool.workload == "vm-vgpu" else None
    shares = not pool.cluster.dra and pool.workload == "container"
    return driver, pool.workload, vgpus, pool.said.sharing if shares else None


def _policies(render: Render) -> list[tuple[int, str, dict[str, str]]]:
    """Position and name of the first pool of each NodePolicy, and what it selects."""
    if not runs(render.spec) or len(render.spec.nodePools) < 2:
        return []
    position = {pool.name: index for index, pool in enumerate(render.spec.nodePools)}
    specs = [resource.body["spec"] for resource in render.resources if resource.origin == "NodePolicies"]
    of_pools = [each for each in specs if each.get("pools")]
    return sorted((position[each["pools"][0]], each["pools"][0], each["nodeSelector"]) for each in of_pools)


@rule("GPU827", "error")
def selected_by_what_comes_later(cluster: Cluster) -> Iterator[Hit]:
    """A pool that is selected by a label of NVIDIA's, with the reconciler."""
    spec = cluster.spec
    for index, pool in enumerate(spec.nodePools if runs(spec) else ()):
        for key, value in pool.nodeSelector.items():
            kept_off = key.startswith(DEPLOY) and value == "false"  # that is somebody's, and stays
            if key.startswith(keys.NVIDIA) and not kept_off:
                yield hit(f'spec.nodePools[{index}].nodeSelector["{key}"]', pool_name=pool.name, key=key, at_key=True)
