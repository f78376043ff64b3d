"""Inputs of the queues in front of tenants' quotas."""

from __future__ import annotations

from typing import Literal

from ...cluster.resolve import Cluster
from ..parts.common_inputs import Inputs
from .tenancy_inputs import Taints, as_inputs


class FlavorInputs(Inputs):
    """The nodes of a pool: their labels, and their taints as key, value and effect."""

    pool: str
    labels: dict[str, str]
    taints: Taints = ()


class QueueInputs(Inputs):
    """The queue of a tenant: how many of each resource are its own, by pool."""

    tenant: str
    namespace: str
    quotas: dict[str, dict[str, int]]


class QueuesInputs(Inputs):
    """The queues of KIND. `beside` is how much of what isn't a GPU each tenant has in each pool."""

    kind: Literal["kueue", "kai"]
    cohort: str
    borrow: bool
    local_queue: str
    beside: dict[str, str]
    flavors: tuple[FlavorInputs, ...]
    queues: tuple[QueueInputs, ...]


def from_cluster(cluster: Cluster) -> QueuesInputs | None:
    """None where the policy asks for no queues, and where no tenant is given anything."""
    tenancy, (grants, _) = cluster.spec.tenancy, cluster.tenancy
    if tenancy is None or tenancy.queues is None or not grants:
        return None
    queues, quotas = tenancy.queues, dict[str, dict[str, dict[str, int]]]()
    for grant in grants:
        quotas.setdefault(grant.tenant, {}).setdefault(grant.pool, {})[grant.resource] = grant.number
    given = {grant.pool for grant in grants}
    return QueuesInputs(
        kind=queues.kind,
        cohort=queues.cohort,
        borrow=queues.borrow,
        local_queue=queues.localQueue,
        beside={name: str(amount) for name, amount in queues.beside.items()},
        flavors=tuple(
            FlavorInputs(
                pool=pool.name,
                labels=pool.selection,
                taints=as_inputs(pool.said.taints),
            )
            for pool in cluster.pools
            if pool.name in given
        ),
        queues=tuple(
            QueueInputs(tenant=each.name, namespace=each.home, quotas=quotas[each.name])
            for each in tenancy.tenants
            if each.name in quotas
        ),
    )
