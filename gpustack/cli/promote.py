"""gpustack promote: take a change one ring further, or back, and commit that with what it renders to.

A person or a bot runs it, on a branch of its own where the default branch is protected. It writes the change's file and
the rendered folders of the clusters that it comes to or leaves, and commits these alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Finding, InputError, few
from ..policy.loading.rings import CHANGES, Change, Rings, rings_of, told
from . import common, evidence
from .accept import said
from .saving import save
from .text import document, plain, print_findings, printable, say

if TYPE_CHECKING:
    from ..compiler.sources import Project

DEEDS = {
    "--to": ("RING", "take it there, one ring further than it is"),
    "--due": ("", "take every change further that may go, and say why others may not"),
    "--back": ("", "take it back by a ring"),
    "--withdraw": ("", "take it back from all rings"),
    "--hold": ("REASON", "let it go no further"),
    "--unhold": ("", "let it go on"),
    "--status": ("", "show where changes are, and what keeps them there"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("change", nargs="?", metavar="CHANGE", help="the name of a file in policies/changes/")
    deeds = parser.add_mutually_exclusive_group(required=True)
    for flag, (value, text) in DEEDS.items():
        more: dict[str, Any] = {"metavar": value, "type": said} if value else {"action": "store_true"}
        deeds.add_argument(flag, help=text, **more)
    text = "with --to: over rings, without soak and reports; the reason is committed"
    parser.add_argument("--skip", type=said, metavar="REASON", help=text)
    text = "what `gpustack verify --format json` printed about the clusters of the ring"
    parser.add_argument("--verified", nargs="+", action="extend", default=[], metavar="REPORT", help=text)
    now = datetime.datetime.now(datetime.UTC)
    parser.add_argument("--now", type=moment, metavar="TIME", default=now, help="the time, RFC 3339 (default: now)")
    parser.add_argument("--no-commit", action="store_true", help="leave what is written uncommitted")
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the manifests are (default: dist)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")
    common.add_compiling(parser)
    common.add_today(parser)


def moment(text: str) -> datetime.datetime:
    """TEXT, RFC 3339 with a time zone."""
    try:
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 2027-03-31T12:00:00Z") from None


class Fleet:
    """The rings of this project and the clusters in them, for what OPTIONS ask."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        here = Path(common.POLICIES).absolute()
        self.paths = common.select([])
        self.rings: Rings = rings_of(here, lambda path: path.relative_to(Path.cwd()).as_posix())
        self.seen = evidence.reports(options.verified)

    @cached_property
    def members(self) -> dict[str | None, dict[str, Path]]:
        """The policies of each ring by their clusters."""
        from ..policy.loading.envelope import open_policy
        from ..text.read import read

        found: dict[str | None, dict[str, Path]] = {ring.name: {} for ring in self.rings.rings}
        for path in self.paths:
            policy = open_policy(read(path, path.as_posix()))
            found.setdefault(self.rings.ring_of(policy), {})[str(policy.name)] = path
        return found

    def change(self) -> Change:
        """The change that is named. Raises InputError."""
        name, known = self.options.change, {each.name: each for each in self.rings.changes}
        if name not in known:
            what = f"no change is called {name}" if name else "no change is named"
            raise InputError.of("GPU092", what, remedy=f"there are: {few([*known], 12)}" if known else "there is none")
        return known[name]

    def ring(self, change: Change, step: int) -> str | None:
        """The ring STEP rings after that of CHANGE; None before the first and after the last."""
        place = self.rings.place(change.rollout.ring) + step
        return self.rings.rings[place].name if 0 <= place < len(self.rings.rings) else None

    def blocks(self, change: Change) -> list[Finding]:
        """What keeps CHANGE in its ring."""
        clusters = self.members.get(change.rollout.ring, {}) if change.rollout.ring else {}
        return [*evidence.blocks(change, self.rings, clusters, self.seen, self.options.now)]


def run(options: argparse.Namespace) -> int:
    fleet = Fleet(options)
    if options.skip and not options.to:
        raise InputError.of("GPU026", "--skip goes with --to", remedy="name the ring")
    changes = [fleet.change()] if options.change or not (options.status or options.due) else fleet.rings.changes
    if options.status:
        return status(fleet, changes)
    results, left = [], list[Finding]()
    for change in changes:
        ring = change.rollout.ring
        if options.due:
            following = fleet.ring(change, 1) if ring else None
            against = fleet.blocks(change) if following else []
            left += [dataclasses.replace(each, severity="note") for each in against]
            results += [moved(fleet, change, following)] if following and not against else []
        elif options.hold or options.unhold:
            what = f"held: {options.hold}" if options.hold else "goes on"
            results.append(written(fleet, change, {"hold": options.hold}, what, {}))
        elif options.to:
            forward(fleet, change)
            results.append(moved(fleet, change, options.to))
        elif ring is None:
            raise InputError(nowhere(fleet, change))
        else:
            results.append(moved(fleet, change, fleet.ring(change, -1) if options.back else None))
    if options.format == "json":
        print(document(0, [plain(each) for each in left], results=results))
    for line in results if options.format == "text" else ():
        say(printable(line))
    print_findings(left if options.format == "text" else (), sys.stdout)
    return 0


def nowhere(fleet: Fleet, change: Change) -> Finding:
    """What is said where CHANGE is to be taken back and has come to no ring."""
    words = {"change": change.name, "next": fleet.ring(change, 1)}
    return told("GPU092", change.document, ("rollout",), "nowhere", **words)


def status(fleet: Fleet, changes: Iterable[Change]) -> int:
    """Print the rings, and where CHANGES are."""
    known = fleet.rings.rings
    rings = [{"name": each.name, "soak": each.soak, "clusters": [*fleet.members[each.name]]} for each in known]
    rows = list[dict[str, Any]]()
    for each in changes:
        rest = evidence.left(each, fleet.rings, fleet.options.now)
        row: dict[str, Any] = {"name": each.name, **each.rollout.model_dump(), "next": fleet.ring(each, 1)}
        blocks = [found.what for found in fleet.blocks(each)] if row["next"] else []
        rows.append({**row, "soakLeft": int(rest.total_seconds()), "blocks": blocks})
    if fleet.options.format == "json":
        print(document(0, [], rings=rings, changes=rows))
        return 0
    for ring in rings:
        say(printable(f"{ring['name']}: {common.counted(len(ring['clusters']), 'cluster')}, soak {ring['soak']}"))
    for row in rows:
        where = f"in {row['ring']} since {row['since']}" if row["ring"] else "in no ring"
        say(printable(f"{row['name']}: {where}; {'next is ' + row['next'] if row['next'] else 'in all rings'}"))
        for block in row["blocks"]:
            say(printable(f"  waits: {block}"))
    return 0


def forward(fleet: Fleet, change: Change) -> None:
    """Raise InputError with what keeps CHANGE from the ring that is asked for."""
    rings, options, place = fleet.rings, fleet.options, fleet.rings.place(change.rollout.ring)
    wrong = [*evidence.held(change)] if options.skip else fleet.blocks(change)
    step = rings.place(options.to) - place if rings.place(options.to) >= 0 else 0
    if step < 1 or (step > 1 and not options.skip):
        following = fleet.ring(change, 1)
        remedy = f"--to {following} comes next; --skip REASON goes over rings" if following else "it is in all rings"
        words = {"change": change.name, "ring": change.rollout.ring or "no ring", "to": options.to, "next": remedy}
        wrong = [told("GPU092", change.document, ("rollout", "ring"), "too far", **words)]
    if wrong:
        raise InputError(*wrong)


def moved(fleet: Fleet, change: Change, ring: str | None) -> str:
    """Put CHANGE into RING, None for nowhere; what was done, in a line."""
    ends = sorted(map(fleet.rings.place, (change.rollout.ring, ring)))
    rings = fleet.rings.rings[ends[0] + 1 : ends[1] + 1]
    clusters = {name: path for each in rings for name, path in fleet.members[each.name].items()}
    since = fleet.options.now.strftime("%Y-%m-%dT%H:%M:%SZ") if ring else None
    what = f"{change.rollout.ring or 'no ring'} to {ring or 'no ring'}"
    return written(fleet, change, {"ring": ring, "since": since}, what, clusters)


def written(fleet: Fleet, change: Change, values: dict[str, str | None], what: str, clusters: dict[str, Path]) -> str:
    """Write VALUES into the rollout of CHANGE, render CLUSTERS, and commit both as WHAT. The file is as it was where
    that is refused.
    """
    from ..compiler import fleet as compiler
    from ..text.edit import set_section

    options, path, old = fleet.options, Path(common.POLICIES) / CHANGES / f"{change.name}.yaml", change.document.text
    with common.project(options) as project:
        if not options.no_commit:
            refuse_dirty(project, clusters)
        save(path, set_section(old, "rollout", "spec", values), "the change", "make it writable")
        try:
            changes = compiler.render(project, list(clusters.values())).changes if clusters else []
        except BaseException:
            save(path, old, "the change", "make it writable")
            raise
    files = {path.as_posix()} | {
        os.path.normpath(f"{options.out}/{each.cluster}/{name}")
        for each in changes
        for name in (*each.written, *each.removed, f"../.index/{each.cluster}.json")
    }
    what = f"{change.name}: {what}"
    counts = f"\n{common.counted(len(clusters), 'cluster')}: {few(sorted(clusters), 12)}\n" if clusters else ""
    skipped = f"\nWithout soak and reports: {options.skip}\n" if options.skip else ""
    return what + ("" if options.no_commit else commit(files, options.out, f"promote: {what}\n{counts}{skipped}"))


def refuse_dirty(project: Project, clusters: dict[str, Path]) -> None:
    """Raise InputError where the policies and the folders of CLUSTERS are not committed, and rendered, as they are:
    somebody's work would get into the commit. Or where Git commits another content than is there, which we don't.
    """
    from ..compiler import fleet
    from .git import Git

    git, out = Git("promote commits", "install Git, or give --no-commit"), project.out
    folders = [common.POLICIES, *(f"{out}/{name}" for name in clusters if Path(out, name).is_dir())]
    head = git.commit("HEAD")
    dirty = {path for folder in folders for path in (*git.unstaged(folder), *git.restaged(head, folder))}
    staged = git.staged(".")
    dirty |= {path for path, *_ in git.converts([path for path in staged if path.startswith(tuple(folders))], staged)}
    if not dirty and git.entries(head, str(out)):
        stale = fleet.stale(project, list(clusters.values())).changes
        dirty = {f"{out}/{each.cluster}" for each in stale if each.any}
    if dirty:
        what = f"{few(sorted(dirty), 4)}: not committed, not rendered, or converted by Git, as it is now"
        raise InputError.of("GPU092", what, remedy="gpustack render, and commit it, first; or give --no-commit")


def commit(files: set[str], out: str, message: str) -> str:
    """Commit FILES, less what is rendered where nothing of OUT is committed; what to add to the line about it."""
    from .git import Git

    git = Git("promote commits", "install Git, or give --no-commit")
    kept = files if git.entries("HEAD", out) else {path for path in files if not path.startswith(f"{out}/")}
    return f", committed as {git.save(kept, message)[:10]}"
