"""What a change does: its effects, the lowest tier first, with reasons where one must be accepted; and its groups."""

from collections.abc import Iterator, Sequence

from ..accepted import agreement
from ..diff.groups import Difference, Group
from ..diff.present import blocks, count
from ..diff.ranges import summary
from ..impact.effects import Effect, Impact, by_rule
from ..impact.tiers import RED, named
from ..templates import each, part
from .frame import Section, prose, rule_link, text

OPEN = 3
"""So many groups are shown unfolded."""
TAGS = {"+": "ins", "-": "del"}


def effects(impact: Impact, total: int) -> Section:
    """The section of IMPACT in TOTAL clusters."""
    made = [of_rule(first, same, total) for first, same in by_rule(impact.effects)]
    return Section("impact", "What it does to nodes and workloads", "".join(made))


def of_rule(first: Effect, same: Sequence[Effect], total: int) -> str:
    """The effects of a rule that are of one tier, with the FIRST of them."""
    return part(
        "effect-to-accept" if first.tier <= RED else "effect",
        heading=f"{text(named(first.tier).capitalize())}, {rule_link(first.rule)}",
        title=prose(first.title),
        rows=each("item", (_row(effect, total) for effect in same)),
        why=prose(first.why),
        remedies=each("remedy", map(prose, dict.fromkeys(one.remedy for one in same))),
    )


def _row(effect: Effect, total: int) -> str:
    place = f"{part('bold', body=text(effect.where))}: " if effect.where else ""
    clusters = summary(effect.clusters, total) if total > 1 and effect.clusters else ""
    parts = [*filter(None, (effect.number(), clusters))]
    said = f"; {agreement(effect)}" if agreement(effect) else ""
    return f"{place}{prose(effect.what)}" + (f" ({text('; '.join(parts))})" if parts else "") + prose(said)


def groups(difference: Difference) -> Section:
    """The section of the groups of DIFFERENCE."""
    made = [block(group, difference.total, unfolded=at < OPEN) for at, group in enumerate(difference.groups)]
    return Section("changes", "Changes", "".join(made))


def block(group: Group, total: int, *, unfolded: bool) -> str:
    """One group."""
    title = text(f"{summary(group.clusters, total)} ({count(group)})")
    return part("changes", open=" open" if unfolded else "", title=title, lines="\n".join(_lines(group)))


def _lines(group: Group) -> Iterator[str]:
    for one in blocks(group):
        yield f"{text(one.mark)} {text(one.title)}"
        for line in one.lines:
            shown = f"{text(line.mark)} {text(line.text)}".rstrip()
            tag = TAGS.get(line.mark)
            yield f"  <{tag}>{shown}</{tag}>" if tag else f"  {shown}"
