"""Whether what stands in the cluster has all that is rendered. What is there besides is the API server's or others'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..model import Path

NOTHING: tuple[Any, ...] = ({}, [], "", None, False, 0)
"""What the API leaves out where it is the default."""


def differences(wanted: Any, live: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Where LIVE lacks something of WANTED, or has another value: path, what is rendered, what is there."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            if key in live:
                yield from differences(value, live[key], (*path, key))
            elif value not in NOTHING:
                yield (*path, key), value, None
    elif isinstance(wanted, list) and isinstance(live, list):
        yield from _lists(wanted, live, path)
    elif wanted != live and not (wanted in NOTHING and live in NOTHING):
        yield path, wanted, live


def _lists(wanted: Sequence[Any], live: Sequence[Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Named entries are compared by their names, in whatever order; all others one by one."""
    names = [each.get("name") if isinstance(each, dict) else None for each in live]
    if wanted and all(isinstance(each, dict) and each.get("name") for each in wanted) and all(names):
        for each in wanted:
            at = (*path, str(each["name"]))
            if each["name"] in names:
                yield from differences(each, live[names.index(each["name"])], at)
            else:
                yield at, each, None
        return
    if len(wanted) != len(live):
        yield path, f"{len(wanted)} entries", f"{len(live)} entries"
        return
    for number, (one, two) in enumerate(zip(wanted, live, strict=True)):
        yield from differences(one, two, (*path, number))
