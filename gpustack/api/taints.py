"""Which taints keep a pod away from a node, as the scheduler decides it: for the compiler, and in the cluster."""

from __future__ import annotations

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
