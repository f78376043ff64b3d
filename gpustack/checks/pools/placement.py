"""Rules about taints: pods of the stack that they keep away from GPU nodes, tolerations that the API server refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...cluster.autoscaling import startup_taints
from ...cluster.resolve import Cluster
from ...cluster.scheduling import OF_DAEMONSETS, excluded, kept_away, labels_of, toleration_of, tolerations_of, written
from ...model import Resource, dotted
from ...policy.language.daemonsets import Toleration
from ...policy.language.node_pools import NodePool, Taint
from ...policy.language.spec import ClusterPolicySpec
from ..objects.pods import FOREIGN, pod_steps
from ..objects.references import pod_template
from ..rule import Hit, hit, rule
from ..subjects import Render

COMPARING = "TaintTolerationComparisonOperators"
BY_ORIGIN = {"NodeFeatureDiscovery": "spec.nfd.worker.tolerations", "NvidiaDrivers": "spec.drivers"}


@rule("GPU803", "error", over="render")
def untolerated_taint(render: Render) -> Iterator[Hit]:
    """A DaemonSet of the stack that doesn't tolerate a taint of a node pool."""
    tested = [said.acceptance.taint] if (said := render.spec.verify) and said.acceptance else []
    pools = [
        (index, each.said, [*each.said.taints, *startup_taints(each), *tested])
        for index, each in enumerate(render.cluster.pools)
    ]
    if not any(taints for _, _, taints in pools):
        return
    missing: dict[tuple[str, int, str], tuple[NodePool, Taint, list[str]]] = {}
    for resource, pod in render.pods:
        if resource.kind != "DaemonSet" or resource.origin in FOREIGN:
            continue  # nobody says that pods of extraObjects have to run on GPU nodes
        for index, pool, taints in pools:
            if excluded(pod, labels_of(pool)):
                continue
            for taint in kept_away(taints, tolerations_of(pod)):
                if taint.key not in OF_DAEMONSETS:
                    key = where(render, resource), index, written(taint)
                    missing.setdefault(key, (pool, taint, []))[2].append(resource.name)
    for (path, _, _), (pool, taint, names) in missing.items():
        yield _hit(path, pool, taint, names)


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


def _hit(path: str, pool: NodePool, taint: Taint, names: list[str]) -> Hit:
    whose = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more DaemonSets"
    verb = "doesn't" if len(names) == 1 else "don't"
    return hit(path, whose=whose, verb=verb, taint=written(taint), pool_name=pool.name, toleration=toleration_of(taint))


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
        pod = (pod_template(body) or {}).get("spec")
        if isinstance(pod, dict):
            place = dotted(("spec", "extraObjects", index, *pod_steps(body), "tolerations"))
            yield place, tolerations_of(pod)


@rule("GPU819", "error")
def comparing_toleration(cluster: Cluster) -> Iterator[Hit]:
    """A toleration with operator Lt or Gt."""
    kubernetes = cluster.spec.cluster.kubernetesVersion
    for place, tolerations in _tolerations(cluster.spec):
        for index, toleration in enumerate(tolerations):
            operator = toleration.get("operator") if isinstance(toleration, Mapping) else toleration.operator
            if operator in ("Lt", "Gt"):
                yield hit(f"{place}[{index}].operator", operator=operator, gate=COMPARING, kubernetes=kubernetes)
