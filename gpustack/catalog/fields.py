"""Every field of the operator's custom resources: type, enum, default and the release that brought it.

A path is dotted from `spec` down; `[]` stands for the elements of a list: daemonsets.tolerations[].key. The data is
for telling a typo from a field (`gpustack adopt`, diagnostics, the catalogue's own tests); the policy models do not
read it.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpustack.catalog import _data
from gpustack.catalog._lookup import UnknownName, nearest


class UnknownKind(UnknownName):
    what = "custom resource kind"


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """One field. `default` is the API server's, None where it has none; `since` is None where v24.3.0 had it."""

    type: str
    enum: tuple[str, ...] = ()
    default: Any = None
    since: str | None = None


def kinds() -> list[str]:
    """The kinds whose fields are known."""
    return list(_data.listing("fields"))


@functools.cache
def fields(kind: str) -> Mapping[str, FieldFacts]:
    """The fields below `spec` of KIND in the newest release, by path, parents first. UnknownKind for any other."""
    if kind not in _data.listing("fields"):
        raise UnknownKind(kind, nearest(kind, kinds()))
    return MappingProxyType(
        {
            path: FieldFacts(facts["type"], tuple(facts.get("enum", ())), facts.get("default"), facts.get("since"))
            for path, facts in _data.load(f"fields/{kind}").items()
        }
    )


@functools.cache
def leaves(kind: str) -> tuple[str, ...]:
    """The paths of KIND that have no fields below them."""
    parents = {path.rpartition(".")[0].removesuffix("[]") for path in fields(kind)}
    return tuple(path for path in fields(kind) if path not in parents)
