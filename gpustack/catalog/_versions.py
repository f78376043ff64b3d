"""Comparing versions, and the conditions that data files put on them.

A condition is `>=V`, `<V` or `==V`, several of them joined by commas (all must hold). V may be shorter than what it
is compared with and then stands for the whole line: v26.3.1 is >=v26.3, ==v26.3 and not <v26.3. `<=` and `>` do not
exist, because they have no single meaning for a line.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any

from gpustack import model

Key = tuple[int, ...]

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII)
_TERM = re.compile(r"(>=|<|==)\s*(v?\d+(?:\.\d+)*)", re.ASCII)


@functools.lru_cache(maxsize=4096)
def numbers(version: str | None) -> Key:
    """The numbers at the start of VERSION: v1.34.1+k3s1 is (1, 34, 1). Empty where it has none."""
    match = _NUMBERS.match(version or "")
    return model.numbers(match[1]) if match else ()


def key(version: str) -> Key:
    """As `numbers`, for what has to be a version: v26.7.0 and 26.7.0-rc.1 are (26, 7, 0). ValueError else."""
    parts = numbers(version)
    if not parts:
        raise ValueError(f"not a version: {version!r}")
    return parts


@functools.lru_cache(maxsize=4096)
def satisfies(version: str, condition: str) -> bool:
    """Whether VERSION satisfies CONDITION. ValueError where it can't be read as one."""
    have = key(version)
    for text in condition.split(","):
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not a condition: {text.strip()!r}")
        want = key(match[2])
        line = have[: len(want)]
        holds = {">=": line >= want, "<": line < want, "==": line == want}[match[1]]
        if not holds:
            return False
    return True


def of_line(table: Mapping[str, Any], line: str) -> Any:
    """The entry of TABLE for release LINE ("v26.7"); a line without one has that of the newest line before it. So a new
    release is one file: what is published about a line later is added to the tables when it is known."""
    before = [name for name in table if key(name) <= key(line)]
    return table[max(before, key=key)] if before else table[min(table, key=key)]
