"""Rules about what keeps a node from being emptied: whoever stands in the way holds up its next driver.

None of it is refused: it may be meant. But who wrote it rarely has a driver in mind, and learns of it when the roll-out
of the whole cluster waits for one pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..checks.rule import Hit, rule
from .tenants import BUDGET

if TYPE_CHECKING:
    from .tenants import Tenant, TenantObject

CLIENT = "nvidia.com/gpu.deploy.client"


@rule("GPU724", "warning", over="manifest")
def budget_for_nobody(given: TenantObject) -> Iterator[Hit]:
    """A PodDisruptionBudget that never lets a pod go."""
    spec = given.body.get("spec")
    if (given.group, str(given.body["kind"])) != BUDGET or not isinstance(spec, dict):
        return
    for field, value in (("maxUnavailable", "0"), ("maxUnavailable", "0%"), ("minAvailable", "100%")):
        if str(spec.get(field)) == value:
            yield Hit(f"spec.{field}", f"{given.who} never lets a pod go")


@rule("GPU725", "warning", over="workload")
def longer_than_windows(tenant: Tenant) -> Iterator[Hit]:
    """A pod with GPUs that may take longer to end than any window of its nodes lasts."""
    grace = tenant.pod.get("terminationGracePeriodSeconds")
    if not tenant.wanted or not isinstance(grace, int) or isinstance(grace, bool):
        return
    short = [pool for pool in tenant.selected if pool.hours is not None and grace > pool.hours * 3600]
    if short:
        names = ", ".join(pool.name for pool in short)
        yield Hit(
            tenant.at("terminationGracePeriodSeconds"),
            f"{tenant.who} may take {grace} s to end, and the windows of {names} last {short[0].hours} h at most",
            remedy=f"say {short[0].hours * 3600 if short[0].hours else 0} s or less, or make a window of the pool "
            "longer",
        )


@rule("GPU726", "warning", over="workload")
def daemons_with_gpus(tenant: Tenant) -> Iterator[Hit]:
    """A DaemonSet whose pods use a GPU and that nobody takes off a node."""
    clients, metadata = tenant.offer.clients, tenant.body.get("metadata")
    if clients is None or tenant.body["kind"] != "DaemonSet" or not tenant.wanted:
        return
    namespace = str(metadata.get("namespace") or "default") if isinstance(metadata, dict) else "default"
    selector = tenant.pod.get("nodeSelector")
    selects = isinstance(selector, dict) and selector.get(CLIENT) == "true"
    if selects and namespace in clients:
        return
    yield Hit(
        tenant.at(),
        f"{tenant.who} uses GPUs on every node that it is on",
        remedy=f'give it the nodeSelector {CLIENT}: "true", and name its namespace {namespace} in '
        "spec.reconciler.clientNamespaces of the cluster's policy: the driver manager then takes its pods away first",
    )
