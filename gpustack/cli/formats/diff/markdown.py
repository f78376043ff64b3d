"""For a comment on a pull request: never more than a number of bytes, and the dangers are always in it.

The parts have an order: what it comes to, dangers, notes, changes. What comes later is cut first, in whole parts, and
counted. Dangers are never cut: where they would not fit, they are said more briefly, in the end as a line for each rule
with how often and where. There are some thirty rules, so that always fits into SMALLEST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....review.diff.groups import Group
from ....review.diff.present import Block, blocks, count
from ....review.diff.ranges import fold, summary
from ....review.impact.effects import Effect
from ...text import printable
from . import Compared, by_rule, head, missing, verdict

SMALLEST = 8_000
"""Bytes below which no budget is taken: a line for each rule has room in it."""
END = "\n{} of {} {} are not shown here: the whole is in `gpustack diff`.\n"
_TICKS = re.compile("`+")
_SPECIAL = re.compile(r"[^\w ,.:%()=/+;>'\"-]|_")


def write(found: Compared, *, budget: int = 65_000) -> str:
    """FOUND in at most BUDGET bytes."""
    body = Body(max(budget, SMALLEST))
    body.add(f"### gpustack: {head(found)}\n")
    for line in filter(None, (verdict(found), missing(found))):
        body.add(f"\n{escaped(line)[:600]}\n")
    ends = sum(size(END.format(10**9, 10**9, what)) for what in ("notes", "changes"))
    body.add(dangers(found, body.left - ends))
    total = found.difference.total
    notes = [note(first, same, total) for first, same in by_rule(found.impact.notes)]
    body.add_all([f"\n#### What else it does\n\n{notes[0]}", *notes[1:]] if notes else [], "notes", ends)
    body.add_all((section(group, total) for group in found.difference.groups), "changes", ends // 2)
    return body.text


class Body:
    """A text that grows to a number of bytes and not beyond."""

    def __init__(self, budget: int) -> None:
        self.text, self.left = "", budget

    def add(self, part: str) -> bool:
        """Append PART if it fits; whether it did."""
        if size(part) > self.left:
            return False
        self.text += part
        self.left -= size(part)
        return True

    def add_all(self, parts: Iterator[str] | Sequence[str], what: str, reserved: int) -> None:
        """Append PARTS as long as RESERVED bytes are left after them, then say how many are missing."""
        every = list(parts)
        for number, part in enumerate(every):
            if size(part) + reserved > self.left:
                self.add(END.format(len(every) - number, len(every), what))
                return
            self.add(part)


def size(text: str) -> int:
    """Bytes of TEXT; halves of characters count as what they are printed as."""
    return len(text.encode("utf-8", "backslashreplace"))


def escaped(text: str) -> str:
    """TEXT so that Markdown and HTML show it as it is: no heading, link, tag, mention or reference comes of it."""
    quiet = printable(text).replace("://", ":\0\0").replace("www.", "www\1")
    return _SPECIAL.sub(lambda found: _entity(found[0]), quiet)


def _entity(character: str) -> str:
    if character in "@#":
        return f"<code>{character}</code>"  # mentions and references are made of what is shown, but not of code
    return {"\0": "&#47;", "\1": "&#46;"}.get(character, f"&#{ord(character)};")


def dangers(found: Compared, room: int) -> str:
    """The dangers in at most ROOM bytes: in full, without reasons, or folded to a line for each rule."""
    if not found.impact.dangers:
        return ""
    total, rules = found.difference.total, list(by_rule(found.impact.dangers))
    for how in (in_full, in_brief, folded, counted_only):
        text = "\n#### Dangers\n\n" + "".join(how(first, same, total) for first, same in rules)
        if size(text) <= room:
            return text
    return text


def in_full(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule with the reason, and what to do."""
    remedies = "".join(f"  - Do: {escaped(remedy)}\n" for remedy in dict.fromkeys(effect.remedy for effect in same))
    return f"- **{first.rule} {escaped(first.title)}.** {escaped(first.why)}\n{_rows(same, total)}{remedies}"


def in_brief(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule."""
    return f"- **{first.rule} {escaped(first.title)}.**\n{_rows(same, total)}"


def _rows(same: Sequence[Effect], total: int) -> str:
    return "".join(f"  - {row(effect, total)}\n" for effect in same)


def row(effect: Effect, total: int) -> str:
    """One effect with its clusters."""
    place = (
        f"<code>{escaped(effect.where).replace('<code>', '').replace('</code>', '')}</code>: " if effect.where else ""
    )
    more = [*filter(None, [effect.number()]), *([summary(effect.clusters, total)] if total > 1 else [])]
    return f"{place}{escaped(effect.what)}" + (f" ({escaped('; '.join(more))})" if more else "")


def folded(first: Effect, same: Sequence[Effect], total: int) -> str:
    """A line for a rule: how often, and in which clusters."""
    clusters = {cluster for effect in same for cluster in effect.clusters}
    names = ", ".join(fold(clusters)[:4])
    return f"{_line(first, same)} in {len(clusters)} of {total} clusters: {escaped(names[:160])}\n"


def counted_only(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The shortest that is said of a rule."""
    del total
    return f"{_line(first, same)}\n"


def _line(first: Effect, same: Sequence[Effect]) -> str:
    return f"- **{first.rule} {escaped(first.title)}**: {len(same)} times"


def note(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule that is no danger; many are folded."""
    if len(same) > 12:
        return folded(first, same, total)
    return f"- {first.rule} {escaped(first.title)}\n{_rows(same, total)}"


def section(group: Group, total: int) -> str:
    """The changes of a group, folded away."""
    lines = [line for block in blocks(group) for line in _diff_lines(block)]
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    title = escaped(f"{summary(group.clusters, total)} ({count(group)})")
    return f"\n<details><summary>{title}</summary>\n\n{fence}diff\n" + "\n".join(lines) + f"\n{fence}\n\n</details>\n"


def _diff_lines(block: Block) -> Iterator[str]:
    yield printable(f"{'!' if block.mark == '~' else block.mark} {block.title}")
    for line in block.lines:
        yield printable(f"{'#' if line.mark == '~' else line.mark}   {line.text}".rstrip())
