"""DCGM fields: what the exporter can serve, what it serves by default, and which names are wrong.

A name is looked up as people write it: the name before DCGM 4.6, the one since, or one of the names that public files
use and no DCGM ever defined (the error then says what was meant). An unknown name in the exporter's CSV file stops it
at start.

`fields` are those that people ask about, with their facts; `exported` has the names of all.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpustack.catalog import _data, _versions
from gpustack.catalog._lookup import UnknownName, nearest

_facts = functools.partial(_data.load, "dcgm")
_names = functools.partial(_data.load, "dcgm-names")

_TAG = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+-([0-9]+\.[0-9]+\.[0-9]+)\b")
"""An image tag of the exporter: DCGM's version, the exporter's, and what the image is made of."""


class UnknownField(UnknownName):
    what = "DCGM field"


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `id` is None where the exporter computes it. `type` is gauge, counter or label; `unit` may be unknown.
    `alias` is its name since DCGM 4.6, `default` whether the operator's exporter serves it without configuration."""

    name: str
    id: int | None
    type: str
    unit: str | None = None
    alias: str | None = None
    default: bool = False
    use: str | None = None


@functools.cache
def fields() -> Mapping[str, Field]:
    """All fields by their name before 4.6, in the order of their ids."""
    return MappingProxyType({name: _data.made(Field, facts, name=name) for name, facts in _facts()["fields"].items()})


def field(name: str) -> Field:
    """The field called NAME, by old or new name. UnknownField names what was meant, or what looks like it."""
    known = fields()
    entry = known.get(name) or known.get(_aliases().get(name, ""))
    if entry is None:
        meant = _facts()["wrong_names"].get(name)
        raise UnknownField(name, nearest(name, [*known, *_aliases()]) if meant is None else meant)
    return entry


def exported(tag: str = "") -> frozenset[str]:
    """Every name that the exporter of image TAG ("4.6.0-4.8.3-distroless") takes in its file; that of the newest one,
    where TAG doesn't say its version or is older than the catalogue's releases."""
    match, known = _TAG.match(tag), [*_names()["names"]]
    if match is None or _versions.key(match[1]) < _versions.key(known[0]):
        return _exported(known[-1])
    return _exported(match[1])


def new_names() -> Mapping[str, str]:
    """The name since DCGM 4.6 of each field that has one, by the old name."""
    return {name: each.alias for name, each in fields().items() if each.alias}


csv_types = functools.partial(_data.words, "dcgm", "csv_types")
"""The metric types that the exporter's CSV file may name."""
exporter = functools.partial(_data.table, "dcgm", "exporter")
"""Ports, paths and file names of the exporter."""
pod_labels = functools.partial(_data.words, "dcgm", "labels", "kubernetes")
"""The labels by which the exporter names the pod that uses a GPU."""
gpu_labels = functools.partial(_data.words, "dcgm", "labels", "gpu")
"""The labels that say which GPU a series is about."""
label_limit = functools.partial(_data.number, "dcgm", "labels", "limit")
"""How many labels of a series common storage takes, unless it is told to take more or fewer."""


def not_exported() -> frozenset[str]:
    """Fields that the exporter reads and can never serve: their values are lists or structures."""
    return frozenset(_names()["binary"].split())


def meant_by(name: str, tag: str = "") -> tuple[str, ...]:
    """What somebody may have meant by the unknown NAME: up to two fields of the exporter of image TAG, best first."""
    meant = _facts()["wrong_names"].get(name)
    if meant is not None:
        return tuple(meant)
    own = (known for known, field in fields().items() if field.id is None)
    return tuple(nearest(name.upper() if name.islower() else name, [*exported(tag), *own], 2))


def default_counters() -> tuple[Field, ...]:
    """What the operator's exporter serves without configuration: the same set in all releases of the catalogue."""
    return tuple(each for each in fields().values() if each.default)


def semantics(name: str) -> str | None:
    """How a field is read, where its name misleads."""
    return _data.table("dcgm", "semantics").get(field(name).name)


def series_labels(*, honored: bool) -> frozenset[str]:
    """The labels of every series of a GPU in Prometheus, less those that rows of the exporter's file are. HONORED: the
    exporter's names of the pod stay, and the scrape's own make way; else they are renamed."""
    facts = _facts()["labels"]
    pods = pod_labels() if honored else (f"exported_{name}" for name in pod_labels())
    return frozenset({*facts["gpu"], *pods, *facts["scrape"]} - set(fields()))


def other_exporter(name: str) -> tuple[str, ...] | None:
    """What another exporter's metric NAME is called here: up to two names, or none; None where it isn't such a one."""
    facts = _facts()["other_exporters"]
    return tuple(facts["names"].get(name, ())) if name.startswith(tuple(facts["prefixes"])) else None


def served_by(name: str) -> str:
    """The section of the component here that serves the metric NAME, which looks like another's; "" for none."""
    base = re.sub("_(bucket|count|sum)$", "", name)
    for section, names in _facts()["other_exporters"]["served"].items():
        if base in names or name.startswith(tuple(each for each in names if each.endswith("_"))):
            return str(section)
    return ""


@functools.cache
def _aliases() -> Mapping[str, str]:
    return {each.alias: name for name, each in fields().items() if each.alias}


@functools.cache
def _exported(version: str) -> frozenset[str]:
    groups = (text for since, text in _names()["names"].items() if _versions.key(since) <= _versions.key(version))
    own = (name for name, each in fields().items() if each.id is None)
    return frozenset(name for text in groups for name in text.split()).union(own)


def left_out_while_blank(tag: str) -> frozenset[str]:
    """The metrics that the exporter of TAG has no series of while their value is blank."""
    table = _facts()["left_out_while_blank"].items() if _versions.numbers(tag) else ()
    return frozenset(name for when, names in table if _versions.satisfies(tag, when) for name in names)
