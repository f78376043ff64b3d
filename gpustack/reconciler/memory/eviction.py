"""A client of the server in memory that only looks, and tries evictions, by the rules of kube-apiserver's subresource.

In the order that it has them: a pod that is not ready to serve anyone goes whatever its budget; two budgets are an
error of the server; then the budget allows it, or says why not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...api.objects import Object
from ..core import selectors
from ..shell.cluster import EVERYTHING, PODS, Answer, ApiError, Body, Kind, Listing, Selection, TooMany, leaned, within
from .server import Document, Server

BUDGETS: Kind[Object] = Kind(Object, "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

T = TypeVar("T", bound=Object)
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def tried(server: Server, pod: Document) -> Document | None:
    """The budget that lets POD be evicted now; None where it needs none. Raises `TooMany` or a 500."""
    namespace, every = pod["metadata"]["namespace"], server.all(BUDGETS) if _counts(pod) else ()
    budgets = [each for each in every if each["metadata"]["namespace"] == namespace and selects(each, pod)]
    if len(budgets) > 1:
        raise ApiError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            500,
            "InternalError",
        )
    if not budgets or _needless(budgets[0], pod):
        return None
    name, status = budgets[0]["metadata"]["name"], budgets[0].get("status") or {}
    if status.get("observedGeneration", 0) < budgets[0]["metadata"]["generation"]:
        raise TooMany(_REFUSED, 10.0, (f"The disruption budget {name} is still being processed by the server.",))
    if status.get("disruptionsAllowed", 0) <= 0:
        needs = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {needs[0]} healthy pods and has {needs[1]} currently"
        raise TooMany(_REFUSED, 0.0, (cause,))
    return budgets[0]


def _needless(budget: Document, pod: Document) -> bool:
    """Whether an unhealthy pod may go without asking."""
    if healthy(pod):
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


def healthy(pod: Document) -> bool:
    """Whether the pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def selects(budget: Document, pod: Document) -> bool:
    """Whether the budget is for the pod, both being of one namespace."""
    selector = budget["spec"].get("selector")
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(each, labels) for each in selector.get("matchExpressions") or [])


def _expression(each: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = each["key"], ",".join(each.get("values") or [])
    texts = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return selectors.matches(texts[each["operator"]], labels)


@dataclass
class Stored:
    """What SERVER holds, and which evictions it would allow."""

    server: Server = field(default_factory=Server)

    async def list(self, kind: Kind[T], which: Selection = EVERYTHING) -> Listing[T]:
        """All objects that WHICH selects."""
        try:
            decoded = (self.server.decode(kind, document) for document in self.server.all(kind, which))
            objects = tuple(leaned(kind, decoded))
            within(kind, len(objects))
        except ValueError as error:
            raise ApiError(str(error), 400, "BadRequest") from None
        return Listing(objects, str(self.server.version), self.server.now)

    async def create(self, kind: Kind[Any], body: Body, **where: Any) -> Answer:
        """The trial of an eviction of the pod `of` in its `namespace`; nothing else is ever created."""
        tried(self.server, self.server.get(PODS, where["of"], where["namespace"]))
        return Answer()
