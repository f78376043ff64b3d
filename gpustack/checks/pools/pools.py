"""Rules about node pools: those whose nodes are the same, so that what they get must not differ; those that the one who
labels nodes (the reconciler, node feature discovery, people) can't tell apart; taints that keep pods of the stack away;
and what an autoscaler can't be told, or would take for something else.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

from ...api import keys
from ...cluster import autoscaling, node_labels
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...cluster.scheduling import OF_DAEMONSETS, excluded, kept_away, labels_of, toleration_of, tolerations_of, written
from ...model import Resource, dotted
from ...policy.language.daemonsets import Toleration
from ...policy.language.reconciler import labelling, runs
from ...policy.language.spec import ClusterPolicySpec
from ..objects.pods import FOREIGN, pod_steps
from ..objects.references import pod_of
from ..rule import Hit, hit, rule
from ..subjects import Render

EXPECTED = (keys.PRODUCT, keys.WORKLOAD)
"""Labels that come from pools, so they tell no nodes apart, unless a pool selects by them."""


def overlaps(cluster: Cluster) -> Iterator[tuple[Pool, Pool]]:
    """Pairs of pools, each once, of which all nodes of the first belong to the second too.

    A node belongs to every pool whose nodeSelector, os, kernel and ostreeVersion it has. Pools of which only some nodes
    may be the same (one selects by zone, one by size) are left out: nobody knows."""
    for (index, mine), (other, wider) in permutations(enumerate(map(_telling, cluster.pools)), 2):
        if wider.items() <= mine.items() and not (other < index and wider == mine):
            yield cluster.pools[index], cluster.pools[other]


def _telling(pool: Pool) -> dict[str, str]:
    known = {key: value for key, value in pool.known_labels.items() if key not in EXPECTED}
    return {**known, **pool.said.nodeSelector}


@rule("GPU147", "error")
def pools_with_one_sharing(cluster: Cluster) -> Iterator[Hit]:
    """Nodes that belong to two pools which share their GPUs in different ways."""
    for pool, wider in overlaps(cluster) if not cluster.dra else ():
        mine = pool.said.sharing
        if mine != wider.said.sharing and pool.workload == wider.workload == "container":
            path = f"{(pool if mine.model_dump(exclude_none=True) else wider).path}.sharing"
            yield hit(path, pool_name=pool.name, wider=wider.name, both=both(pool, wider))


def both(*pools: Pool) -> str:
    """The paths of two POOLS, in order."""
    return " and ".join(pool.path for pool in sorted(pools, key=lambda pool: pool.index or 0))


@rule("GPU148", "warning")
def pools_with_one_workload(cluster: Cluster) -> Iterator[Hit]:
    """Nodes that belong to two pools with different workloads or vGPU devices."""
    for pool, wider in overlaps(cluster):
        if pool.workload != wider.workload:
            field, what = "workload", f"serves {wider.workload}, not {pool.workload}"
        elif pool.workload == "vm-vgpu" and pool.vgpu_set != wider.vgpu_set:
            field, what = "vgpu", f"has the vGPU devices {wider.vgpu_set}, not {pool.vgpu_set}"
        else:
            continue
        said = getattr(pool.said, field) not in (None, type(pool.said.vgpu)())
        path = f"{(pool if said else wider).path}.{field}"
        yield hit(path, pool_name=pool.name, wider=wider.name, what=what, both=both(pool, wider))


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
        if _certain(selects, selected):
            inner, outer = (other, one) if selects.items() <= selected.items() else (one, other)
            yield hit(f"spec.nodePools[{index}]", inner=inner, outer=outer)


@rule("GPU826", "warning", over="render")
def pools_that_may_share_nodes(render: Render) -> Iterator[Hit]:
    """Two pools that select nodes by different labels, and a node may have both."""
    for (_, one, selects), (index, other, selected) in combinations(_policies(render), 2):
        if not _certain(selects, selected) and not node_labels.apart(selects, selected):
            yield hit(f"spec.nodePools[{index}].nodeSelector", one=one, other=other)
    yield from _labelled_twice(render.cluster)


def _labelled_twice(cluster: Cluster) -> Iterator[Hit]:
    """Pools that want different things of nodes which may be the same, where people or their tooling set labels. Those
    whose nodes are the same for certain are others' (GPU137, GPU147, GPU148)."""
    if labelling(cluster.spec) is not None:
        return
    for one, other in combinations(cluster.pools, 2):
        known = _certain(one.selection, other.selection) or node_labels.apart(one.selection, other.selection)
        if not known and wants(one) != wants(other):
            yield hit(f"{other.path}.nodeSelector", "labelled", one=one.name, other=other.name)


def _certain(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether all nodes with the labels ONE have the labels OTHER, or the other way round."""
    return one.items() <= other.items() or other.items() <= one.items()


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
    for pool in cluster.pools if runs(cluster.spec) else ():
        for key, value in pool.said.nodeSelector.items():
            kept_off = key.startswith(keys.DEPLOY) and value == "false"  # that is somebody's, and stays
            if key.startswith(keys.NVIDIA) and not kept_off:
                yield hit(f'{pool.path}.nodeSelector["{key}"]', pool_name=pool.name, key=key, at_key=True)


COMPARING = "TaintTolerationComparisonOperators"
BY_ORIGIN = {"NodeFeatureDiscovery": "spec.nfd.worker.tolerations", "NvidiaDrivers": "spec.drivers"}


@rule("GPU803", "error", over="render")
def untolerated_taint(render: Render) -> Iterator[Hit]:
    """A DaemonSet of the stack that doesn't tolerate a taint of a node pool."""
    tested = [said.acceptance.taint] if (said := render.spec.verify) and said.acceptance else []
    pools = [
        (each.said, [*each.said.taints, *autoscaling.startup_taints(each), *tested]) for each in render.cluster.pools
    ]
    missing: dict[tuple[str, str, str, str], list[str]] = {}
    for resource, pod in render.pods if any(taints for _, taints in pools) else ():
        if resource.kind != "DaemonSet" or resource.origin in FOREIGN:
            continue  # nobody says that pods of extraObjects have to run on GPU nodes
        for pool, taints in pools:
            away = [] if excluded(pod, labels_of(pool)) else kept_away(taints, tolerations_of(pod))
            for taint in (each for each in away if each.key not in OF_DAEMONSETS):
                key = where(render, resource), pool.name, written(taint), toleration_of(taint)
                missing.setdefault(key, []).append(resource.name)
    for (path, pool_name, taint, toleration), names in missing.items():
        whose = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more DaemonSets"
        verb = "doesn't" if len(names) == 1 else "don't"
        yield hit(path, whose=whose, verb=verb, taint=taint, pool_name=pool_name, toleration=toleration)


def where(render: Render, resource: Resource) -> str:
    """The path of the tolerations of RESOURCE."""
    path = BY_ORIGIN.get(resource.origin)
    if path == "spec.drivers":
        names = [index for index, driver in enumerate(render.spec.drivers) if driver.name in resource.name]
        return f"spec.drivers[{names[-1]}].tolerations" if names else path
    if path is None:
        path = "daemonsets.tolerations"
        return f"spec.gpuCluster.{path}" if render.cluster.dra else f"spec.{path}"
    if render.spec.nfd.worker.tolerations is None:  # then they are those of all DaemonSets, and built-in ones
        return "spec.gpuCluster.daemonsets.tolerations" if render.spec.gpuCluster else "spec.daemonsets.tolerations"
    return path


def _tolerations(spec: ClusterPolicySpec) -> Iterator[tuple[str, Sequence[Toleration | Mapping[str, Any]]]]:
    """The tolerations that SPEC gives pods, with their places."""
    yield "spec.daemonsets.tolerations", spec.daemonsets.tolerations
    yield "spec.nfd.worker.tolerations", spec.nfd.worker.tolerations or ()
    if spec.gpuCluster and spec.gpuCluster.daemonsets.tolerations != spec.daemonsets.tolerations:
        yield "spec.gpuCluster.daemonsets.tolerations", spec.gpuCluster.daemonsets.tolerations
    if spec.reconciler:
        yield "spec.reconciler.tolerations", spec.reconciler.tolerations or ()
    for index, driver in enumerate(spec.drivers):
        yield f"spec.drivers[{index}].tolerations", driver.tolerations
    for index, body in enumerate(spec.extraObjects):
        place = dotted(("spec", "extraObjects", index, *pod_steps(body), "tolerations"))
        yield place, tolerations_of(pod_of(body))


@rule("GPU819", "error")
def comparing_toleration(cluster: Cluster) -> Iterator[Hit]:
    """A toleration with operator Lt or Gt."""
    kubernetes = cluster.spec.cluster.kubernetesVersion
    for place, tolerations in _tolerations(cluster.spec):
        for index, toleration in enumerate(tolerations):
            operator = toleration.get("operator") if isinstance(toleration, Mapping) else toleration.operator
            if operator in ("Lt", "Gt"):
                yield hit(f"{place}[{index}].operator", operator=operator, gate=COMPARING, kubernetes=kubernetes)


@rule("GPU750", "error")
def not_scaled_as_said(cluster: Cluster) -> Iterator[Hit]:
    """A pool can't be scaled as the policy says."""
    for pool in cluster.pools:
        for path, what, why, remedy in autoscaling.problems(pool):
            yield hit(path, remedy=remedy, what=what, because=why)


@rule("GPU751", "error")
def another_instance_type(cluster: Cluster) -> Iterator[Hit]:
    """An instance type has other GPUs than the pool says."""
    for pool in cluster.pools:
        named = {f"{pool.path}.nodeSelector.{autoscaling.INSTANCE}": pool.said.nodeSelector.get(autoscaling.INSTANCE)}
        if pool.said.autoscaling.karpenter:
            types = enumerate(pool.said.autoscaling.karpenter.instanceTypes)
            named |= {f"{pool.path}.autoscaling.karpenter.instanceTypes[{index}]": each for index, each in types}
        for path, name in named.items():
            product, number = autoscaling.facts()["instances"].get(name, ("", 0))
            count, called = pool.said.gpusPerNode or number, pool.said.gpuProduct or product
            if product and (count != number or product not in called.split("-")):
                said = f"gpusPerNode is {count}" if count != number else f"gpuProduct is {called}"
                yield hit(path, of=pool.name, type=name, has=f"{number} {product}", said=said)


@rule("GPU752", "warning")
def windows_that_clocks_close(cluster: Cluster) -> Iterator[Hit]:
    """Karpenter is to keep to windows that the change of clocks leaves no time of."""
    for pool in cluster.pools:
        shut = autoscaling.closed(pool.budget.windows)
        if pool.said.autoscaling.karpenter and shut == [("", autoscaling.WEEK)]:
            yield hit(f"{pool.path}.autoscaling.karpenter", of=pool.name, zone=pool.budget.windows[0].timeZone)


@rule("GPU753", "note")
def needs_overlays(cluster: Cluster) -> Iterator[Hit]:
    """Karpenter is told of shared or cut GPUs by a NodeOverlay, which has to be switched on."""
    for pool in cluster.pools:
        if pool.said.autoscaling.karpenter and autoscaling.overlay(pool):
            yield hit(f"{pool.path}.autoscaling.karpenter", of=pool.name)


@rule("GPU754", "error")
def taint_of_two(cluster: Cluster) -> Iterator[Hit]:
    """Two programs take away the same taint."""
    for pool in cluster.pools:
        taints = [each.key for each in autoscaling.startup_taints(pool)]
        if pool.said.readiness and taints.count(pool.said.readiness.taint) > 1:
            yield hit(f"{pool.path}.readiness.taint", key=pool.said.readiness.taint, of=pool.name)
