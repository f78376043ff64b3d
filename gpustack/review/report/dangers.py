"""What a change does: the lowest tier first, and with reasons what waits for somebody to accept it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..accepted import key
from ..diff.ranges import summary
from ..impact.effects import Effect, Impact
from ..impact.tiers import RED, named
from .frame import Section, prose, rule_link, text


def section(impact: Impact, total: int) -> Section:
    """The section of IMPACT in TOTAL clusters."""
    made = [
        block(list(same), total) for _, same in groupby(impact.effects, key=lambda effect: (effect.tier, effect.rule))
    ]
    return Section("impact", "What it does to nodes and workloads", "".join(made))


def block(same: Sequence[Effect], total: int) -> str:
    """The effects of a rule that are of one tier."""
    first = same[0]
    rows = "".join(f"<li>{_row(effect, total)}</li>\n" for effect in same)
    red, heading = first.tier <= RED, f"{text(named(first.tier).capitalize())}, {rule_link(first.rule)}"
    remedies = "".join(f"<p>What to do: {prose(remedy)}</p>\n" for remedy in dict.fromkeys(one.remedy for one in same))
    return (
        f'<div class="effect{" red" if red else ""}" data-row>\n'
        f"<h3>{heading}: {prose(first.title)}</h3>\n<ul>\n{rows}</ul>\n"
        + (f"<p>Why: {prose(first.why)}</p>\n{remedies}" if red else "")
        + "</div>\n"
    )


def _row(effect: Effect, total: int) -> str:
    place = f"<b>{text(effect.where)}</b>: " if effect.where else ""
    number = effect.number()
    clusters = summary(effect.clusters, total) if total > 1 and effect.clusters else ""
    parts = [*filter(None, (number, clusters))]
    said = (
        f"; accepted by {effect.accepted}" if effect.accepted else f"; to accept: {key(effect)}" if key(effect) else ""
    )
    return f"{place}{prose(effect.what)}" + (f" ({text('; '.join(parts))})" if parts else "") + prose(said)
