"""gpustack accept: write down that somebody accepts findings of `gpustack diff`: who, until when, why, for what text.

The comparison is made again, so that what is accepted is what is there now. Whoever may accept is up to the owners of
acceptances.yaml in the repository.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, InputError
from ..text.positions import locate
from ..text.source import decode, load_bytes
from .common import counted
from .refusals import refusal, said
from .saving import save
from .text import printable, say

if TYPE_CHECKING:
    from ..policy.loading.decisions import AcceptanceSpec
    from ..review.impact.effects import Effect, Impact


def telling(text: str) -> str:
    """TEXT that says something."""
    if not re.search(r"[^\W\d_]", text) or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} says nothing, or not in one line")
    return text


def run(options: argparse.Namespace) -> int:
    from ..policy.loading.decisions import acceptances, parsed
    from .trees.comparison import compare

    if options.until < options.today:
        raise refusal("GPU048", "over", day=options.until)
    path = Path(options.acceptances)
    acceptances(path, options.acceptances)  # what can't be read isn't written to
    with compare(options) as compared:
        chosen = select(options.findings, compared.impact)
    old = decode(load_bytes(path, options.acceptances), options.acceptances) if path.exists() else ""
    for wrong in (contradicted(chosen, old, options), repeated(chosen, compared.used, options)):
        if findings := [*wrong]:
            raise InputError(*findings)
    text = appended(old, [entry(effect, options) for effect in chosen if not effect.accepted])
    parsed(text, options.acceptances)
    save(path, text, "the file", "name another one after --acceptances")
    for effect in chosen:
        state = f"already accepted by {effect.accepted}" if effect.accepted else f"accepted in {options.acceptances}"
        say(printable(f"{effect.id}: {effect.where or effect.title}: {state}"))
    return 0


def select(names: Sequence[str], impact: Impact) -> list[Effect]:
    """The findings called NAMES. Raises InputError for a name that no finding has, or that can't be accepted."""
    from ..review.accepted import acceptable

    known = {effect.id: effect for effect in impact.effects}
    wrong = []
    for name in dict.fromkeys(names):
        if name not in known:
            wrong.append(said("GPU048", "unknown", name=name))
        elif not acceptable(known[name]):
            wrong.append(said("GPU048", "not accepted", name=name, tier=known[name].tier))
    if wrong:
        raise InputError(*wrong)
    return [known[name] for name in dict.fromkeys(names)]


def words(of: AcceptanceSpec | argparse.Namespace) -> tuple[str, str, str]:
    """Who accepts, until when and why, as an entry or the options say it."""
    return of.by, str(of.until), " ".join(of.why.split())


def contradicted(chosen: Sequence[Effect], text: str, options: argparse.Namespace) -> Iterator[Finding]:
    """Those of CHOSEN that TEXT, what stands in the file, accepts in other words than OPTIONS do. An entry is never
    changed here: its owners see what becomes of what they wrote."""
    from ..policy.loading.decisions import parsed

    listed = {
        (one.finding, one.before, one.after): (index, one)
        for index, one in enumerate(parsed(text, options.acceptances))
        if one.last >= options.today
    }
    for effect in (each for each in chosen if each.accepted):
        index, one = listed[effect.id, effect.before, effect.after]
        if words(one) != words(options):
            where = locate(text, options.acceptances, (index,))
            yield said("GPU048", "otherwise", where, name=effect.id, words=one.words)


def repeated(
    chosen: Sequence[Effect], used: Sequence[AcceptanceSpec], options: argparse.Namespace
) -> Iterator[Finding]:
    """Those of CHOSEN that are to be accepted in the words of an entry that is USED."""
    merged = {(one.finding, one.before, one.after) for one in used if words(one) == words(options)}
    for each in chosen:
        if not each.accepted and (each.id, each.before, each.after) in merged:
            yield said("GPU048", "used", name=each.id)


def entry(effect: Effect, options: argparse.Namespace) -> list[str]:
    """The lines of an acceptance."""
    clusters = f" in {counted(len(effect.clusters), 'cluster')}" if effect.clusters else ""
    about = "".join(c for c in f"{effect.title}{clusters}" if c.isprintable())
    return [
        f"- finding: {effect.id} # {about}",
        f"  before: {effect.before}",
        f"  after: {effect.after}",
        f"  by: {json.dumps(options.by, ensure_ascii=False)}",
        f"  until: {options.until}",
        f"  why: {json.dumps(options.why, ensure_ascii=False)}",
    ]


def appended(text: str, entries: Sequence[Sequence[str]]) -> str:
    """TEXT with ENTRIES at its end, as far to the right as its list is: comments and order stay."""
    first = re.search(r"^( *)- ", text, re.MULTILINE)
    indent = first[1] if first else ""
    empty = not first and text.strip() in {"[]", "---"}
    whole = "" if empty else text if not text or text.endswith("\n") else f"{text}\n"
    return whole + "".join(f"{indent}{line}\n" for lines in entries for line in lines)
