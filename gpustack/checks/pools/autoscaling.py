"""Rules about `autoscaling` and `readiness`: what an autoscaler can't be told, and what it would take for something
else."""

from __future__ import annotations

from collections.abc import Iterator

from ...cluster import autoscaling
from ...cluster.resolve import Cluster
from ..rule import Hit, hit, rule


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
        keys = [each.key for each in autoscaling.startup_taints(pool)]
        if pool.said.readiness and keys.count(pool.said.readiness.taint) > 1:
            yield hit(f"{pool.path}.readiness.taint", key=pool.said.readiness.taint, of=pool.name)
