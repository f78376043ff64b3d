"""A list of clusters the way people write it: prod-eu-1..12, prod-us-3, and 40 of 412."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence

from ...model import few

_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)")


def fold(names: Iterable[str]) -> list[str]:
    """NAMES with runs of numbers as ranges, in order: a-1, a-2, a-3 is a-1..3. Two alone are not a range."""
    rows: dict[tuple[str, str, int], list[int]] = {}
    ranges: list[str] = []
    for name in sorted(set(names)):
        match = _NUMBERED.fullmatch(name)
        if match is None:
            ranges.append(name)
            continue
        stem, number, rest = match.groups()
        width = len(number) if number.startswith("0") and number != "0" else 0  # 08 and 8 are two names
        rows.setdefault((stem, rest, width), []).append(int(number))
    for (stem, rest, width), numbers in rows.items():
        for run in runs(sorted(numbers)):
            ranges += _written(stem, rest, width, run)
    return sorted(ranges, key=_natural)


def runs(numbers: Sequence[int]) -> list[list[int]]:
    """NUMBERS, which are sorted, in runs without a gap."""
    apart = itertools.groupby(enumerate(numbers), lambda placed: placed[1] - placed[0])
    return [[number for _, number in run] for _, run in apart]


def _written(stem: str, rest: str, width: int, run: Sequence[int]) -> list[str]:
    texts = [f"{number:0{width}d}" if width else str(number) for number in run]
    if len(run) < 3:
        return [f"{stem}{text}{rest}" for text in texts]
    return [f"{stem}{texts[0]}..{texts[-1]}{rest}"]


def _natural(text: str) -> list[tuple[int, int | str]]:
    parts = re.split(r"([0-9]+)", text)  # digits of other scripts are not numbers to it
    return [(0, int(part)) if at % 2 else (1, part) for at, part in enumerate(parts) if part]


def summary(names: Sequence[str], total: int) -> str:
    """NAMES of TOTAL clusters in a line: "all 412 clusters", "3 of 412 clusters: prod-eu-1..3"."""
    if len(names) == total:
        return f"all {total} clusters" if total > 1 else f"cluster {names[0]}"
    return f"{len(names)} of {total} cluster{'' if total == 1 else 's'}: {few(_folded(tuple(names)), 6)}"


@functools.lru_cache(maxsize=256)
def _folded(names: tuple[str, ...]) -> list[str]:
    """NAMES folded once: many changes are in the same clusters."""
    return fold(names)
