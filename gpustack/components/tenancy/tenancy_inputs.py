"""What tenants are given: quotas over the names that nodes offer, namespaces, priorities, and the rules for their pods.

Solves: a quota bounds the names that it has, so a tenant with four of one has all of the others. Those that a tenant
is not given stand in its quota with 0. Queues, Kueue's or those of the KAI scheduler, are made of the same table. Kueue
takes the first flavor of a queue that has room, so a pool is a flavor, with the labels and taints by which it is known.
"""

from collections.abc import Iterator
from typing import Any

from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...model import Body
from ...policy.language.guards import knows_policies
from ...policy.language.tenancy import Priority, Queues, Tenancy, Tenant
from ..parts.common_inputs import Whole
from ..parts.kube import metadata
from ..parts.pod import sparse
from .tenant_pods import Offered, tenant_pods

QUOTA = "gpustack-gpus"
TENANT = "gpustack.dev/tenant"
"""The label with the name of the tenant."""
HARD = ("NoSchedule", "NoExecute")
NODE_DIRS = (
    *("/dev", "/proc", "/sys", "/etc", "/run", "/var/run", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot", "/root"),
    *("/opt/cni", "/opt/nvidia", "/var/spool/cron", "/var/snap"),
    *(f"/var/lib/{name}" for name in ("containerd", "containers", "docker", "etcd", "rancher", "k0s")),
)
"""Folders by which a container reaches GPUs that it didn't ask for: devices, sockets of runtimes and drivers, and what
the node runs as it is told there.
"""

KINDS = ["Pod", "DaemonSet", "Deployment", "Job", "CronJob"]
"""What Kyverno looks at of the stack: pods, and the templates of them."""
KUEUE, KAI = "kueue.x-k8s.io/v1beta2", "scheduling.run.ai/v2"
HOME = "kubernetes.io/metadata.name"
FREE: Body = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
"""Of KAI: as much as there is."""


def tenancy(cluster: Cluster) -> Whole | None:
    """None where the policy has neither tenants nor priorities, and asks for no exception."""
    return Whole.of(_objects(cluster, cluster.spec.tenancy)) if cluster.spec.tenancy else None


def _objects(cluster: Cluster, tenancy: Tenancy) -> Iterator[Body]:
    yield from map(priority, tenancy.priorities)
    if tenancy.exceptions.kyverno:
        yield exception(tenancy.exceptions.kyverno, cluster.spec.cluster.namespace)
    for each in tenancy.tenants:
        yield from of(each, _quota(cluster, tenancy, each))
    if tenancy.tenants and tenancy.admission.mode != "Off" and knows_policies(cluster.spec):
        spec = cluster.spec
        own = (spec.hostPaths.kubeletRootDir, spec.hostPaths.driverInstallDir, spec.toolkit.installDir)
        yield from tenant_pods(tenancy, offered(cluster), [*dict.fromkeys((*NODE_DIRS, *own))])


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


def exception(policies: list[str], namespace: str) -> Body:
    """The PolicyException of Kyverno (api/kyverno/v2) for all rules of POLICIES, in the stack's NAMESPACE alone."""
    match = {"any": [{"resources": {"kinds": KINDS, "namespaces": [namespace]}}]}
    excepted = [{"policyName": each, "ruleNames": ["*"]} for each in policies]
    spec = {"background": True, "match": match, "exceptions": excepted}
    return _object("kyverno.io/v2", "PolicyException", metadata("gpustack", namespace), spec=spec)


def _object(api: str, kind: str, meta: Body, **more: Any) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


def priority(one: Priority) -> Body:
    """The PriorityClass ONE."""
    preempts = "PreemptLowerPriority" if one.preempts else "Never"
    more = {"value": one.value, "preemptionPolicy": preempts, **sparse(description=one.description)}
    return _object("scheduling.k8s.io/v1", "PriorityClass", metadata(one.name), **more)


def of(tenant: Tenant, quota: dict[str, int]) -> Iterator[Body]:
    """The objects of TENANT's namespace, with QUOTA by resource."""
    labels = {TENANT: tenant.name}
    if tenant.createNamespace:
        yield _object("v1", "Namespace", metadata(tenant.home, labels=labels))
    hard = {f"requests.{name}": str(number) for name, number in sorted(quota.items())}
    yield _object("v1", "ResourceQuota", metadata(QUOTA, tenant.home, labels=labels), spec={"hard": hard})
    if limits := sparse(**tenant.limits.model_dump()) if tenant.limits else {}:
        meta = metadata("gpustack-containers", tenant.home, labels=labels)
        yield _object("v1", "LimitRange", meta, spec={"limits": [{"type": "Container", **limits}]})


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
    yield kai(said.cohort, FREE)
    for tenant, quotas in held:
        quota = sum(number for part in quotas.values() for number in part.values())
        gpu = {"quota": quota, "limit": -1 if said.borrow else quota, "overQuotaWeight": 1}
        yield kai(tenant.name, gpu, said.cohort)


def _kueue(cluster: Cluster, said: Queues, held: list[tuple[Tenant, dict[str, dict[str, int]]]]) -> Iterator[Body]:
    given = {name for _, quotas in held for name in quotas}
    yield from (flavor(pool) for pool in cluster.pools if pool.name in given)
    for tenant, quotas in held:
        yield cluster_queue(tenant, quotas, said)
        spec = {"clusterQueue": tenant.name, "stopPolicy": "None"}
        yield _object(KUEUE, "LocalQueue", metadata(said.localQueue, tenant.home), spec=spec)


def kai(name: str, gpu: Body, parent: str = "") -> Body:
    """The queue NAME of the KAI scheduler, below PARENT."""
    resources = {"cpu": dict(FREE), "memory": dict(FREE), "gpu": dict(gpu)}
    return _object(KAI, "Queue", metadata(name), spec={**sparse(parentQueue=parent), "resources": resources})


def flavor(pool: Pool) -> Body:
    """The ResourceFlavor of POOL. Its jobs tolerate the pool's taints: they are why they are there."""
    tolerations = [
        sparse(key=each.key, operator="Equal" if each.value else "Exists", value=each.value, effect=each.effect)
        for each in pool.said.taints
    ]
    spec = sparse(nodeLabels=dict(pool.selection), tolerations=tolerations)
    return _object(KUEUE, "ResourceFlavor", metadata(pool.name), spec=spec)


def cluster_queue(tenant: Tenant, quotas: dict[str, dict[str, int]], said: Queues) -> Body:
    """The ClusterQueue of TENANT, with what the API server would fill in. QUOTAS is what is its own, by pool."""
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
    spec: dict[str, Any] = {
        "cohortName": said.cohort,
        "namespaceSelector": {"matchLabels": {HOME: tenant.home}},
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "borrowWithinCohort": {"policy": "Never"},
            "reclaimWithinCohort": "Any" if said.borrow else "Never",
            "withinClusterQueue": "LowerPriority",
        },
        "resourceGroups": [{"coveredResources": [*beside, *covered], "flavors": flavors}],
    }
    return _object(KUEUE, "ClusterQueue", metadata(tenant.name), spec=spec)
