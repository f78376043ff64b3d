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


least_driver_branch = functools.partial(_data.number, "dra", "needs", "driver_branch")
"""The first driver branch for GPUs by DRA."""


def least_kubernetes() -> tuple[int, ...]:
    """The first Kubernetes version on which the operator's documentation allows GPUs by DRA."""
    return _versions.key(_facts()["needs"]["kubernetes"])


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
    version that has, "" where none does yet."""
    needs = ((name, facts.get("kubernetes")) for name, facts in _facts()["feature_gates"]["gates"].items())
    gates = {name: (need["gate"], need.get("default_from", "")) for name, need in needs if need}
    own = _versions.numbers(kubernetes)[:2]
    return {name: gate for name, gate in gates.items() if not gate[1] or own < _versions.numbers(gate[1])}


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
