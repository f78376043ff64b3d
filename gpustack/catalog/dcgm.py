"""DCGM fields: what the exporter can serve, what it serves by default, and which names are wrong.

A name is looked up as people write it: the name before DCGM 4.6, the one since, or one of the names that public files
use and no DCGM ever defined (the error then says what was meant). An unknown name in the exporter's CSV file stops it
at start.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpustack.catalog import _data
from gpustack.catalog._lookup import UnknownName, nearest


class UnknownField(UnknownName):
    what = "DCGM field"


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `id` is None where the exporter computes it. `type` is gauge, counter or label; `unit` may be unknown.

    `alias` is its name since DCGM 4.6, `default` whether the operator's exporter serves it without configuration,
    `replaced_by` the field to use instead of a deprecated one.
    """

    name: str
    id: int | None
    type: str
    unit: str | None
    alias: str | None
    default: bool
    replaced_by: str | None
    use: str | None


@functools.cache
def fields() -> Mapping[str, Field]:
    """All fields by their name before 4.6, in the order of their ids."""
    return MappingProxyType(
        {
            name: Field(
                name=name,
                id=facts["id"],
                type=facts["type"],
                unit=facts.get("unit"),
                alias=facts.get("alias"),
                default=facts.get("default", False),
                replaced_by=facts.get("replaced_by"),
                use=facts.get("use"),
            )
            for name, facts in _facts()["fields"].items()
        }
    )


def field(name: str) -> Field:
    """The field called NAME, by old or new name. UnknownField names what was meant, or what looks like it."""
    known = fields()
    found = known.get(name) or known.get(_aliases().get(name, ""))
    if found is None:
        meant = _facts()["wrong_names"].get(name)
        raise UnknownField(name, nearest(name, [*known, *_aliases()]) if meant is None else meant)
    return found


def default_counters() -> tuple[Field, ...]:
    """What the operator's exporter serves without configuration: the same set in all releases of the catalogue."""
    return tuple(found for found in fields().values() if found.default)


def topics() -> Mapping[str, tuple[str, ...]]:
    """The fields to look at for a question (temperature, xid, ecc_double_bit, ...), by topic."""
    return {topic: tuple(names) for topic, names in _facts()["topics"].items()}


def semantics(name: str) -> str | None:
    """How a field is read, where its name misleads."""
    found: str | None = _facts()["semantics"].get(field(name).name)
    return found


def exporter() -> Mapping[str, Any]:
    """Ports, paths and file names of the exporter: read-only."""
    found: Mapping[str, Any] = _facts()["exporter"]
    return found


def csv_types() -> tuple[str, ...]:
    """The metric types that the exporter's CSV file may name."""
    return tuple(_facts()["csv_types"])


@functools.cache
def _aliases() -> Mapping[str, str]:
    return {found.alias: name for name, found in fields().items() if found.alias}


def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = _data.load("dcgm")
    return facts
