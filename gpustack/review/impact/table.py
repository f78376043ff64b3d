"""The lists of tiers: which fields of which policies and kinds are known, and what a change of them may do.

Solves: a list of what is dangerous is never whole. So what is harmless is listed, and bounded changes with the bound;
whatever isn't listed is power. The lists are data (catalog/data/tiers.yaml), the bounds code (bounds.py).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...catalog import _data
from .bounds import BOUNDS
from .leaves import Leaf, Path
from .tiers import PLANNED, POWER

KNOWN = "known"
"""The tier of what a new cluster says as another one does already."""


@dataclass(frozen=True)
class Entry:
    """Fields, the bound within which they are of TIER, and the tiers elsewhere: out of bounds, and in a new cluster."""

    path: Path
    tier: int
    when: str
    otherwise: int
    new: int | str | None


@cache
def policy() -> tuple[Entry, ...]:
    """What is known of fields of policies."""
    return tuple(map(_entry, _data.load("tiers")["policy"]))


@cache
def of_kind(kind: str) -> tuple[Entry, ...]:
    """What is known of fields of objects of KIND."""
    listed = _data.load("tiers")["objects"]
    return tuple(map(_entry, [*listed["*"], *listed.get(kind, ())])) if kind in listed else ()


def _entry(item: dict[str, Any]) -> Entry:
    path = item["path"]
    steps = tuple(path) if isinstance(path, list) else tuple(path.split("."))
    return Entry(steps, item["tier"], item.get("when", ""), item.get("else", POWER), item.get("new"))


def tier_of(entries: Sequence[Entry], leaf: Leaf, *, new: bool = False, known: bool = False) -> int:
    """The tier of LEAF by ENTRIES. NEW: in a cluster that is new; KNOWN: another cluster says just so already."""
    entry = next((entry for entry in entries if matches(entry.path, leaf.path)), None)
    if entry is None:
        return POWER
    if new and entry.new is not None:
        return PLANNED if entry.new != KNOWN or known else POWER
    if entry.when and not BOUNDS[entry.when](leaf):
        return entry.otherwise
    return entry.tier


def asks_for_known(entries: Sequence[Entry], path: Path) -> bool:
    """Whether PATH is among those of ENTRIES that a new cluster may have as another one does."""
    return next((entry.new == KNOWN for entry in entries if matches(entry.path, path)), False)


@cache
def matches(pattern: Path, path: Path) -> bool:
    """Whether PATTERN is about PATH."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and matches(pattern[1:], path[1:])


@cache
def listed() -> dict[str, str]:
    """The group of each kind of which fields are known."""
    return dict(_data.load("tiers")["groups"])


def guard(kind: str) -> bool:
    """Whether an object of KIND keeps others from something."""
    return kind in _data.load("tiers")["guards"]


def read_by_name(name: str) -> bool:
    """Whether some program reads a ConfigMap for its NAME."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _data.load("tiers")["read_by_name"])
