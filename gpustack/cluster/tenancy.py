"""What each tenant is given, in the resources that nodes offer.

Solves: a policy says "four GPUs of this pool", and a quota counts names, which depend on how the pool's GPUs are cut
and shared. So a part of a pool is looked up in what its nodes advertise (capacity.py); what isn't there is refused and
not rendered as a quota that bounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..api.keys import GPU
from ..catalog.kubernetes import SYSTEMS, is_own
from ..policy.language.tenancy import AS_SHARED, Part, Tenant

if TYPE_CHECKING:
    from .capacity import PoolCapacity, Unit
    from .resolve import Cluster


class Unheld(Exception):  # noqa: N818 - the reason is the value
    """Why a tenant can't be given what the policy says, and what to write."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@dataclass(frozen=True, slots=True)
class Grant:
    """So many of RESOURCE, each a UNIT, of the nodes of POOL for TENANT. PATH is where the policy says it."""

    tenant: str
    pool: str
    resource: str
    number: int
    unit: Unit
    path: str


def grants(cluster: Cluster) -> tuple[list[Grant], list[tuple[str, Unheld]]]:
    """All that tenants are given, in policy order, and what they can't be given, each with its path."""
    held, unheld = list[Grant](), list[tuple[str, Unheld]]()
    tenancy = cluster.spec.tenancy
    home = cluster.spec.cluster.namespace
    if tenancy and tenancy.exceptions.gatekeeper and is_own(home):
        why = f"the namespace {home} is the cluster's own, and no label of it is rendered"
        gatekeeper = Unheld(why, "leave it out, and label it as Gatekeeper says")
        unheld.append(("spec.tenancy.exceptions.gatekeeper", gatekeeper))
    for index, tenant in enumerate(tenancy.tenants if tenancy else ()):
        if tenant.home == home or tenant.home.startswith(SYSTEMS):
            why = f"the namespace {tenant.home} is not a tenant's: pods there look after GPUs, or the cluster"
            unheld.append((f"spec.tenancy.tenants[{index}]", Unheld(why, "write the namespace of the tenant's pods")))
        for name in tenant.pools:
            path = f"spec.tenancy.tenants[{index}].pools.{name}"
            try:
                held += _of_pool(cluster, tenant, name, path)
            except Unheld as reason:
                unheld.append((path, reason))
    return held, unheld


def _of_pool(cluster: Cluster, tenant: Tenant, name: str, path: str) -> Iterator[Grant]:
    """What TENANT gets of the pool NAME. Raises Unheld where its nodes don't offer that."""
    pools, part = {each.name: each for each in cluster.capacity}, tenant.pools[name]
    queues = cluster.spec.tenancy.queues if cluster.spec.tenancy else None
    if name not in pools:
        raise Unheld(f"there is no node pool {name}", f"the pools are {', '.join(pools) or 'not in the policy'}")
    pool = pools[name]
    if not pool.units:
        raise Unheld(f"what nodes of {name} offer isn't known: {'; '.join(pool.unknown)}", "say it in the pool")
    numbers = {resource: _number(resource, part, pool) for resource in pool.per_node}
    asked = {AS_SHARED} if part.gpus else set(part.slices)
    if missing := sorted(asked - {_called(unit) for unit in pool.units.values()}):
        offered = ", ".join(sorted(_called(unit) for unit in pool.units.values()))
        raise Unheld(f"nodes of {name} offer no {missing[0]}", f"they offer {offered}")
    for resource, number in numbers.items():
        unit = pool.units[resource]
        if part.gpus and (unit.profile or unit.shared_by > 1):
            why = f"GPUs of {name} are not handed out whole: one {resource} is {unit}"
            raise Unheld(why, f"write slices: {{{_called(unit)}: N}}, or a share")
        if number and queues and queues.kind == "kai" and (unit.profile or resource != GPU):
            why = f"queues of the KAI scheduler count {GPU}, and one {resource} is {unit}"
            raise Unheld(why, "give the tenant a pool of whole GPUs, or use queues of kind kueue")
        if number:
            yield Grant(tenant.name, name, resource, number, unit, path)


def _number(resource: str, part: Part, pool: PoolCapacity) -> int:
    """How many of RESOURCE the PART of POOL is."""
    unit = pool.units[resource]
    if part.gpus:
        return part.gpus if _called(unit) == AS_SHARED else 0
    if part.slices:
        return part.slices.get(_called(unit), 0)
    total = pool.total[resource]
    if total is None:
        why = f"a share of {pool.name} can't be told: {'; '.join(pool.unknown)}"
        raise Unheld(why, "say it in the pool, or write a number")
    number = total[1] * int((part.share or "").rstrip("%")) // 100
    if not number:
        raise Unheld(f"{part.share} of {total[1]} {resource} is less than one", "write a larger share, or a number")
    return number


def _called(unit: Unit) -> str:
    """What UNIT is called in `slices`."""
    return unit.profile or AS_SHARED
