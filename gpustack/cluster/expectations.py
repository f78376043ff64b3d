"""What `verify` holds a cluster against (api/expectations.py), by what its policy means, of which `why` asks too."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..api import keys
from ..api.expectations import Expectation, Nodes
from ..catalog import kubernetes
from ..model import Body
from .autoscaling import startup_taints
from .pool import Pool
from .resolve import Cluster


class Expected(Expectation, kw_only=True, frozen=True):
    """An expectation, and the CLUSTER that it is of."""

    cluster: Cluster

    @classmethod
    def of(cls, cluster: Cluster, rendered: Sequence[Body]) -> Expected:
        """What CLUSTER is to be, with what it is RENDERED to."""
        return cls(**msgspec.structs.asdict(expectation(cluster, rendered)), cluster=cluster)


def expectation(cluster: Cluster, rendered: Sequence[Body]) -> Expectation:
    """What CLUSTER is to be, with what it is RENDERED to."""
    pools, facts = [*map(nodes, cluster.pools)], cluster.spec.cluster
    version = kubernetes.minor(facts.kubernetesVersion)
    return Expectation(namespace=facts.namespace, kubernetes=version, pools=pools, rendered=[*rendered])


def nodes(pool: Pool) -> Nodes:
    """The nodes of POOL. A node without a workload's label has the default one."""
    said, driver = pool.said, pool.runs
    usual = {keys.WORKLOAD} if pool.workload == pool.cluster.default_workload else set()
    ours = pool.spec.reconciler.startupTaints if pool.spec.reconciler else ()
    return Nodes(
        name=pool.name,
        path=pool.path,
        selection=pool.selection,
        labels={key: value for key, value in pool.all_labels.items() if key not in usual},
        least=said.count.min if said.count else None,
        most=said.count.max if said.count else None,
        product=said.gpuProduct or "",
        taints=[(each.key, each.effect) for each in said.taints],
        startup=[
            (each.key, each.effect, "spec.reconciler.startupTaints" if each in ours else f"{pool.path}.readiness")
            for each in startup_taints(pool)
        ],
        offers={name: -1 if number is None else number for name, number in pool.capacity.per_node.items()},
        cut=said.sharing.mig is not None,
        driver=[*driver.numbers] if driver else [],
        version=driver.version if driver else "",
        brought=bool(driver and driver.brought),
        driver_path=driver.path if driver and driver.brought else pool.path,
    )
