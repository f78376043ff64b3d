"""A comparison as text, Markdown, HTML, JSON or one unified diff: a module each, with `write(compared, ...) -> str`.

All say the same in the same order: what it comes to, what waits for somebody to accept it, what else it does to nodes
and workloads, and the changes themselves. Values come from policies and manifests: whatever they hold, they are text
here, never a control sequence, a tag or a heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ....review.diff.ranges import summary
from ....review.impact.tiers import ROUTINE, named
from ...common import counted

if TYPE_CHECKING:
    from ....policy.loading.decisions import AcceptanceSpec
    from ....review.diff.groups import Difference
    from ....review.impact.effects import Effect, Impact


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found: the changes in groups, what they do, why numbers are missing where some are, and what is
    wrong with acceptances. USED are acceptances that the base has already."""

    difference: Difference
    impact: Impact
    why: str = ""
    complaints: tuple[str, ...] = ()
    used: tuple[AcceptanceSpec, ...] = ()


def written(compared: Compared, how: str, *, budget: int, colours: bool, columns: int = 0) -> str:
    """COMPARED in the format HOW, with a line end. COLOURS and COLUMNS are for a terminal, BUDGET for Markdown."""
    write = import_module(f"{__name__}.{how}").write
    terminal: dict[str, Any] = {"colours": colours, "columns": columns}
    text: str = write(compared, **{"text": terminal, "markdown": {"budget": budget}}.get(how, {}))
    return text


def head(compared: Compared) -> str:
    """What the comparison comes to, in a line."""
    difference = compared.difference
    if not difference.groups:
        if any(effect.clusters for effect in compared.impact.effects):
            return f"no manifest differs in {counted(difference.total, 'cluster')}, but what policies say does"
        beside = ", but beside what is rendered" if compared.impact.effects else ""
        return f"no difference in {counted(difference.total, 'cluster')}{beside}"
    clusters = len({cluster for group in difference.groups for cluster in group.clusters})
    return f"{counted(len(difference.groups), 'change')} in {clusters} of {counted(difference.total, 'cluster')}"


def verdict(compared: Compared) -> str:
    """What a reviewer should know first; "" where nothing differs. Effects are counted as they are told, those of a
    rule under one heading, with the places that it is in behind it."""
    if not compared.difference.groups and not compared.impact.effects:
        return ""
    if compared.impact.routine:
        return f"{named(ROUTINE)}: nothing but what is known to be harmless"
    told = [
        f"{named(tier)}: {_told(list(same))}" for tier, same in groupby(compared.impact.effects, lambda one: one.tier)
    ]
    return "; ".join(told) or "no effect that a rule knows"


def _told(effects: Sequence[Effect]) -> str:
    headings = len({effect.rule for effect in effects})
    agreed = sum(1 for effect in effects if effect.accepted)
    places = f" in {len(effects)} places" if len(effects) > headings else ""
    return counted(headings, "finding") + places + (f", {agreed} accepted" if agreed else "")


def missing(compared: Compared) -> str:
    """Which numbers are missing; "" where none is."""
    unknown = compared.impact.unknown
    if not unknown:
        return ""
    shown = summary(unknown, compared.difference.total)
    return f"without numbers of nodes and of what they advertise, as {compared.why}: {shown}"


def sentence(effect: Effect) -> str:
    """Where and what, with the number of nodes."""
    place = f"{effect.where}: " if effect.where else ""
    number = effect.number()
    return f"{place}{effect.what}" + (f" ({number})" if number else "")
