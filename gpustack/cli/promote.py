"""gpustack promote: take a change one ring further, or back, and commit that with what it renders to.

A person or a bot runs it, on a branch of its own where the default branch is protected. It writes the change's file and
the rendered folders of the clusters that it comes to or leaves, and commits these alone.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..compiler import fleet as compiler
from ..compiler.sources import Project
from ..model import Finding, FindingsError, GpustackError, InputError, few
from ..policy.loading.load import ringed
from ..policy.loading.rings import CHANGES, Change
from ..review import rings as by_rings
from ..text.read import parse
from ..text.source import decode
from . import common, evidence
from .refusals import refusal
from .saving import save
from .text import document, plain, print_findings, printable, say
from .trees.attributes import converts
from .trees.repository import Git

OURS = ("GPU022", "GPU092")
"""What keeps `promote` itself from writing anything."""


class Fleet:
    """The rings of this project and the clusters in them, for what OPTIONS ask."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.seen = options, evidence.reports(options.verified)
        self.now = options.now or common.clock()
        if self.now > common.clock() + by_rings.AHEAD and not (options.status or options.no_commit):
            raise refusal("GPU092", "ahead")
        common.select([])  # what can't be a project is refused
        self.rings, self.ring_of, paths = ringed(Path(common.POLICIES), Path.cwd())
        changes = tuple(dataclasses.replace(each, merged=merged(each)) for each in self.rings.changes)
        self.rings = dataclasses.replace(self.rings, changes=changes)
        self.rendered = rendered(options, [paths[name] for name in self.seen if name in paths])
        names, known = [ring.name for ring in self.rings.rings], self.ring_of.items()
        self.members = {each: {name: paths[name] for name, ring in known if ring == each} for each in names}

    def change(self) -> Change:
        """The change that is named. Raises InputError."""
        name, known = self.options.change, {each.name: each for each in self.rings.changes}
        if name not in known:
            called = f"called {name}" if name else "named"
            raise refusal("GPU092", "unknown" if known else "none", called=called, names=few([*known], 12))
        return known[name]

    def ring(self, change: Change, step: int = 1) -> str | None:
        """The ring STEP rings after that of CHANGE; None before the first and after the last."""
        place = self.rings.place(change.rollout.ring) + step
        return self.rings.rings[place].name if 0 <= place < len(self.rings.rings) else None

    def blocks(self, change: Change) -> list[Finding]:
        """What keeps CHANGE from the next ring, if there is one."""
        ring = change.rollout.ring
        against = [change.told("hold", "held", hold=change.rollout.hold)] if change.rollout.hold else []
        if self.ring(change) and not self.options.skip:
            digests = {name: self.rendered.get(name, "") for name in self.members.get(ring or "", ())}
            against += evidence.blocks(change, self.rings, digests, self.seen, self.now)
        return against


def run(options: argparse.Namespace) -> int:
    if options.skip and not options.to:
        raise InputError.of("GPU026", "--skip goes with --to", remedy="name the ring")
    fleet = Fleet(options)
    changes = (fleet.change(),) if options.change or not (options.status or options.due) else fleet.rings.changes
    if options.status:
        return status(fleet, changes)
    results, left = due(fleet, changes) if options.due else ([asked(fleet, *changes)], [])
    if options.format == "json":
        print(document(0, [plain(each) for each in left], results=results))
    else:
        for line in results:
            say(printable(line))
        print_findings(left, sys.stdout)
    return 0


def asked(fleet: Fleet, change: Change) -> str:
    """Do with CHANGE what is asked for; what was done, in a line."""
    options, ring = fleet.options, change.rollout.ring
    if options.unhold and not change.rollout.hold:
        raise InputError(change.told("", "free"))
    if options.hold or options.unhold:
        what = f"held: {options.hold}" if options.hold else "goes on"
        return written(fleet, change, {"hold": options.hold}, what, {})
    if options.to:
        refuse(fleet, change)
        return moved(fleet, change, options.to)
    if ring is None:
        raise InputError(change.told("", "nowhere", next=fleet.ring(change)))
    return moved(fleet, change, fleet.ring(change, -1) if options.back else None)


def due(fleet: Fleet, changes: Iterable[Change]) -> tuple[list[str], list[Finding]]:
    """Take those of CHANGES further that may go; what was done, and what keeps the others, which stops nobody else."""
    results, left = list[str](), list[Finding]()
    for change in changes:
        following = fleet.ring(change) if change.rollout.ring else None
        against = fleet.blocks(change) if following else []
        try:
            results += [moved(fleet, change, following)] if following and not against else []
        except (FindingsError, InputError) as error:
            if any(each.rule in OURS for each in error.findings):
                raise
            against = error.findings
        left += [dataclasses.replace(each, severity="note") for each in against]
    return results, left


def status(fleet: Fleet, changes: Iterable[Change]) -> int:
    """Print the rings, and where CHANGES are."""
    known = fleet.rings.rings
    rings = [{"name": each.name, "soak": each.soak, "clusters": [*fleet.members[each.name]]} for each in known]
    rows = list[dict[str, Any]]()
    for each in changes:
        rest = int(evidence.left(each, fleet.rings, fleet.now).total_seconds())
        row: dict[str, Any] = {"name": each.name, **each.rollout.model_dump(), "next": fleet.ring(each)}
        row |= {"gpustack": each.version or None, "rings": by_rings.schedule(each, fleet.rings)}
        rows.append({**row, "soakLeft": rest, "blocks": [one.what for one in fleet.blocks(each)]})
    nowhere = [name for name, ring in fleet.ring_of.items() if ring is None]
    if fleet.options.format == "json":
        print(document(0, [], rings=rings, changes=rows, ringless=nowhere))
        return 0
    if not (known or rows):
        say("there are no rings and no changes here; gpustack's docs/rings.md says what they are")
        return 0
    heads, cells = by_rings.table(dataclasses.replace(fleet.rings, changes=tuple(changes)), fleet.ring_of)
    soaks = ["soak", *(each.soak for each in known)]
    widths = [max(map(len, column)) for column in zip(heads, soaks, *cells, strict=True)]
    for line in (heads, soaks, *cells):
        print(printable("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()))
    if nowhere:
        say(printable(f"in no ring: {few(nowhere, 12)}"))
    for row in rows:
        say(printable(f"{row['name']}: {'next is ' + row['next'] if row['next'] else 'in all rings'}"))
        for block in row["blocks"]:
            say(printable(f"  waits: {block}"))
    return 0


def refuse(fleet: Fleet, change: Change) -> None:
    """Raise InputError with what keeps CHANGE from the ring that is asked for."""
    to, following, wrong = fleet.options.to, fleet.ring(change), fleet.blocks(change)
    further = fleet.rings.place(to) > fleet.rings.place(change.rollout.ring)
    if not further or (to != following and not fleet.options.skip):
        remedy = f"--to {following} comes next; --skip REASON goes over rings" if following else "it is in all rings"
        wrong = [change.told("ring", "too far", ring=change.rollout.ring or "no ring", to=to, next=remedy)]
    if to not in fleet.members:
        wrong = [change.told("", "no ring", to=to, known=few([*fleet.members], 12))]
    if wrong:
        raise InputError(*wrong)


def merged(change: Change) -> datetime.datetime | None:
    """When the branch that is checked out got CHANGE as it is, its hold aside; None where Git doesn't know."""

    def what(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "rollout": {**(data.get("rollout") or {}), "hold": None}}

    try:
        git, made = Git("", ""), None
    except GpustackError:  # no clone: the file alone says it
        return None
    for at, content in git.history(change.document.file) if git.head() else ():
        there: dict[str, Any] = {}
        with contextlib.suppress(InputError, AttributeError, TypeError):
            there = what(parse(decode(content, ""), ""))
        if there != what(change.document.data):
            break
        made = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return made


def rendered(options: argparse.Namespace, paths: list[Path]) -> dict[str, str]:
    """By cluster the digest of what is rendered for it, of the policies PATHS."""
    with common.project(options) as project:
        sources = compiler.compiled(project, paths) if paths else ()
        return {each.name: compiler.digest_of(project, each) for each in sources}


def moved(fleet: Fleet, change: Change, ring: str | None) -> str:
    """Put CHANGE into RING, None for nowhere; what was done, in a line."""
    first, last = sorted(map(fleet.rings.place, (change.rollout.ring, ring)))
    between = fleet.rings.rings[first + 1 : last + 1]
    clusters = {name: path for each in between for name, path in fleet.members[each.name].items()}
    since = common.moment(fleet.now) if ring else None
    what = f"{change.rollout.ring or 'no ring'} to {ring or 'no ring'}"
    return written(fleet, change, {"ring": ring, "since": since}, what, clusters)


def written(fleet: Fleet, change: Change, values: dict[str, str | None], what: str, clusters: dict[str, Path]) -> str:
    """Write VALUES into CHANGE's rollout, render CLUSTERS, commit as WHAT; where that is refused, the file stays."""
    options, path, old = fleet.options, Path(common.POLICIES, CHANGES, f"{change.name}.yaml"), change.document.text
    with common.project(options) as project:
        git = None if options.no_commit else clean(project, clusters)
        save(path, edited(change, values), "the change", "make it writable")
        try:
            changes = compiler.render(project, list(clusters.values())).changes if clusters else []
        except BaseException:
            save(path, old, "the change", "make it writable")
            raise
    idle = ", and no manifest changes" if clusters and not any(each.any for each in changes) else ""
    what = f"{change.name}: {what}{idle}"
    if git is None:
        return what
    files = [path.as_posix()]
    for each in changes if git.entries("HEAD", options.out) else ():
        names = (*each.written, *each.removed, f"../.index/{each.cluster}.json")
        files += [os.path.normpath(f"{options.out}/{each.cluster}/{name}") for name in names]
    message = f"promote: {what}\n\n{common.counted(len(clusters), 'cluster')}: {few(sorted(clusters), 12)}\n"
    message += f"\nWithout soak and reports: {options.skip}\n" if options.skip else ""
    return f"{what}, committed as {git.save(files, message)[:10]}"


def edited(change: Change, values: dict[str, str | None]) -> str:
    """The text of CHANGE with VALUES in its rollout, None for what goes; comments and all other lines stay."""
    whole, rollout = change.document.text, {**change.rollout.model_dump(), **values}
    text = whole.replace("\r\n", "\n")
    part = re.search(r"^rollout:(.*)\n((?:[ \t]+.*\n|\n(?=[ \t]))*)", text, re.MULTILINE)
    part = part or re.search(r"^()()(?=spec:)", text, re.MULTILINE)
    if part is None:
        raise InputError(change.told("", "unusual"))
    body, head = part[2], re.search(r" #.*", part[1])
    value = r"""(?:"[^"\n]*"|'[^'\n]*'|[^#"'\n]*?)"""
    comments = dict(re.findall(rf"^\s+(\w+): *{value}(\s+#.*)$", body, re.MULTILINE))
    given = {key: json.dumps(said, ensure_ascii=False) for key, said in rollout.items() if said}
    lines = [f"  {key}: {said}{comments.get(key, '')}\n" for key, said in given.items()]
    lines += re.findall(r"^\s+#.*\n", body, re.MULTILINE)
    made = f"rollout:{'' if lines else ' {}'}{head[0] if head else ''}\n{''.join(lines)}"
    made = text[: part.start()] + made + text[part.end() :]
    with contextlib.suppress(InputError):
        if (parse(made, change.document.file)["rollout"] or {}) == {key: said for key, said in rollout.items() if said}:
            return made.replace("\n", "\r\n") if "\r\n" in whole else made
    raise InputError(change.told("", "unusual"))


def clean(project: Project, clusters: dict[str, Path]) -> Git:
    """Git. Raises InputError where policies or the folders of CLUSTERS are not committed, and rendered, as they are:
    somebody's work would get into the commit. Or where Git commits another content than is there, which we don't."""
    git, out = Git("promote commits", "install Git, or give --no-commit"), project.out
    folders = [common.POLICIES, *(f"{out}/{name}" for name in clusters if Path(out, name).is_dir())]
    git.committer()
    head, staged = git.commit("HEAD"), git.staged(".")
    dirty = {path for folder in folders for path in (*git.unstaged(folder), *git.restaged(head, folder))}
    dirty |= {path for path, *_ in converts(git, [path for path in staged if path.startswith(tuple(folders))], staged)}
    if not dirty and git.entries(head, str(out)):
        stale = compiler.stale(project, list(clusters.values())).changes
        dirty = {f"{out}/{each.cluster}" for each in stale if each.any}
    if dirty:
        raise refusal("GPU092", "dirty", paths=few(sorted(dirty), 4))
    return git
