"""Rules about `tenancy`: what nodes don't offer, more than there is, and what doesn't keep tenants apart."""

from collections import Counter
from collections.abc import Iterator

from ...cluster.resolve import Cluster
from ..objects.gaps import BUILT_IN
from ..rule import Hit, hit, rule

BELIEVES = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
"""The toolkit's variable for whether it believes an image that says which GPUs are visible."""

CLASS = "PriorityClass"


@rule("GPU730", "error")
def not_offered_to_a_tenant(cluster: Cluster) -> Iterator[Hit]:
    """A tenant is given what the nodes of the pool don't offer."""
    for path, reason in cluster.tenancy[1]:
        yield hit(path, remedy=reason.remedy, reason=reason.why, at_key=True)


@rule("GPU731", "warning")
def more_than_there_is(cluster: Cluster) -> Iterator[Hit]:
    """Tenants are given more of a pool than it has."""
    given = Counter[tuple[str, str]]()
    for grant in cluster.tenancy[0]:
        given[grant.pool, grant.resource] += grant.number
    totals = {pool.name: pool.total for pool in cluster.capacity}
    for (pool, resource), number in given.items():
        total = totals[pool].get(resource)
        if total is not None and number > total[1]:
            yield hit("spec.tenancy.tenants", number=number, resource=resource, of=pool, total=total[1])


@rule("GPU732", "note")
def shared_by_tenants(cluster: Cluster) -> Iterator[Hit]:
    """Tenants share GPUs in a way that doesn't keep them apart."""
    tenants: dict[str, dict[str, None]] = {}
    for grant in cluster.tenancy[0]:
        if grant.unit.shared_by > 1:
            tenants.setdefault(grant.pool, {})[grant.tenant] = None
    for pool in cluster.pools:
        if len(who := tenants.get(pool.name, {})) > 1:
            bounds = "MPS bounds memory alone" if pool.said.sharing.mps else "time-slicing bounds no memory"
            yield hit(f"{pool.path}.sharing", who=", ".join(who), of=pool.name, bounds=bounds)


@rule("GPU733", "warning")
def images_are_believed(cluster: Cluster) -> Iterator[Hit]:
    """There are tenants, and an image may say which GPUs its containers see."""
    spec = cluster.spec
    if spec.tenancy is None or not spec.tenancy.tenants or cluster.dra or not spec.toolkit.enabled:
        return
    if not any(entry.name == BELIEVES and entry.value == "false" for entry in spec.toolkit.env or ()):
        first = "" if spec.cdi.enabled else "set spec.cdi.enabled: true, and "
        yield hit("spec.toolkit.env", first=first)


@rule("GPU734", "warning")
def one_name_for_several_things(cluster: Cluster) -> Iterator[Hit]:
    """A tenant is given something whose name is that of something else in another pool."""
    queues = cluster.spec.tenancy.queues if cluster.spec.tenancy else None
    for grant in cluster.tenancy[0]:
        for pool in cluster.capacity:
            other = pool.units.get(grant.resource)
            whole = other is not None and not any(unit.shared_by > 1 or unit.profile for unit in (other, grant.unit))
            if other is not None and other != grant.unit and not (whole and queues and queues.kind == "kueue"):
                yield hit(
                    grant.path,
                    "whole" if whole else "parts",
                    tenant=grant.tenant,
                    resource=grant.resource,
                    of=grant.pool,
                    beside=pool.name,
                    given=grant.unit,
                    other=other,
                )


@rule("GPU735", "error")
def priorities_of_nobody(cluster: Cluster) -> Iterator[Hit]:
    """A tenant's pods need a PriorityClass that isn't there."""
    spec = cluster.spec
    if spec.tenancy is None:
        return
    there = {name for kind, name in BUILT_IN if kind == CLASS} | {each.name for each in spec.tenancy.priorities}
    there |= {each.name for each in spec.references if each.kind == CLASS}
    there |= {each["metadata"]["name"] for each in spec.extraObjects if each["kind"] == CLASS}
    for index, tenant in enumerate(spec.tenancy.tenants):
        for place, name in enumerate(tenant.priorities):
            if name not in there:
                path = f"spec.tenancy.tenants[{index}].priorities[{place}]"
                yield hit(path, tenant=tenant.name, name=name)
