"""Whether the scheduler may put a pod on the nodes of a pool: taints and tolerations, selectors and what is known of
labels.

Solves: a pod that doesn't tolerate a node's taint stays away from it without an event, and the rest of the stack waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpustack.catalog import gpus
from gpustack.model import whole
from gpustack.text.emit import emit_value

from ..api import keys

if TYPE_CHECKING:
    from gpustack.policy.language.node_pools import NodePool, Taint

Toleration = Mapping[str, Any]


OF_DAEMONSETS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        *("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"),
        "network-unavailable",
    )
)
"""Keys of taints that the DaemonSet controller lets its pods tolerate."""


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
        numbers = [_number(value), _number(wanted)]
        have, limit = numbers
        return bool(key) and have is not None and limit is not None and (have < limit) == (operator == "Lt")
    return bool(key) and value == wanted


def _number(text: str) -> int | None:
    number = whole(text.removeprefix("-"))
    return -number if number is not None and text.startswith("-") else number


def kept_away(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """Those of TAINTS that keep pods with TOLERATIONS away."""
    known = list(tolerations)
    return [taint for taint in taints if not tolerated(taint, known)]


def written(taint: Taint) -> str:
    """TAINT as kubectl writes it: nvidia.com/gpu=present:NoSchedule."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def toleration_of(taint: Taint) -> str:
    """The toleration for TAINT, as a policy writes it."""
    value = f", operator: Equal, value: {emit_value(taint.value).strip()}" if taint.value else ", operator: Exists"
    return f"{{key: {taint.key}{value}, effect: {taint.effect}}}"


def tolerations_of(pod: Mapping[str, Any]) -> list[Toleration]:
    """The tolerations of POD (a PodSpec), as far as they are any."""
    tolerations = pod.get("tolerations")
    return [one for one in tolerations if isinstance(one, Mapping)] if isinstance(tolerations, list) else []


def excluded(pod: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether POD (a PodSpec) selects other nodes than those with LABELS, which may have more that nobody knows of."""
    selector = pod.get("nodeSelector")
    if isinstance(selector, Mapping) and any(labels.get(key, value) != value for key, value in selector.items()):
        return True
    terms = required_terms(pod)
    return bool(terms) and all(any(unmet(one, labels) for one in expressions_of(term)) for term in terms)


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


def unmet(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether nodes with LABELS surely don't meet EXPRESSION of an affinity: only labels that are known count."""
    have, values = labels.get(str(expression.get("key"))), expression.get("values") or []
    if have is None or not isinstance(values, list):
        return False
    operator = str(expression.get("operator"))
    if operator in {"Gt", "Lt"}:
        number, limit = _number(have), _number(str(values[0])) if values else None
        return number is None or (limit is not None and not (number > limit if operator == "Gt" else number < limit))
    return {"In": have not in values, "NotIn": have in values, "DoesNotExist": True}.get(operator, False)


def labels_of(pool: NodePool) -> dict[str, str]:
    """What is known of the labels of POOL's nodes before anything of NVIDIA runs there."""
    arch = arch_of(pool)
    return {"kubernetes.io/os": "linux", **({keys.ARCH: arch} if arch else {}), **pool.nodeSelector}


def arch_of(pool: NodePool) -> str | None:
    """The architecture of POOL's nodes, as the pool says it or as its GPU implies it; None where neither does."""
    if pool.arch or pool.gpuProduct not in gpus.products():
        return pool.arch
    return gpus.product(pool.gpuProduct).arch
