"""gpustack accept: write down that somebody accepts findings of `gpustack diff`: who, until when, why, for what text.

The comparison is made again, so that what is accepted is what is there now. Whoever may accept is up to the owners of
acceptances.yaml in the repository.
"""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import InputError
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
    from ..text.source import decode, load_bytes
    from .trees.comparison import compare

    if options.until < options.today:
        raise refusal("GPU048", "over", day=options.until)
    path = Path(options.acceptances)
    acceptances(path, options.acceptances)  # what can't be read isn't written to
    with compare(options) as compared:
        chosen = select(options.findings, compared.impact)
    old = decode(load_bytes(path, options.acceptances), options.acceptances) if path.exists() else ""
    contradicted(chosen, old, options)
    repeated(chosen, compared.used, options)
    text = appended(
        old, [entry(effect, options.by, options.until, options.why) for effect in chosen if not effect.accepted]
    )
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


def contradicted(chosen: Sequence[Effect], text: str, options: argparse.Namespace) -> None:
    """Raises InputError where TEXT, what stands in the file, accepts one of CHOSEN in other words than OPTIONS do.

    An entry is never changed here: its owners see what becomes of what they wrote.
    """
    from ..policy.loading.decisions import parsed
    from ..text.positions import locate

    asked = (options.by, options.until, " ".join(options.why.split()))
    listed = {
        (one.finding, one.before, one.after): (index, one)
        for index, one in enumerate(parsed(text, options.acceptances))
        if one.last >= options.today
    }
    wrong = []
    for effect in chosen:
        if not effect.accepted:
            continue
        index, one = listed[effect.id, effect.before, effect.after]
        if (one.by, one.last, " ".join(one.why.split())) != asked:
            where = locate(text, options.acceptances, (index,))
            wrong.append(said("GPU048", "otherwise", where, name=effect.id, words=one.words))
    if wrong:
        raise InputError(*wrong)


def repeated(chosen: Sequence[Effect], used: Sequence[AcceptanceSpec], options: argparse.Namespace) -> None:
    """Raises InputError where one of CHOSEN is to be accepted in the words of an entry that is USED."""
    asked = (options.by, options.until.isoformat(), " ".join(options.why.split()))
    merged = {
        (one.finding, one.before, one.after) for one in used if (one.by, one.until, " ".join(one.why.split())) == asked
    }
    wrong = [
        said("GPU048", "used", name=each.id)
        for each in chosen
        if not each.accepted and (each.id, each.before, each.after) in merged
    ]
    if wrong:
        raise InputError(*wrong)


def entry(effect: Effect, by: str, until: datetime.date, why: str) -> list[str]:
    """The lines of an acceptance."""
    import json

    clusters = (
        f" in {len(effect.clusters)} cluster{'' if len(effect.clusters) == 1 else 's'}" if effect.clusters else ""
    )
    about = "".join(c for c in f"{effect.title}{clusters}" if c.isprintable())
    return [
        f"- finding: {effect.id} # {about}",
        f"  before: {effect.before}",
        f"  after: {effect.after}",
        f"  by: {json.dumps(by, ensure_ascii=False)}",
        f"  until: {until.isoformat()}",
        f"  why: {json.dumps(why, ensure_ascii=False)}",
    ]


def appended(text: str, entries: Sequence[Sequence[str]]) -> str:
    """TEXT with ENTRIES at its end, as far to the right as its list is: comments and order stay."""
    first = re.search(r"^( *)- ", text, re.MULTILINE)
    indent = first[1] if first else ""
    empty = not first and text.strip() in {"[]", "---"}
    whole = "" if empty else text if not text or text.endswith("\n") else f"{text}\n"
    return whole + "".join(f"{indent}{line}\n" for lines in entries for line in lines)
