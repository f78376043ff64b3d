"""What `verify` holds a cluster against (api/expectations.py), by what its policy means."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.expectations import Expectation, Nodes
from ..model import Body
from .pool import Pool
from .resolve import Cluster


def expectation(cluster: Cluster, rendered: Sequence[Body]) -> Expectation:
    """What CLUSTER is to be, with what it is RENDERED to."""
    section = cluster.spec.reconciler
    taints: list[tuple[str, str]] = [(each.key, each.effect) for each in (section.startupTaints if section else ())]
    return Expectation(
        namespace=cluster.spec.cluster.namespace,
        pools=[*map(nodes, cluster.pools)],
        startup_taints=taints,
        rendered=[*rendered],
    )


def nodes(pool: Pool) -> Nodes:
    """The nodes of POOL."""
    said, driver = pool.said, pool.runs
    return Nodes(
        name=pool.name,
        path=pool.path,
        selection=pool.selection,
        labels=pool.all_labels,
        least=said.count.min if said.count else None,
        most=said.count.max if said.count else None,
        product=said.gpuProduct or "",
        taints=[(each.key, each.effect) for each in said.taints],
        offers={name: -1 if number is None else number for name, number in pool.capacity.per_node.items()},
        cut=said.sharing.mig is not None,
        driver=[*driver.numbers] if driver else [],
        version=driver.version if driver else "",
        brought=bool(driver and driver.brought),
        driver_path=driver.path if driver and driver.brought else pool.path,
    )
