"""Whether the scheduler may put a pod on the nodes of a pool: taints and tolerations, selectors and what is known of
labels.

Solves: a pod that doesn't tolerate a node's taint stays away from it without an event, and the rest of the stack waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpustack.api.taints import excluded, expressions_of, kept_away, required_terms, tolerations_of
from gpustack.catalog import gpus
from gpustack.text.emit import emit_value

from ..api import keys

if TYPE_CHECKING:
    from gpustack.policy.language.node_pools import NodePool, Taint

__all__ = ["excluded", "expressions_of", "kept_away", "required_terms", "tolerations_of"]


_STATES = "not-ready unreachable disk-pressure memory-pressure pid-pressure unschedulable network-unavailable"
OF_DAEMONSETS = frozenset(f"node.kubernetes.io/{name}" for name in _STATES.split())
"""Keys of taints that the DaemonSet controller lets its pods tolerate."""


def written(taint: Taint) -> str:
    """TAINT as kubectl writes it: nvidia.com/gpu=present:NoSchedule."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def toleration_of(taint: Taint) -> str:
    """The toleration for TAINT, as a policy writes it."""
    value = f", operator: Equal, value: {emit_value(taint.value).strip()}" if taint.value else ", operator: Exists"
    return f"{{key: {taint.key}{value}, effect: {taint.effect}}}"


def labels_of(pool: NodePool) -> dict[str, str]:
    """What is known of the labels of POOL's nodes before anything of NVIDIA runs there."""
    arch = arch_of(pool)
    return {"kubernetes.io/os": "linux", **({keys.ARCH: arch} if arch else {}), **pool.nodeSelector}


def arch_of(pool: NodePool) -> str | None:
    """The architecture of POOL's nodes, as the pool says it or as its GPU implies it; None where neither does."""
    if pool.arch or pool.gpuProduct not in gpus.products():
        return pool.arch
    return gpus.product(pool.gpuProduct).arch
