"""Inputs of what tenants are given, and of what their pods may not do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ...cluster.resolve import Cluster
from ...policy.language.guards import knows_policies
from ...policy.language.node_pools import Taint
from ...policy.language.tenancy import Admission, Tenancy, Tenant
from ..parts.common_inputs import Inputs

HARD = ("NoSchedule", "NoExecute")
NODE_DIRS = (
    *("/dev", "/proc", "/sys", "/etc", "/run", "/var/run", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/boot", "/root"),
    *("/opt/cni", "/opt/nvidia", "/var/spool/cron", "/var/snap"),
    *(f"/var/lib/{name}" for name in ("containerd", "containers", "docker", "etcd", "rancher", "k0s")),
)
"""Folders by which a container reaches GPUs that it didn't ask for: devices, sockets of runtimes and drivers, and what
the node runs as it is told there.
"""


Taints = tuple[tuple[str, str, str], ...]
"""Key, value and effect of each taint."""


def as_inputs(taints: Iterable[Taint]) -> Taints:
    """TAINTS of a pool."""
    return tuple((each.key, each.value or "", each.effect) for each in taints)


class Hold(Inputs):
    """A tenant's namespace and its quota: the number of every resource that the cluster's nodes offer."""

    name: str
    namespace: str
    create: bool = False
    quota: dict[str, int] = {}
    limits: dict[str, dict[str, Any]] = {}
    max_per_pod: int = 0
    priorities: tuple[str, ...] = ()


class PriorityInputs(Inputs):
    """A PriorityClass."""

    name: str
    value: int
    preempts: bool
    description: str = ""


class Offered(Inputs):
    """A resource of the nodes. `taints` are those that keep pods away, by pool: key, value and effect of each; empty
    where a pool that offers it has none. `shared`: one of it is not one pod's alone on any node.
    """

    name: str
    taints: tuple[Taints, ...] = ()
    shared: bool = False


class AdmissionInputs(Inputs):
    """What pods of tenants may not do: `folders` are those of the node that they don't mount."""

    mode: Literal["Audit", "Deny"]
    folders: tuple[str, ...]
    opt_in: bool


class TenancyInputs(Inputs):
    """The tenants, the PriorityClasses, what nodes offer, and the rules for the tenants' pods, None for none."""

    tenants: tuple[Hold, ...]
    priorities: tuple[PriorityInputs, ...] = ()
    resources: tuple[Offered, ...] = ()
    admission: AdmissionInputs | None = None


def from_cluster(cluster: Cluster) -> TenancyInputs | None:
    """None where the policy has no tenants and no priorities."""
    tenancy = cluster.spec.tenancy
    if tenancy is None or not (tenancy.tenants or tenancy.priorities):
        return None
    return TenancyInputs(
        tenants=tuple(_hold(cluster, tenancy, each) for each in tenancy.tenants),
        priorities=tuple(
            PriorityInputs(**each.model_dump(include=set(PriorityInputs.model_fields))) for each in tenancy.priorities
        ),
        resources=offered(cluster),
        admission=_admission(cluster, tenancy.admission) if tenancy.tenants else None,
    )


def _hold(cluster: Cluster, tenancy: Tenancy, tenant: Tenant) -> Hold:
    """What TENANT has. In a cohort it may have what all have of what its queue covers; that says what is its own."""
    grants = cluster.tenancy[0]
    own = {grant.resource for grant in grants if grant.tenant == tenant.name}
    lent = own if tenancy.queues is not None and tenancy.queues.borrow else set[str]()
    quota = {name: 0 for pool in cluster.capacity for name in sorted(pool.units)}
    for grant in grants:
        if grant.tenant == tenant.name or grant.resource in lent:
            quota[grant.resource] += grant.number
    return Hold(
        name=tenant.name,
        namespace=tenant.home,
        create=tenant.createNamespace,
        quota=dict(sorted(quota.items())),
        limits={key: value for key, value in tenant.limits.model_dump().items() if value} if tenant.limits else {},
        max_per_pod=tenant.maxPerPod or 0,
        priorities=tuple(tenant.priorities),
    )


def offered(cluster: Cluster) -> tuple[Offered, ...]:
    """The resources that nodes of pools advertise, by name."""
    by_name = cluster.offer.tolerated_by_name
    by_resource: dict[str, Offered] = {}
    for pool, capacity in zip(cluster.pools, cluster.capacity, strict=True):
        for name, unit in capacity.units.items():
            hard = [each for each in pool.said.taints if each.effect in HARD and not (by_name and each.key == name)]
            taints = as_inputs(hard)
            before = by_resource.get(name)
            free = not taints or (before is not None and not before.taints)
            by_resource[name] = Offered(
                name=name,
                taints=() if free else (*(before.taints if before else ()), taints),
                shared=unit.shared_by > 1 and (before is None or before.shared),
            )
    return tuple(by_resource[name] for name in sorted(by_resource))


def _admission(cluster: Cluster, said: Admission) -> AdmissionInputs | None:
    if said.mode == "Off" or not knows_policies(cluster.spec):
        return None
    spec = cluster.spec
    own = (spec.hostPaths.driverInstallDir, spec.toolkit.installDir)
    folders = dict.fromkeys((*NODE_DIRS, spec.hostPaths.kubeletRootDir, *own))
    return AdmissionInputs(mode=said.mode, folders=tuple(folders), opt_in=said.sharingOptIn)
