"""Versions of components with a known fault: what is broken, where it shows, and what to use instead.

The conditions are data, but for how a policy tells whether one holds: that is a rule's (checks/platforms/faults.py).
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpustack.catalog import _data, _versions


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of VERSIONS of the component in the policy's section COMPONENT ("toolkit"). data/faults.yaml says what
    the keys of `where` mean; all of them must hold."""

    name: str
    component: str
    versions: str
    severity: Literal["error", "warning", "note"]
    what: str
    use: str
    where: Mapping[str, Any] = field(default_factory=dict)
    unless_env: tuple[str, ...] = ()


@functools.cache
def faults() -> tuple[Fault, ...]:
    """All faults, in the order of the data file."""
    return tuple(_data.made(Fault, facts, name=name) for name, facts in _data.load("faults").items())


def faults_of(component: str, version: str) -> tuple[Fault, ...]:
    """The faults that VERSION of COMPONENT has; none for a digest or a branch's number."""
    if len(_versions.numbers(version)) < 2 or version.startswith("sha256"):
        return ()
    own = (each for each in faults() if each.component == component)
    return tuple(each for each in own if _versions.satisfies(version, each.versions))
