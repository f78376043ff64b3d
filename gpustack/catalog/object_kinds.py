"""Where objects of a kind have what rules and components look at, and what is known of the kind."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from . import _data

Paths = tuple[tuple[str, ...], ...]

facts = functools.partial(_data.load, "object-kinds")


def paths(kinds: Mapping[str, Sequence[str]]) -> dict[str, Paths]:
    """Where each of KINDS has it; "*" is each item of a list."""
    return {kind: tuple(tuple(path.split(".")) for path in places) for kind, places in kinds.items()}


def grouped(what: str) -> dict[tuple[str, str], Paths]:
    """Where kinds have WHAT ("pods"), by API group ("" for the core API) and kind."""
    return {(group, kind): places for group, kinds in facts()[what].items() for kind, places in paths(kinds).items()}
