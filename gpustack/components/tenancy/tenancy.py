"""What tenants are given: PriorityClasses, and for each namespace a quota over every resource that nodes offer.

Solves: a quota bounds the names that it has, so a tenant with four of one has all of the others. Those that a tenant
is not given stand in its quota with 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ...model import Body, Stage
from ..component import Component
from ..parts.kube import metadata
from ..parts.pod import sparse
from .tenancy_inputs import Hold, PriorityInputs, TenancyInputs
from .tenant_pods import tenant_pods

QUOTA = "gpustack-gpus"
TENANT = "gpustack.dev/tenant"
"""The label with the name of the tenant."""


class Tenancy(Component[TenancyInputs]):
    """Namespaces, quotas and limits of tenants, and the policy over their pods: there before the first pod."""

    stage: ClassVar[Stage] = "base"

    def manifests(self, inputs: TenancyInputs) -> Iterator[Body]:
        yield from map(priority, inputs.priorities)
        for tenant in inputs.tenants:
            yield from of(tenant)
        if inputs.admission:
            yield from tenant_pods(inputs, inputs.admission)


def priority(one: PriorityInputs) -> Body:
    """The PriorityClass ONE."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(one.name),
        "value": one.value,
        "preemptionPolicy": "PreemptLowerPriority" if one.preempts else "Never",
        **sparse(description=one.description),
    }


def of(tenant: Hold) -> Iterator[Body]:
    """The objects of TENANT's namespace."""
    labels = {TENANT: tenant.name}
    if tenant.create:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(tenant.namespace, labels=labels)}
    yield {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(QUOTA, tenant.namespace, labels=labels),
        "spec": {"hard": {f"requests.{name}": str(number) for name, number in tenant.quota.items()}},
    }
    if tenant.limits:
        yield {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": metadata("gpustack-containers", tenant.namespace, labels=labels),
            "spec": {"limits": [{"type": "Container", **tenant.limits}]},
        }
