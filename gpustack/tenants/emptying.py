"""Rules about what keeps a node from being emptied: whoever stands in the way holds up its next driver.

None of it is refused: it may be meant. But who wrote it rarely has a driver in mind, and learns of it when the roll-out
of the whole cluster waits for one pod.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..checks.rule import Hit, hit, rule
from ..model import mapping, whole
from ..policy.loading.place import node
from .tenants import BUDGET, Others, Tenant, TenantObject

CLIENT = "nvidia.com/gpu.deploy.client"
SPARED = {"leave", "wait", "delete"}
"""What rules of a policy say of pods that nobody evicts, so that no budget is asked."""
REPLICATED = {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}
"""Kinds that have one replica where they say no number."""


@rule("GPU724", "warning", over="manifest")
def budget_for_nobody(given: TenantObject) -> Iterator[Hit]:
    """A PodDisruptionBudget that never lets a pod go."""
    spec, offer = mapping(given.body.get("spec")), given.offer
    if (given.group, str(given.body["kind"])) != BUDGET or offer.clients is None or offer.ignores_budgets:
        return
    selector = spec.get("selector")
    wanted = mapping(node(selector, ("matchLabels",)))
    beside = [each for each in given.beside(wanted) if each.whole and _selects(selector, each.labels)]
    if beside:
        evicted = any(_uses_gpu(each) and _said(each) not in SPARED for each in beside)
    else:  # those that it selects are elsewhere
        evicted = offer.becomes(wanted, given.namespace) not in SPARED
    pods = _number(beside, given.others)
    if evicted and (field := _refusing(spec, pods)):
        there = f", and there are {pods}" if pods and field == "minAvailable" else ""
        yield hit(f"spec.{field}", who=given.who, value=spec[field], there=there)


def _refusing(spec: Mapping[str, Any], pods: int | None) -> str:
    """The field by which a budget of so many PODS (None: nobody knows) lets none go; "" where it may let one."""
    for field, value in (("maxUnavailable", "0"), ("maxUnavailable", "0%"), ("minAvailable", "100%")):
        if str(spec.get(field)) == value:
            return field
    least = str(spec.get("minAvailable"))
    number = whole(least.removesuffix("%"))
    if not pods or number is None:
        return ""
    needed = -(-number * pods // 100) if least.endswith("%") else number  # rounded up, as Kubernetes does
    return "minAvailable" if needed >= pods else ""


def _number(workloads: Sequence[Tenant], others: Others) -> int | None:
    """How many pods WORKLOADS make; None where one doesn't say, or is scaled by another object."""
    numbers = [_replicas(each) for each in workloads]
    scaled = any((each.namespace, node(each.body, ("metadata", "name"))) in others.scaled for each in workloads)
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) and not scaled else None


def _replicas(tenant: Tenant) -> int | None:
    """How many pods TENANT makes, where it says so."""
    kind = tenant.body["kind"]
    if kind == "Pod":
        return 1
    replicas = node(tenant.body, ("spec", "replicas"))
    if replicas is None and kind in REPLICATED:
        return 1
    one = tenant.path == ("spec", "template", "spec")
    return replicas if one and isinstance(replicas, int) and not isinstance(replicas, bool) else None


def _selects(selector: object, labels: Mapping[str, Any]) -> bool:
    """Whether a budget's SELECTOR selects pods with LABELS: an empty one all, none at all nobody."""
    if not isinstance(selector, dict):
        return False
    wanted, further = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    return (
        isinstance(wanted, dict)
        and isinstance(further, list)
        and all(key in labels and labels[key] == value for key, value in wanted.items())
        and all(isinstance(one, dict) and _holds(one, labels) for one in further)
    )


def _holds(one: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether the requirement ONE of a label selector holds for LABELS."""
    key, values = str(one.get("key")), one.get("values")
    inside = isinstance(values, list) and labels.get(key) in values
    held = {"In": inside, "NotIn": not inside, "Exists": key in labels, "DoesNotExist": key not in labels}
    return held.get(str(one.get("operator")), False)


def _uses_gpu(tenant: Tenant) -> bool:
    """Whether its pods use a GPU, or may: a claim may be one for a GPU."""
    asks = tenant.pod.get("runtimeClassName") in tenant.offer.runtime_classes or tenant.pod.get("resourceClaims")
    return bool(tenant.wanted or asks)


def _said(tenant: Tenant) -> str:
    """What the policy says becomes of its pods."""
    return tenant.offer.becomes(tenant.labels, tenant.namespace)


@rule("GPU725", "warning", over="workload")
def longer_than_windows(tenant: Tenant) -> Iterator[Hit]:
    """A pod with GPUs that may take longer to end than any window of its nodes lasts."""
    grace = tenant.pod.get("terminationGracePeriodSeconds")
    if not tenant.wanted or not isinstance(grace, int) or isinstance(grace, bool) or _said(tenant) == "leave":
        return
    short = [pool for pool in tenant.selected if pool.hours is not None and grace > pool.hours * 3600]
    if short:
        names, hours = ", ".join(pool.name for pool in short), short[0].hours
        path = tenant.at("terminationGracePeriodSeconds")
        yield hit(path, who=tenant.who, grace=grace, names=names, hours=hours, seconds=(hours or 0) * 3600)


@rule("GPU726", "warning", over="workload")
def daemons_with_gpus(tenant: Tenant) -> Iterator[Hit]:
    """A DaemonSet whose pods use a GPU and that nobody takes off a node."""
    clients = tenant.offer.clients
    if clients is None or tenant.body["kind"] != "DaemonSet" or not tenant.wanted or _said(tenant) == "leave":
        return
    missing = []
    if mapping(tenant.pod.get("nodeSelector")).get(CLIENT) != "true":
        missing.append(f'give it the nodeSelector {CLIENT}: "true"')
    if (own := tenant.namespace) not in clients:
        missing.append(f"name its namespace {own} in spec.reconciler.clientNamespaces of the cluster's policy")
    if missing:
        yield hit(tenant.at(), who=tenant.who, missing=", and ".join(missing))
