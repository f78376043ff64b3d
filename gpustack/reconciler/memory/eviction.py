"""Evictions and PodDisruptionBudgets, by the rules of kube-apiserver's eviction subresource.

In the order that it has them: a pod that is not ready to serve anyone goes whatever its budget; two budgets are an
error of the server; an allowance is used up before the pod is deleted, so one that names another UID burns it
(reconciler.md A11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...api import objects
from ..core import selectors
from ..shell.cluster import PODS, ApiError, Conflict, Kind, TooMany
from .rules import Document
from .server import Server, stamp

BUDGETS: Kind[objects.Object] = Kind(objects.Object, "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(server: Server, pod: Document, body: Mapping[str, Any], *, dry_run: bool) -> None:
    """Delete POD if its budget allows that. Raises `TooMany`, `Conflict` or a 500."""
    options = body.get("deleteOptions") or {}
    dry_run = dry_run or bool(options.get("dryRun"))
    budgets = _budgets(server, pod)
    if _counts(pod) and budgets:
        if len(budgets) > 1:
            raise ApiError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                500,
                "InternalError",
            )
        if not _needless(budgets[0], pod):
            _take(server, budgets[0], pod, dry_run=dry_run)
    uid = (options.get("preconditions") or {}).get("uid", "")
    if not dry_run:
        server.delete(PODS, server.get(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"]), uid)
    elif uid and uid != pod["metadata"]["uid"]:
        raise Conflict(f"Precondition failed: UID in precondition: {uid}", 409, "Conflict")


def settle_budgets(server: Server) -> None:
    """What the disruption controller does: count the pods of every budget, and say how many may go."""
    for budget in list(server.all(BUDGETS)):
        namespace, spec = budget["metadata"]["namespace"], budget["spec"]
        pods = [pod for pod in server.all(PODS) if pod["metadata"]["namespace"] == namespace and _selects(budget, pod)]
        present = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        healthy = sum(1 for pod in pods if _healthy(pod) and "deletionTimestamp" not in pod["metadata"])
        if "maxUnavailable" in spec:
            desired = max(len(pods) - _scaled(spec["maxUnavailable"], len(pods)), 0)
        else:
            desired = _scaled(spec.get("minAvailable", 1), len(pods))
        before = (budget.get("status") or {}).get("disruptedPods") or {}
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": max(healthy - desired, 0),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": len(pods),
            "disruptedPods": {name: None for name in before if name not in present},
        }
        server.edit(BUDGETS, budget["metadata"]["name"], {"status": status}, namespace)


def _take(server: Server, budget: Document, pod: Document, *, dry_run: bool) -> None:
    """Use up one of the disruptions that BUDGET allows."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        raise TooMany(_REFUSED, 10.0, (f"The disruption budget {name} is still being processed by the server.",))
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        needs = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {needs[0]} healthy pods and has {needs[1]} currently"
        raise TooMany(_REFUSED, 0.0, (cause,))
    if not dry_run:
        used = {"disruptionsAllowed": allowed - 1, "disruptedPods": {pod["metadata"]["name"]: stamp(server.now)}}
        server.edit(BUDGETS, name, {"status": used}, budget["metadata"]["namespace"])


def _needless(budget: Document, pod: Document) -> bool:
    """Whether an unhealthy pod may go without asking."""
    if _healthy(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _counts(pod: Document) -> bool:
    """Whether budgets protect the pod at all."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    return phase not in {"Succeeded", "Failed", "Pending"} and "deletionTimestamp" not in pod["metadata"]


def _healthy(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _budgets(server: Server, pod: Document) -> list[Document]:
    namespace = pod["metadata"]["namespace"]
    return [each for each in server.all(BUDGETS) if each["metadata"]["namespace"] == namespace and _selects(each, pod)]


def _selects(budget: Document, pod: Document) -> bool:
    selector = budget["spec"].get("selector")
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(each, labels) for each in selector.get("matchExpressions") or [])


def _expression(each: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = each["key"], ",".join(each.get("values") or [])
    texts = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return selectors.matches(texts[each["operator"]], labels)


def _scaled(value: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    return math.ceil(int(value.rstrip("%")) * total / 100) if isinstance(value, str) else value
