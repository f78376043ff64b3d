"""Whether the scheduler may put a pod on the nodes of a pool: taints and tolerations, selectors and what is known of
labels.

Solves: a pod that doesn't tolerate a node's taint stays away from it without an event, and the rest of the stack waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpustack.api.taints import kept_away, number, tolerations_of
from gpustack.catalog import gpus
from gpustack.text.emit import emit_value

from ..api import keys

if TYPE_CHECKING:
    from gpustack.policy.language.node_pools import NodePool, Taint

__all__ = ["kept_away", "tolerations_of"]


OF_DAEMONSETS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in (
        *("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"),
        "network-unavailable",
    )
)
"""Keys of taints that the DaemonSet controller lets its pods tolerate."""


def written(taint: Taint) -> str:
    """TAINT as kubectl writes it: nvidia.com/gpu=present:NoSchedule."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def toleration_of(taint: Taint) -> str:
    """The toleration for TAINT, as a policy writes it."""
    value = f", operator: Equal, value: {emit_value(taint.value).strip()}" if taint.value else ", operator: Exists"
    return f"{{key: {taint.key}{value}, effect: {taint.effect}}}"


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


def labels_of(pool: NodePool) -> dict[str, str]:
    """What is known of the labels of POOL's nodes before anything of NVIDIA runs there."""
    arch = arch_of(pool)
    return {"kubernetes.io/os": "linux", **({keys.ARCH: arch} if arch else {}), **pool.nodeSelector}


def arch_of(pool: NodePool) -> str | None:
    """The architecture of POOL's nodes, as the pool says it or as its GPU implies it; None where neither does."""
    if pool.arch or pool.gpuProduct not in gpus.products():
        return pool.arch
    return gpus.product(pool.gpuProduct).arch
