"""The lists of tiers: which fields of which policies and kinds are known, and what a change of them may do.

Solves: a list of what is dangerous is never whole. So what is harmless is listed, and bounded changes with the bound;
whatever isn't listed is power. The lists are data (catalog/data/tiers.yaml), the bounds code (bounds.py).
"""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...catalog import _data
from .bounds import BOUNDS
from .leaves import Leaf, Path
from .tiers import PLANNED, POWER

LISTED: Mapping[str, str] = _data.load("tiers")["groups"]
"""The group of each kind of which fields are known."""
KNOWN = "known"
"""The tier of what a new cluster says as another one does already."""


@dataclass(frozen=True)
class Entry:
    """Fields, of TIER within their bounds; the BOUNDS, each with the tier out of it; that of a new cluster; WHY it
    matters. A GUARD keeps workloads from something: a new cluster's is held against what another one says."""

    path: Path
    tier: int
    bounds: tuple[tuple[str, int], ...]
    new: int | str | None
    why: str = ""
    guard: bool = False


UNLISTED = Entry((), POWER, (), None)


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
    when = item.get("when", {})
    bounds = when.items() if isinstance(when, dict) else [(when, item.get("else", POWER))]
    return Entry(steps, item["tier"], tuple(bounds), item.get("new"), item.get("why", ""), item.get("guard", False))


def entry_for(entries: Sequence[Entry], path: Path) -> Entry:
    """The first of ENTRIES that is about PATH."""
    return next((entry for entry in entries if matches(entry.path, path)), UNLISTED)


def tier_of(entries: Sequence[Entry], leaf: Leaf, *, new: bool = False, known: bool = False) -> int:
    """The tier of LEAF by ENTRIES. NEW: in a cluster that is new; KNOWN: another cluster says just so already."""
    entry = entry_for(entries, leaf.path)
    if new and known:
        return PLANNED
    if new and entry.new is not None:
        return PLANNED if entry.new != KNOWN else POWER
    return next((tier for bound, tier in entry.bounds if not BOUNDS[bound](leaf)), entry.tier)


@cache
def matches(pattern: Path, path: Path) -> bool:
    """Whether PATTERN is about PATH."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and matches(pattern[1:], path[1:])


def guard(kind: str) -> bool:
    """Whether an object of KIND keeps others from something."""
    return kind in _data.load("tiers")["guards"]


def named_in(names: str, name: str) -> bool:
    """Whether NAME is in the list NAMES: `alerts` of common sets of rules, in whatever case; `namespaces` for GPUs,
    into which nobody else's programs look; ConfigMaps that programs read (`read_by_name`)."""
    patterns = _data.load("tiers")[names]
    if names == "alerts":
        name, patterns = name.lower(), [pattern.lower() for pattern in patterns]
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
