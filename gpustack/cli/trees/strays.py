"""What lies in the folder of rendered manifests and isn't rendered, for the verbs that refuse it (compiler/foreign.py).

`validate` and `push` compare the folder with what the policies render to now; a folder without policies beside it, with
what its own indexes list. `diff` and `report` have a base to compare with: what is as it was merged, and was rendered
then, is only stale, as where somebody looks at a change before rendering it. All else that the render doesn't make,
makes differently, or makes and that is gone, is what nobody reviews.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...compiler import beside, fleet, folders, foreign
from ...compiler.beside import INDEX
from ...compiler.dist import Change
from ...compiler.fleet import Project, Source
from ...compiler.foreign import Foreign
from ...gitops import FOLDER
from ...model import Finding, GpustackError, MissingToolError
from ...text.regular import read_regular
from .. import common
from ..text import print_findings
from .artifacts import indexes
from .attributes import CONVERTED, converts
from .repository import Entry, Git, blob_name, same

if TYPE_CHECKING:
    from .against_git import Made

POLICIES = f"{common.POLICIES}/"


def of_render(options: argparse.Namespace, clusters: Sequence[str] | None) -> list[Foreign]:
    """What lies in the folder that OPTIONS name, for CLUSTERS or as a whole, and is not what the policies render to.
    Raises InputError and FindingsError where a policy can't be rendered."""
    out = Path(options.out)
    if not Path(common.POLICIES).is_dir() or os.path.realpath(out.absolute().parent) != os.path.realpath(Path.cwd()):
        return sorted([*by_index(out, clusters), *of_git(out, clusters)])
    with common.project(common.compiling(options)) as project:
        fleet_paths = common.select([])
        known = {common.name_of(path): path for path in fleet_paths}
        paths = fleet_paths if clusters is None else [known[name] for name in clusters if name in known]
        outcome = fleet.stale(project, paths, prune=clusters is None)
    strays = list(outcome.foreign)
    strays += [Foreign.of(str(out / name), "index") for name in clusters or () if name not in known]
    for change in outcome.changes:
        listing = [beside.index_of(change.cluster)] if change.unlisted else []
        for kind, names in (("content", {*change.written, *listing}), ("file", change.removed)):
            paths_there = (os.path.normpath(out / change.cluster / name) for name in names)
            told = {each.path for each in strays}
            strays += [Foreign.of(path, kind) for path in paths_there if os.path.lexists(path) and path not in told]
    return sorted([*strays, *beside_git(strays, outcome.changes, out, clusters)])


def beside_git(
    strays: Sequence[Foreign], changes: Sequence[Change], out: Path, clusters: Sequence[str] | None
) -> list[Foreign]:
    """What Git has in OUT, for CLUSTERS or as a whole, and is neither among STRAYS nor among what CHANGES write."""
    written = {os.path.normpath(out / change.cluster / name) for change in changes for name in change.written}
    told = {each.path for each in strays}
    return [each for each in of_git(out, clusters, written) if each.path not in told]


def of_git(out: Path, clusters: Sequence[str] | None = None, written: Collection[str] = ()) -> list[Foreign]:
    """What Git has staged below OUT, for CLUSTERS or as a whole, and the work tree doesn't show, less what is WRITTEN
    by the next render; and what Git's attributes turn into another. Nothing where there is no clone, or no Git."""
    here = Path.cwd()
    if not any(os.path.lexists(folder / ".git") for folder in (here, *here.parents)):
        return []
    try:
        git = Git("Git knows what is committed", "install Git")
        place = git.place(out)
        if place is None:
            return []
        folder = git.named(place)
        staged = git.staged(folder)
        strays = list(_not_shown(git, folder, staged, written))
        if clusters is None:
            every = {**staged, **git.staged(common.POLICIES)}
            strays += converted(converts(git, every, every))
    except MissingToolError:
        return []
    except GpustackError as error:
        what = f"Git can't be asked what is committed: {error.findings[0].what}"
        print_findings([Finding("GPU022", "warning", what, remedy=error.findings[0].remedy)], sys.stderr)
        return []
    from ...policy.loading.decisions import allowed

    listed = {path: spec.sha256 for path, spec in allowed(here).items()}
    mine = [each for each in strays if clusters is None or whose(each.path.removeprefix(f"{folder}/")) in clusters]
    return [each for each in mine if each.path.removeprefix(f"{folder}/") not in listed]


def _not_shown(git: Git, folder: str, staged: Mapping[str, Entry], written: Collection[str]) -> Iterator[Foreign]:
    """What is STAGED below FOLDER and the work tree shows differently, or not at all. What an earlier render wrote, and
    a later one has deleted, is not yet staged as that: the staged indexes list it."""
    gone = {}
    overlooked = git.overlooked(folder)
    for path, entry in staged.items():
        if entry.mode == "160000":
            yield Foreign.of(path, "submodule")
        elif entry.mode == "120000" and not Path(path).is_symlink():
            yield Foreign.of(path, "link")
        elif not os.path.lexists(path):
            if path not in written and entry.blob:
                gone[path] = entry
        elif path in overlooked and not same(Path(path), entry):
            yield Foreign.of(path, "hidden")
    if not gone:
        return
    start = f"{folder}/{INDEX}/"
    contents = dict(git.contents(entry.blob for entry in gone.values()))
    listed = indexes(git, {path.removeprefix(f"{folder}/"): entry for path, entry in staged.items()})
    lists = {name: listing(each) for name, each in listed.items()}
    for path, entry in gone.items():
        name = path.removeprefix(f"{folder}/")
        own = name if name.startswith(f"{FOLDER}/") else name.partition("/")[2]
        digest = hashlib.sha256(contents[entry.blob]).hexdigest()
        pruned = path not in overlooked and (path.startswith(start) or lists.get(whose(name), {}).get(own) == digest)
        if not pruned:
            yield Foreign.of(path, "missing")


def by_index(out: Path, clusters: Sequence[str] | None = None) -> list[Foreign]:
    """What lies in OUT and no index there lists, for CLUSTERS or as a whole. Contents are not compared here."""
    names = beside.clusters_in(out) if clusters is None else clusters
    made: dict[str, str] = {}
    for name in names:
        listed = beside.index_data(out, name)
        files, engine = (each if isinstance(each := listed.get(key), dict) else {} for key in ("files", "engine"))
        made |= {f"{name}/{path}": digest for path, digest in files.items()} | dict(engine)
        made[f"{INDEX}/{name}.json"] = ""
    there = folders.look(out)
    if clusters is not None:
        there = {path: each for path, each in there.items() if whose(path) in clusters}
    strays = list(foreign.judge(there, made, {INDEX, FOLDER}))
    return [Foreign(f"{out}/{each.path}", each.kind, each.why) for each in strays]


def whose(path: str) -> str:
    """The cluster whose folder, engine's folder or index the PATH below the rendered folder is in; "" for none."""
    parts = path.split("/")
    if parts[0] == INDEX:
        return parts[1].removesuffix(".json") if len(parts) > 1 else ""
    return (parts[2] if len(parts) > 2 else "") if parts[0] == FOLDER else parts[0]


@dataclass
class Proposed:
    """The rendered folder as it is proposed, beside what is merged.

    `made` are the files that the policies render to, by the path below the folder, less the indexes; `merged` is what
    the base has there, by the same paths; `submodules` those of the base, wherever they are. What is at the paths
    `settled` and below them isn't looked at, and is in none of these (settled.py)."""

    git: Git
    project: Project
    folder: str
    made: Mapping[str, Made]
    merged: Mapping[str, Entry]
    submodules: Mapping[str, Entry]
    sources: Mapping[str, Source]
    settled: Set[str]
    _listed: dict[str, dict[str, str]] | None = None

    def strays(self, staged: Mapping[str, Entry]) -> list[Foreign]:
        """What is proposed and isn't rendered, with paths as people write them. STAGED is all that is in the index."""
        from ...policy.loading.decisions import allowed

        start, out = f"{self.folder}/", Path(self.folder)
        mine = {path[len(start) :]: entry for path, entry in staged.items() if path.startswith(start)}
        outside = ((path, entry) for path, entry in staged.items() if not f"{path}/".startswith(start))
        fresh = (path for path, entry in outside if entry.mode == "160000" and self.submodules.get(path) != entry)
        strays = [Foreign.of(path, "submodule") for path in fresh]  # what is in them is in no review
        if self.merged or mine or self.settled:
            odd = converts(self.git, [path for path in staged if path.startswith((start, POLICIES))], staged)
            good = set() if odd else self._good(mine)
            there = folders.look(out, plain=good, but=self.settled)
            digests = {path: spec.sha256 for path, spec in allowed(self.project.root).items()}
            rest = {path: entry for path, entry in mine.items() if path not in good}
            inside = {*self._on_disk(there, good), *self._in_git(there, rest)}
            strays += foreign.less(one_each(inside), out, digests)
            strays += converted(odd)
        return sorted(strays)

    def _good(self, mine: Mapping[str, Entry]) -> set[str]:
        """Those of MINE, which are staged, that are what is rendered, and that nobody has touched since."""
        start, made = f"{self.folder}/", self.made
        touched = {path.removeprefix(start) for path in self.git.touched(self.folder)}
        return {
            path
            for path, (mode, blob) in mine.items()
            if mode == "100644" and path in made and made[path].blob == blob and path not in touched
        }

    def _on_disk(self, there: Mapping[str, folders.Thing], good: Set[str]) -> Iterator[Foreign]:
        """What the work tree holds. Files that are GOOD need not be read."""
        indexes = {f"{INDEX}/{name}.json" for name in self.sources}
        stale = set()
        for path, thing in there.items():
            if thing.kind != "file" or thing.executable or path in good:
                continue
            if path.startswith(f"{INDEX}/"):
                if case := self._wrong_index(path):
                    yield Foreign.of(path, case)
                elif path not in indexes:
                    stale.add(path)
                continue
            content = self._content(path)
            made = self.made.get(path)
            if made is None or self._name(content) != made.blob:
                if self._rendered_then(path, content):
                    stale.add(path)
                elif made:
                    yield Foreign.of(path, "content")
        ways = {*([INDEX] if indexes else ()), *foreign.all_above(self.settled)}
        yield from foreign.judge(there, {*self.made, *indexes, *stale}, ways)
        gone = [path for path in (*self.made, *indexes) if path not in there and path in self.merged]
        if gone and not there:
            yield Foreign.of("", "empty")
        else:
            yield from (Foreign.of(path, "gone") for path in gone)

    def _in_git(self, there: Mapping[str, folders.Thing], staged: Mapping[str, Entry]) -> Iterator[Foreign]:
        """What Git has staged, or committed, and the work tree shows differently, or not at all."""
        for path, entry in staged.items():
            made = self.made.get(path)
            known = entry in (self.merged.get(path), made and Entry("100644", made.blob))
            if entry.mode == "160000":
                yield Foreign.of(path, "submodule")
            elif entry.mode == "120000" and (path not in there or there[path].kind != "link") and not known:
                yield Foreign.of(path, "link")
            elif entry.mode == "100755" and path in there and not there[path].executable:
                yield Foreign.of(path, "mode")
            elif path not in there and not known:
                yield Foreign.of(path, "missing")
            elif not known and self._is_ours(path) and entry.blob and self._name(self._content(path)) != entry.blob:
                yield Foreign.of(path, "hidden")

    def _is_ours(self, path: str) -> bool:
        """Whether PATH is of a file that is or was rendered, or may be an index."""
        return path in self.made or path in self.merged or path.startswith(f"{INDEX}/")

    def _content(self, path: str) -> bytes | None:
        """What the file PATH holds, None where it can't be read."""
        try:
            return read_regular(f"{self.folder}/{path}", follow=False)
        except OSError:
            return None

    def _name(self, content: bytes | None) -> str:
        """What Git would call CONTENT, "" where there is none."""
        return "" if content is None else blob_name(self.git.algorithm, content)

    def _rendered_then(self, path: str, content: bytes | None) -> bool:
        """Whether the file PATH with CONTENT is as it is merged, and as its index there lists it."""
        if content is None or self.merged.get(path) != Entry("100644", self._name(content)):
            return False
        own = path if path.startswith(f"{FOLDER}/") else path.partition("/")[2]
        return self._listing(whose(path)).get(own) == hashlib.sha256(content).hexdigest()

    def _listing(self, cluster: str) -> dict[str, str]:
        """The files that the merged index of CLUSTER lists, with digests. Git is asked for all indexes at once."""
        if self._listed is None:
            plain = {path: entry for path, entry in self.merged.items() if entry.mode == "100644"}
            self._listed = {name: listing(each) for name, each in indexes(self.git, plain).items()}
        return self._listed.get(cluster, {})

    def _wrong_index(self, path: str) -> str:
        """What is wrong with the index PATH, a case; "" for one that is rendered, or as it is merged."""
        content = self._content(path)
        if content is None:
            return "unreadable index"
        if beside.claims(content).get("project", "") and not beside.owner(self.project.root, self.project.out):
            return "index of another"
        if self.merged.get(path) == Entry("100644", self._name(content)):
            return ""
        source = self.sources.get(path.removeprefix(f"{INDEX}/").removesuffix(".json"))
        if source is None:
            return "index"
        return "" if fleet.rendered(self.project, source).indexed_as(content) else "other index"


def converted(odd: Sequence[tuple[str, str, str]]) -> Iterator[Foreign]:
    """Attributes by which what is checked out and looked at is not what is committed: ODD, as Git.converts has them."""
    for name in CONVERTED:
        hit = [path for path, which, _ in odd if which == name]
        if hit:
            more = f" and {len(hit) - 1} more" if len(hit) > 1 else ""
            yield Foreign.of(hit[0], "converted", name=name, more=more)


def listing(data: Mapping[str, object]) -> dict[str, str]:
    """The files that an index with DATA lists, with their digests."""
    known = [each for key in ("files", "engine") if isinstance(each := data.get(key), dict)]
    return {path: digest for each in known for path, digest in each.items()}


def one_each(strays: set[Foreign]) -> list[Foreign]:
    """STRAYS, one for each path: a path that is a link is told as that."""
    first: dict[str, Foreign] = {}
    for each in sorted(strays, key=lambda one: (one.path, one.kind not in {"link", "index", "case"}, one)):
        first.setdefault(each.path, each)
    return list(first.values())
