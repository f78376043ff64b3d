"""What NVIDIA's DRA driver asks of a cluster, and which of its features exist and go together."""

import functools
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from gpustack.catalog import _data, _versions
from gpustack.catalog._lookup import UnknownName, nearest

_facts = functools.partial(_data.load, "dra")


class UnknownGate(UnknownName):
    what = "feature gate"


class Contradiction(NamedTuple):
    """The feature GATE, which is on, requires or excludes OTHER, which is not as it should be."""

    gate: str
    rule: Literal["requires", "excludes"]
    other: str


def least_kubernetes() -> tuple[int, int, int]:
    """The first Kubernetes version on which the operator's documentation allows GPUs by DRA."""
    major, minor, patch = (int(part) for part in _facts()["needs"]["kubernetes"].split("."))
    return major, minor, patch


def least_driver_branch() -> int:
    """The first driver branch for GPUs by DRA."""
    return int(_facts()["needs"]["driver_branch"])


def least_compute_domain_driver() -> str:
    """The first driver version whose compute domains work with IMEXDaemonsWithDNSNames, which is on by default."""
    return str(_facts()["compute_domains"]["driver"])


def knows_gates_of(version: str | None) -> bool:
    """Whether the feature gates here are those of the DRA driver VERSION."""
    return version in _facts()["feature_gates"]["versions"]


def gate_default(name: str) -> bool:
    """Whether the feature NAME is on where nobody says so; UnknownGate names the nearest ones."""
    gates = _facts()["feature_gates"]["gates"]
    if name not in gates:
        raise UnknownGate(name, nearest(name, gates))
    return bool(gates[name]["default"])


def gates_of_kubernetes(kubernetes: str) -> dict[str, tuple[str, str]]:
    """The features that need a gate which KUBERNETES ("1.34") doesn't have on by default: the gate, and the first
    version that has, "" where none does yet.
    """
    gates = {}
    for name, facts in _facts()["feature_gates"]["gates"].items():
        need = facts.get("kubernetes")
        first = need.get("default_from", "") if need else ""
        if need and (not first or _versions.numbers(kubernetes)[:2] < _versions.numbers(first)):
            gates[name] = need["gate"], first
    return gates


def asked_by(name: str, what: Literal["board", "host", "mode"]) -> str:
    """What the feature NAME asks of the board, of the host, or in which mode alone it does anything; "" for nothing."""
    return str(_facts()["feature_gates"]["gates"].get(name, {}).get(what, ""))


def contradictions(switches: Mapping[str, bool]) -> Iterator[Contradiction]:
    """What the driver refuses in SWITCHES (feature to on or off), over its defaults."""
    gates = _facts()["feature_gates"]["gates"]
    on = {name: switches.get(name, bool(facts["default"])) for name, facts in gates.items()}
    for name, facts in gates.items():
        if on[name]:
            yield from (Contradiction(name, "requires", other) for other in facts.get("requires", ()) if not on[other])
            yield from (Contradiction(name, "excludes", other) for other in facts.get("excludes", ()) if on[other])
