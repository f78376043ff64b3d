"""gpustack's own defaults: of fields that no release and no platform sets (data/defaults.yaml)."""

import functools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from . import _data


class Rule(NamedTuple):
    """VALUES of every policy, of those with the section NAME ("where"), or of every item of the list NAME ("each")."""

    kind: Literal["", "where", "each"]
    name: str
    values: Mapping[str, Any]


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All defaults, as the data file has them. Read only."""
    found = list[Rule]()
    for rule in _data.load("defaults"):
        kind: Literal["", "where", "each"] = "where" if "where" in rule else "each" if "each" in rule else ""
        found.append(Rule(kind, rule.get(kind, ""), rule["spec"]))
    return tuple(found)


@functools.cache
def values() -> Mapping[str, Any]:
    """Every default by its path: "reconciler.deadlines.mig", "drivers[].driverType"."""
    start = {"": "", "where": "{}.", "each": "{}[]."}
    return {
        f"{start[rule.kind].format(rule.name)}{path}": value
        for rule in rules()
        for path, value in _data.leaves(rule.values)
    }
