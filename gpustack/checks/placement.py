"""The rule about pods of the stack that taints keep away from GPU nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..policy.reconciler import runs
from ..policy.scheduling import OF_DAEMONSETS, excluded, kept_away, labels_of, toleration_of, tolerations_of, written
from .pods import FOREIGN
from .rule import Hit, rule

if TYPE_CHECKING:
    from ..model import Resource
    from ..policy.node_pools import NodePool, Taint
    from .subjects import Render

BY_ORIGIN = {"NodeFeatureDiscovery": "spec.nfd.worker.tolerations", "NvidiaDrivers": "spec.drivers"}


@rule("GPU803", "error", over="render")
def untolerated_taint(render: Render) -> Iterator[Hit]:
    """A DaemonSet of the stack that doesn't tolerate a taint of a node pool.

    Its pods stay away without an event. Without the worker of node feature discovery, nothing on the node is labelled,
    and all others stay away too (bug-reports.md B25, B26).

    Bad:
        nodePools:
        - name: training
          os: ubuntu22.04
          taints: [{key: sku, value: gpu, effect: NoSchedule}]

    Good:
        daemonsets:
          tolerations:
          - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
          - {key: sku, operator: Equal, value: gpu, effect: NoSchedule}
        nodePools:
        - name: training
          os: ubuntu22.04
          taints: [{key: sku, value: gpu, effect: NoSchedule}]
    """
    startup = render.spec.reconciler.startupTaints if render.spec.reconciler and runs(render.spec) else []
    pools = [(index, pool, [*pool.taints, *startup]) for index, pool in enumerate(render.spec.nodePools)]
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
    found = BY_ORIGIN.get(resource.origin)
    if found == "spec.drivers":
        names = [index for index, driver in enumerate(render.spec.drivers) if driver.name in resource.name]
        return f"spec.drivers[{names[-1]}].tolerations" if names else found
    if found is None:
        found = "daemonsets.tolerations"
        return f"spec.gpuCluster.{found}" if render.spec.gpuCluster is not None else f"spec.{found}"
    if not render.spec.nfd.worker.tolerations:  # then they are those of all DaemonSets, and built-in ones
        return "spec.gpuCluster.daemonsets.tolerations" if render.spec.gpuCluster else "spec.daemonsets.tolerations"
    return found


def _hit(path: str, pool: NodePool, taint: Taint, names: list[str]) -> Hit:
    whose = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more DaemonSets"
    verb = "doesn't" if len(names) == 1 else "don't"
    return Hit(
        path,
        f"{whose} {verb} tolerate {written(taint)} of node pool {pool.name}",
        "the pods stay away from these nodes without an event, and what stands on them waits",
        f"add {toleration_of(taint)} to {path}",
    )
