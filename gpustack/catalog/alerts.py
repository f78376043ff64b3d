"""Alerts about GPUs: which there are, when each fires, and what of it a policy may change (data/alerts.yaml)."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from types import MappingProxyType
from typing import Any, Literal

from gpustack.catalog import _data
from gpustack.catalog._lookup import UnknownName, nearest
from gpustack.text.quantities import in_words

_facts = functools.partial(_data.load, "alerts")

Severity = Literal["page", "ticket"]
PREFIX = "GPUStack"
"""What the names of alerts begin with in Prometheus, and not in policies."""


class UnknownAlert(UnknownName):
    what = "alert"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; the data file says what each field means. `set` are its numbers by name, `limits` says of some which
    values make sense; `why_off` is "" for one that is on wherever alerts are."""

    name: str
    severity: Severity
    bad: str
    lasts: str
    page: str
    summary: str
    description: str
    over: Literal["", "node", "pool", "cluster"] = ""
    needs: Sequence[str] = ()
    counters: Sequence[str] = ()
    records: Sequence[str] = ()
    set: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pools: Literal["", "nvswitch"] = ""
    node_labels: Sequence[str] = ()
    plain: str = ""
    why_off: str = ""

    @property
    def pooled(self) -> bool:
        """Whether it tells pools apart, so that a policy can say something else for one of them."""
        return "$pool" in self.bad

    def told(self, lasts: str, numbers: Mapping[str, int]) -> str:
        """The description, where it must be so for LASTS, with these NUMBERS."""
        threshold = numbers.get("threshold", 0)
        near = f"within {threshold} degrees of" if threshold else "at"
        times = {"near": near, "lasts": in_words(lasts), "threshold_time": in_words(f"{threshold}s")}
        return Template(self.description).safe_substitute(numbers, **times)


@functools.cache
def alerts() -> Mapping[str, Alert]:
    """All alerts by name, in the order in which they are rendered."""
    return MappingProxyType({name: Alert(name, **facts) for name, facts in _facts()["alerts"].items()})


def names() -> list[str]:
    """All alerts, in the order in which they are rendered."""
    return list(alerts())


def alert(name: str) -> Alert:
    """The alert called NAME. UnknownAlert names what looks like it."""
    one = alerts().get(name)
    if one is None:
        raise UnknownAlert(name, nearest(name.removeprefix(PREFIX), alerts()))
    return one


records = functools.partial(_data.table, "alerts", "records")
"""The series that alerts read, by name: their expressions, as in the data file."""
pooled = functools.partial(_data.words, "alerts", "pooled")
"""Those of them whose expressions have the label pool already."""


def fatal_xids() -> tuple[int, ...]:
    """XIDs after which a GPU or its node doesn't work on by itself."""
    return tuple(_facts()["fatal_xids"])
