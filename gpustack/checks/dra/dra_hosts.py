"""Rules about what the DRA driver asks of Kubernetes, of the GPUs, and of the nodes' own services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...catalog import dra
from ..rule import Hit, hit, rule
from .dra import gated

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster


@rule("GPU483", "warning")
def feature_without_its_ground(cluster: Cluster) -> Iterator[Hit]:
    """A feature of the DRA driver that Kubernetes or the GPUs don't carry."""
    kubernetes = cluster.spec.cluster.kubernetesVersion
    lacking = dra.gates_of_kubernetes(kubernetes)
    boards = [pool.product for pool in cluster.pools]
    switched = not boards or any(board is None or board.nvswitch for board in boards)
    for path, gates, _ in gated(cluster.spec):
        for gate in (name for name, on in gates.items() if on):
            if gate in lacking:
                theirs, first = lacking[gate]
                upgrade = f"upgrade the cluster to {first}, " if first else ""
                yield hit(
                    f"spec.{path}.{gate}",
                    "kubernetes",
                    gate=gate,
                    theirs=theirs,
                    kubernetes=kubernetes,
                    upgrade=upgrade,
                )
            if dra.needs_nvswitch(gate) and not switched:
                yield hit(f"spec.{path}.{gate}", "nvswitch", gate=gate)


@rule("GPU485", "note")
def imex_of_the_host(cluster: Cluster) -> Iterator[Hit]:
    """Compute domains on nodes that bring their driver, and perhaps an IMEX service of their own."""
    spec = cluster.spec
    domains = spec.computeDomains.enabled
    if spec.gpuCluster is not None:
        domains = spec.gpuCluster.draDriver.computeDomains.enabled is not False
    for pool in cluster.pools:
        if domains and pool.driver is None and pool.product is not None and pool.product.nvlink_rack:
            yield hit("spec.gpuCluster" if cluster.dra else "spec.computeDomains.enabled", pool=pool.name)
