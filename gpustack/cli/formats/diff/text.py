"""For a terminal; with colours where one is behind standard output."""

import itertools
from collections.abc import Iterator, Sequence

from ....review.accepted import agreement
from ....review.diff.present import blocks, count
from ....review.diff.ranges import summary
from ....review.impact.effects import Effect, by_rule
from ....review.impact.tiers import RED, named
from ...text import folded, printable
from . import Compared, head, missing, sentence, verdict

Painted = tuple[str, str]
"""A line, and how it is shown."""
CODES = {"head": "1", "red": "1;31", "green": "33", "+": "32", "-": "31", "title": "1", "dim": "2", "": ""}


def write(compared: Compared, *, colours: bool = False, columns: int = 0) -> str:
    """COMPARED as lines; what is told of the changes is broken at COLUMNS, 0 for nowhere, and the changes are not."""
    told = ((part, how) for line, how in lines(compared) for part in folded(printable(line), columns).split("\n"))
    shown = ((printable(line), how) for line, how in changes(compared))
    return "".join(f"{paint(line, how, colours)}\n" for line, how in itertools.chain(told, shown))


def paint(line: str, how: str, colours: bool) -> str:
    """LINE with the colour of HOW."""
    code = CODES[how] if colours else ""
    return f"\x1b[{code}m{line}\x1b[0m" if code and line else line


def lines(compared: Compared) -> Iterator[Painted]:
    """What is told of the changes, line by line."""
    yield head(compared), "head"
    for line in filter(None, (verdict(compared), missing(compared), *compared.complaints)):
        yield line, "red" if compared.impact.red and line == verdict(compared) else ""
    total = compared.difference.total
    for first, same in by_rule(compared.impact.effects):
        yield "", ""
        yield f"{named(first.tier)} {first.rule}: {first.title}", "red" if first.tier <= RED else "green"
        yield from effects(same, total)
        if first.tier <= RED:
            yield f"  why: {first.why}", "dim"
            yield from ((f"  do: {remedy}", "dim") for remedy in dict.fromkeys(effect.remedy for effect in same))


def effects(same: Sequence[Effect], total: int) -> Iterator[Painted]:
    """The effects of a rule, each with its clusters, those of the same clusters below one another."""
    shown: tuple[str, ...] = ()
    for effect in same:
        if effect.clusters != shown and effect.clusters and total > 1:
            yield f"  {summary(effect.clusters, total)}", ""
        shown = effect.clusters
        yield f"  {'  ' if total > 1 else ''}{sentence(effect)}", ""
        if agreement(effect):
            yield f"  {'  ' if total > 1 else ''}  {agreement(effect)}", "dim"


def changes(compared: Compared) -> Iterator[Painted]:
    for group in compared.difference.groups:
        yield "", ""
        yield f"{summary(group.clusters, compared.difference.total)} ({count(group)})", "title"
        for block in blocks(group):
            yield f"  {block.mark} {block.title}", ""
            for line in block.lines:
                yield f"    {line.mark} {line.text}".rstrip(), line.mark if line.mark in "+-" else ""
