"""What tenants are given: quotas over the names that nodes offer, namespaces, priorities, and the rules for their pods.

Solves: a quota bounds the names that it has, so a tenant with four of one has all of the others. Those that a tenant
is not given stand in its quota with 0. Queues, Kueue's or those of the KAI scheduler, are made of the same table. Kueue
takes the first flavor of a queue that has room, so a pool is a flavor, with the labels and taints by which it is known.
"""

from collections.abc import Iterator

from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...model import Body
from ...policy.language.guards import knows_policies
from ...policy.language.tenancy import Queues, Tenancy, Tenant
from ..parts.common_inputs import Whole
from ..parts.pod import sparse
from ..parts.template import data, template
from .tenant_pods import Offered, tenant_pods

HARD = ("NoSchedule", "NoExecute")


def tenancy(cluster: Cluster) -> Whole | None:
    """None where the policy has neither tenants nor priorities, and asks for no exception."""
    return Whole.of(_objects(cluster, cluster.spec.tenancy)) if cluster.spec.tenancy else None


def _objects(cluster: Cluster, tenancy: Tenancy) -> Iterator[Body]:
    spec = cluster.spec
    for one in tenancy.priorities:
        preempts = "PreemptLowerPriority" if one.preempts else "Never"
        yield template(__file__, "priority", **{**dict(one), "preempts": preempts})
    if tenancy.exceptions.kyverno:
        excepted = [{"policyName": each, "ruleNames": ["*"]} for each in tenancy.exceptions.kyverno]
        yield template(__file__, "exception", namespace=spec.cluster.namespace, excepted=excepted)
    for each in tenancy.tenants:
        yield from of(each, _quota(cluster, tenancy, each))
    if tenancy.tenants and tenancy.admission.mode != "Off" and knows_policies(spec):
        own = (spec.hostPaths.kubeletRootDir, spec.hostPaths.driverInstallDir, spec.toolkit.installDir)
        folders = dict.fromkeys((*data(__file__, "folders"), *own))
        yield from tenant_pods(tenancy, offered(cluster), [*folders])


def _quota(cluster: Cluster, tenancy: Tenancy, tenant: Tenant) -> dict[str, int]:
    """What TENANT has. In a cohort it may have what all have of what its queue covers; that says what is its own."""
    grants = cluster.tenancy[0]
    own = {grant.resource for grant in grants if grant.tenant == tenant.name}
    lent = own if tenancy.queues is not None and tenancy.queues.borrow else set[str]()
    quota = {name: 0 for pool in cluster.capacity for name in sorted(pool.units)}
    for grant in grants:
        if grant.tenant == tenant.name or grant.resource in lent:
            quota[grant.resource] += grant.number
    return quota


def offered(cluster: Cluster) -> tuple[Offered, ...]:
    """The resources that nodes of pools advertise, by name."""
    by_name = cluster.offer.tolerated_by_name
    by_resource: dict[str, Offered] = {}
    for pool, capacity in zip(cluster.pools, cluster.capacity, strict=True):
        for name, unit in capacity.units.items():
            hard = [each for each in pool.said.taints if each.effect in HARD and not (by_name and each.key == name)]
            taints = tuple((each.key, each.value or "", each.effect) for each in hard)
            before = by_resource.get(name)
            free = not taints or (before is not None and not before.taints)
            by_resource[name] = Offered(
                name=name,
                taints=() if free else (*(before.taints if before else ()), taints),
                shared=unit.shared_by > 1 and (before is None or before.shared),
            )
    return tuple(by_resource[name] for name in sorted(by_resource))


def of(tenant: Tenant, quota: dict[str, int]) -> Iterator[Body]:
    """The objects of TENANT's namespace, with QUOTA by resource."""
    words = {"home": tenant.home, "tenant": tenant.name}
    if tenant.createNamespace:
        yield template(__file__, "namespace", **words)
    hard = {f"requests.{name}": str(number) for name, number in sorted(quota.items())}
    yield template(__file__, "quota", **words, spec={"hard": hard})
    if limits := sparse(**tenant.limits.model_dump()) if tenant.limits else {}:
        yield template(__file__, "limits", **words, limits={"type": "Container", **limits})


# --- queues -----------------------------------------------------------------------------------------------------------


def queues(cluster: Cluster) -> Whole | None:
    """None where the policy asks for no queues, and where no tenant is given anything."""
    tenancy, (grants, _) = cluster.spec.tenancy, cluster.tenancy
    if tenancy is None or tenancy.queues is None or not grants:
        return None
    quotas = dict[str, dict[str, dict[str, int]]]()
    for grant in grants:
        quotas.setdefault(grant.tenant, {}).setdefault(grant.pool, {})[grant.resource] = grant.number
    held = [(each, quotas[each.name]) for each in tenancy.tenants if each.name in quotas]
    return Whole.of(
        _kai(tenancy.queues, held) if tenancy.queues.kind == "kai" else _kueue(cluster, tenancy.queues, held)
    )


def _kai(said: Queues, held: list[tuple[Tenant, dict[str, dict[str, int]]]]) -> Iterator[Body]:
    yield template(__file__, "kai", name=said.cohort, parent="", quota=-1, limit=-1)
    for tenant, quotas in held:
        quota = sum(number for part in quotas.values() for number in part.values())
        limit = -1 if said.borrow else quota
        yield template(__file__, "kai", name=tenant.name, parent=said.cohort, quota=quota, limit=limit)


def _kueue(cluster: Cluster, said: Queues, held: list[tuple[Tenant, dict[str, dict[str, int]]]]) -> Iterator[Body]:
    given = {name for _, quotas in held for name in quotas}
    yield from (flavor(pool) for pool in cluster.pools if pool.name in given)
    for tenant, quotas in held:
        yield cluster_queue(tenant, quotas, said)
        yield template(__file__, "local_queue", name=said.localQueue, home=tenant.home, queue=tenant.name)


def flavor(pool: Pool) -> Body:
    """The ResourceFlavor of POOL. Its jobs tolerate the pool's taints: they are why they are there."""
    tolerations = [
        sparse(key=each.key, operator="Equal" if each.value else "Exists", value=each.value, effect=each.effect)
        for each in pool.said.taints
    ]
    return template(__file__, "flavor", name=pool.name, labels=pool.selection, tolerations=tolerations)


def cluster_queue(tenant: Tenant, quotas: dict[str, dict[str, int]], said: Queues) -> Body:
    """The ClusterQueue of TENANT. QUOTAS is what is its own, by pool."""
    covered = sorted({name for part in quotas.values() for name in part})
    lent = {} if said.borrow else {"borrowingLimit": "0"}
    beside = {name: str(amount) for name, amount in said.beside.items()}
    flavors = [
        {
            "name": pool,
            "resources": [
                *({"name": name, "nominalQuota": amount} for name, amount in beside.items()),
                *({"name": name, "nominalQuota": str(part.get(name, 0)), **lent} for name in covered),
            ],
        }
        for pool, part in quotas.items()
    ]
    words = {"name": tenant.name, "home": tenant.home, "cohort": said.cohort, "flavors": flavors}
    reclaims = "Any" if said.borrow else "Never"
    return template(__file__, "cluster_queue", **words, reclaims=reclaims, covered=[*beside, *covered])
