"""For a comment on a pull request: never more than a number of bytes, and what is red is always in it.

The parts have an order: what it comes to, what waits for somebody (tiers 0 to 2), what else it does, changes. What
comes later is cut first, in whole parts, and counted. Of what is red each rule always has its line: where not all of it
fits, the rules take turns, each with what is unlike what it told already first, so that nobody hides one finding behind
a thousand others. The bytes for the lines are set aside before anything else is written. There are some fifty rules, so
that they always fit into SMALLEST.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from ....review.accepted import agreement
from ....review.diff.groups import Group
from ....review.diff.present import Block, blocks, count
from ....review.diff.ranges import fold, summary
from ....review.impact.effects import Effect, by_rule
from ....review.impact.tiers import TIERS
from ...text import printable
from . import Compared, head, missing, verdict

SMALLEST = 8_000
"""Bytes below which no budget is taken: a line for each rule has room in it."""
LONGEST = 600
"""Bytes of the line that says which numbers are missing."""
CUT = "..."
HEADING = "\n#### Somebody has to accept this\n\n"
MORE = "\nNot all of these fit here: the whole is in `gpustack diff`.\n"
SHORTEST = 40
"""Bytes that no finding is told in."""
_NAMES = re.compile(r"[\d.]+|['\"`].*?['\"`]|[\w.-]*[-\d./][\w./-]*")
END = "\n{} of {} {} are not shown here: the whole is in `gpustack diff`.\n"
_TICKS = re.compile("`+")
_SPAN = re.compile("(?<!`)(`[^`]+`)(?!`)")
_SPECIAL = re.compile(r"[^\w ,.:%()=/+;>'\"-]|_")


def write(compared: Compared, *, budget: int = 65_000) -> str:
    """COMPARED in at most BUDGET bytes."""
    body = Body(max(budget, SMALLEST))
    ends = sum(size(END.format(10**9, 10**9, what)) for what in ("effects", "changes"))
    total = compared.difference.total
    body.must(f"### gpustack: {head(compared)}\n")
    body.must(f"\n{escaped(verdict(compared))}\n" if verdict(compared) else "")
    spare = body.left - ends - size(told(compared, counted_only)) - size("\n\n")
    rest = "; ".join(filter(None, (missing(compared), *compared.complaints)))
    body.must(f"\n{brief(rest, min(spare, LONGEST))}\n" if rest else "")
    body.must(red(compared, body.left - ends))
    notes = [note(first, same, total) for first, same in by_rule(compared.impact.green)]
    body.add_all([f"\n#### What else it does\n\n{notes[0]}", *notes[1:]] if notes else [], "effects", ends)
    body.add_all((section(group, total) for group in compared.difference.groups), "changes", ends // 2)
    return body.text


class Body:
    """A text that grows to a number of bytes and not beyond."""

    def __init__(self, budget: int) -> None:
        self.text, self.left = "", budget

    def must(self, part: str) -> None:
        """Append PART, for which there is room by construction."""
        if not self.add(part):
            raise AssertionError(f"{size(part)} bytes don't fit into {self.left}: more rules than SMALLEST is made for")

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
    return _SPECIAL.sub(lambda match: _entity(match[0]), quiet)


def prose(text: str) -> str:
    """TEXT of our own, escaped but for its code spans, which show what is in them as it is. A backtick without another
    one is escaped: so none opens a span that isn't one here."""
    parts = _SPAN.split(printable(text))
    return "".join(part if number % 2 else escaped(part) for number, part in enumerate(parts))


def brief(text: str, most: int) -> str:
    """TEXT, escaped, in at most MOST bytes: what is cut is cut before, so that no tag or entity is torn."""
    made = escaped(text)
    while size(made) > most and text:
        text = text[: max(0, len(text) * most // size(made) - len(CUT))]
        made = escaped(text) + CUT
    return made


def _entity(character: str) -> str:
    if character in "@#":
        return f"<code>{character}</code>"  # mentions and references are made of what is shown, but not of code
    return {"\0": "&#47;", "\1": "&#46;"}.get(character, f"&#{ord(character)};")


def red(compared: Compared, room: int) -> str:
    """What is red in at most ROOM bytes: in full, without reasons, or as much of each rule as there is room for."""
    for how in (in_full, in_brief):
        text = told(compared, how)
        if size(text) <= room:
            return text
    return shared_out(compared, max(room * 2 // 3, size(told(compared, counted_only)) + size(MORE)))


def shared_out(compared: Compared, room: int) -> str:
    """A line for each rule in at most ROOM bytes, and of each in turn what is unlike what it told already first."""
    rules = [(counted_only(first, same), unlike(same)) for first, same in by_rule(compared.impact.red)]
    told_of: list[list[str]] = [[] for _ in rules]
    left = room - size(told(compared, counted_only)) - size(MORE)
    for turn in zip_longest(*(effects for _, effects in rules)):
        if left < SHORTEST:
            break
        for rows, effect in zip(told_of, turn, strict=True):
            line = f"  - {row(effect, compared.difference.total, LONGEST)}\n" if effect else ""
            if line and size(line) <= left:
                rows.append(line)
                left -= size(line)
    parts = [line + "".join(rows) for (line, _), rows in zip(rules, told_of, strict=True)]
    return HEADING + "".join(parts) + (MORE if left >= 0 else "")


def unlike(effects: Sequence[Effect]) -> list[Effect]:
    """EFFECTS of a rule, one of each sort first, the rarest before all; names and numbers alone make no sort."""
    sorts: dict[tuple[str, str], list[Effect]] = {}
    for effect in effects:
        kind, what = effect.where[:LONGEST].partition(" ")[0], _NAMES.sub("", effect.what[:LONGEST])
        sorts.setdefault((_NAMES.sub("", kind), what), []).append(effect)
    rarest = sorted(sorts.values(), key=len)
    return [effect for turn in zip_longest(*rarest) for effect in turn if effect is not None]


def told(compared: Compared, how: Callable[[Effect, Sequence[Effect], int], str]) -> str:
    """What is red, those of a rule as HOW says them."""
    rows = [how(first, same, compared.difference.total) for first, same in by_rule(compared.impact.red)]
    return HEADING + "".join(rows) if rows else ""


def in_full(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule with the reason, and what to do."""
    remedies = "".join(f"  - Do: {prose(remedy)}\n" for remedy in dict.fromkeys(effect.remedy for effect in same))
    return f"- **{label(first)} {prose(first.title)}.** {prose(first.why)}\n{_rows(same, total)}{remedies}"


def in_brief(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule."""
    return f"- **{label(first)} {prose(first.title)}.**\n{_rows(same, total)}"


def label(effect: Effect) -> str:
    """The tier and the rule of EFFECT."""
    return f"{effect.rule} ({effect.tier} {TIERS[effect.tier].name})"


def _rows(same: Sequence[Effect], total: int) -> str:
    return "".join(f"  - {row(effect, total)}\n" for effect in same)


def row(effect: Effect, total: int, most: int = 0) -> str:
    """One effect with its clusters; its texts in MOST bytes each, where that is a number."""
    where, what = (brief(text, most) if most else escaped(text) for text in (effect.where, effect.what))
    place = f"<code>{where.replace('<code>', '').replace('</code>', '')}</code>: " if where else ""
    clusters = summary(effect.clusters, total) if total > 1 and effect.clusters else ""
    more = [*filter(None, [effect.number(), clusters])]
    said = f"; {escaped(agreement(effect))}" if agreement(effect) else ""
    return f"{place}{what}" + (f" ({escaped('; '.join(more))})" if more else "") + said


def counted_only(first: Effect, same: Sequence[Effect], _total: int = 0, more: str = "") -> str:
    """The shortest that is said of a rule, and MORE."""
    return f"- **{label(first)} {prose(first.title)}**: {len(same)} times{more}\n"


def note(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule that are not red; of many, how often, and in which clusters."""
    if len(same) <= 12:
        return f"- {label(first)} {prose(first.title)}\n{_rows(same, total)}"
    clusters = {cluster for effect in same for cluster in effect.clusters}
    names = escaped(", ".join(fold(clusters)[:4])[:160])
    return counted_only(first, same, total, f" in {len(clusters)} of {total} clusters: {names}")


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
