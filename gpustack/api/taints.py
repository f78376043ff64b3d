"""Whether taints and labels keep a pod off a node, as the scheduler decides: for the compiler, and in the cluster."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..model import whole

Toleration = Mapping[str, Any]
Taint = Any
"""A taint of a policy or of a node: both have key, value and effect."""


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether pods with TOLERATIONS may run where TAINT is. A preference keeps nobody away."""
    return taint.effect == "PreferNoSchedule" or any(_matches(taint, toleration) for toleration in tolerations)


def _matches(taint: Taint, toleration: Toleration) -> bool:
    key, operator = toleration.get("key") or "", str(toleration.get("operator") or "Equal")
    if (toleration.get("effect") or taint.effect) != taint.effect or (key and key != taint.key):
        return False
    if operator == "Exists":
        return True
    value, wanted = taint.value or "", str(toleration.get("value") or "")
    if operator in {"Lt", "Gt"}:
        have, limit = number(value), number(wanted)
        return bool(key) and have is not None and limit is not None and (have < limit) == (operator == "Lt")
    return bool(key) and value == wanted


def number(text: str) -> int | None:
    """TEXT as a whole number, which may be negative."""
    size = whole(text.removeprefix("-"))
    return -size if size is not None and text.startswith("-") else size


def kept_away(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """Those of TAINTS that keep pods with TOLERATIONS away."""
    known = list(tolerations)
    return [taint for taint in taints if not tolerated(taint, known)]


def tolerations_of(pod: Mapping[str, Any]) -> list[Toleration]:
    """The tolerations of POD (a PodSpec), as far as they are any."""
    tolerations = pod.get("tolerations")
    return [one for one in tolerations if isinstance(one, Mapping)] if isinstance(tolerations, list) else []


def excluded(pod: Mapping[str, Any], labels: Mapping[str, str], *, whole: bool = False) -> bool:
    """Whether POD (a PodSpec) selects other nodes than those with LABELS; but for the WHOLE of a node's labels, nodes
    may have more that nobody knows of."""
    selector = pod.get("nodeSelector")
    given = selector.items() if isinstance(selector, Mapping) else ()
    if any(labels.get(key, "" if whole else value) != value for key, value in given):
        return True
    terms = required_terms(pod)
    return bool(terms) and all(any(unmet(one, labels, whole=whole) for one in expressions_of(each)) for each in terms)


def expressions_of(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions on labels in TERM of an affinity."""
    expressions = term.get("matchExpressions")
    return [one for one in expressions if isinstance(one, Mapping)] if isinstance(expressions, list) else []


def required_terms(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terms of POD's node affinity of which one must hold."""
    affinity: Any = pod
    for step in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"):
        affinity = affinity.get(step) if isinstance(affinity, Mapping) else None
    return [term for term in affinity if isinstance(term, Mapping)] if isinstance(affinity, list) else []


def unmet(expression: Mapping[str, Any], labels: Mapping[str, str], *, whole: bool = False) -> bool:
    """Whether nodes with LABELS surely don't meet EXPRESSION of an affinity: only labels that are known count."""
    have, values = labels.get(str(expression.get("key"))), expression.get("values") or []
    operator = str(expression.get("operator"))
    if have is None or not isinstance(values, list):
        return whole and have is None and operator in {"In", "Exists", "Gt", "Lt"}
    if operator in {"Gt", "Lt"}:
        size, limit = number(have), number(str(values[0])) if values else None
        return size is None or (limit is not None and not (size > limit if operator == "Gt" else size < limit))
    return {"In": have not in values, "NotIn": have in values, "DoesNotExist": True}.get(operator, False)
