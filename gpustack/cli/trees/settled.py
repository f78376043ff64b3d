"""Clusters that nobody has to look at file by file: what is merged for them is what their policies rendered to, and
what is proposed is that, or what the policies render to now.

Solves: a fleet's dist/ has 750,000 files. Git has one name for all that is in a folder, so what is rendered gets that
name too (kept in the cache, as its stack is), and a cluster costs one comparison. Where anything is otherwise the
cluster isn't settled, and strays.py looks at each of its files and says what is wrong.

What is believed: a name of Git's for what it was made of; Git's index for what is staged; and for a file of the work
tree that looks as it did when it was staged, as everywhere (`Git.touched`), that it holds what was. Any other file is
read. Which files there are is looked at in each folder. Where Git may convert files, nothing is settled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...compiler import beside, fleet
from ...compiler.beside import INDEX
from ...compiler.cache import digest
from ...compiler.dist import Rendering, header
from ...compiler.executor import Executor
from ...compiler.fleet import Project, Source
from ...compiler.folders import A_FILE, A_FOLDER, look, thing
from ...compiler.foreign import folded
from ...compiler.stack import stored_stack
from ...gitops import FOLDER, engines
from ...model import grouped
from ...text.regular import read_regular
from .attributes import line_ends, may_convert
from .comparison import New, side_of
from .repository import FEW, TREE, Entry, Git, How, blob_name, tree_name
from .strays import POLICIES, whose

if TYPE_CHECKING:
    from ...review.diff.sides import Files, Side, Texts

T = TypeVar("T")
Held = dict[str, Entry]
"""What there is of a cluster by the path below the rendered folder: its folder, its engine's, and its index."""
PLAIN = "100644"
MANY = 200
"""Clusters whose files are named in the time in which a process starts."""
ODD = "odd"
"""Stands for the content of what isn't a plain file."""


def how(folder: str, path: str) -> How:
    """What of the folder PATH of a commit is wanted, whose rendered folder is FOLDER: folders of clusters as one."""
    if not path.startswith(f"{folder}/"):
        return "inside" if f"{folder}/".startswith(f"{path}/") else "all"
    first, *more = path[len(folder) + 1 :].split("/")
    if first == FOLDER:
        return "one" if len(more) == 2 else "inside"
    return "all" if more or first.startswith(".") else "one"


def names_of(project: Project, how: str, sources: Iterable[Source]) -> dict[str, Held]:
    """How Git calls what SOURCES render to with the algorithm HOW, by cluster; their stacks are in the store."""
    owner, by_key, held = beside.owner(project.root, project.out), dict[str, list[Source]](), dict[str, Held]()
    for source in sources:
        by_key.setdefault(source.key, []).append(source)
    asked = {digest("names", how, key, owner): same for key, same in by_key.items()}
    known = {which: project.store.get("names", which) or {} for which in asked}
    fresh = [(which, each) for which, same in asked.items() for each in same if _called(each) not in known[which]]
    with Executor(project.jobs if len(fresh) > MANY else 1) as executor:
        results = executor.map(_named, [(project, how, replace(each, spec=b"")) for _, each in fresh])
        for (which, each), made in zip(fresh, results, strict=True):
            known[which] = known[which] | ({_called(each): made} if made else {})
    for which in {which for which, _ in fresh}:
        project.store.put("names", which, known[which])
    for which, same in asked.items():
        listed = ((each.name, known[which].get(_called(each))) for each in same)
        held |= {name: {path: Entry(*entry) for path, entry in made.items()} for name, made in listed if made}
    return held


def layout(files: Iterable[str]) -> Mapping[str, Set[str]]:
    """What is right in each folder that FILES, paths, make up; folders end in a slash."""
    listed: dict[str, set[str]] = {}
    for path in files:
        name = path
        while name:
            folder, _, last = name.rstrip("/").rpartition("/")
            listed.setdefault(folder, set()).add(last + "/" * name.endswith("/"))
            name = folder and f"{folder}/"
    return listed


def holds(root: str, listed: Mapping[str, Set[str]]) -> bool:
    """Whether the folder ROOT of the work tree holds what is LISTED (`layout`) and nothing else."""
    try:
        for folder, names in listed.items():
            with os.scandir(f"{root}/{folder}") as entries:
                if {_named_with_kind(each) for each in entries} != names:
                    return False
    except OSError:
        return False
    return True


def _named_with_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return entry.name
    return f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else f"{entry.name}//"


def _called(source: Source) -> str:
    return f"{source.name} {source.display}"


def _named(item: tuple[Project, str, Source]) -> Held:
    project, how, source = item
    return named_by_git(how, fleet.rendered(project, source)) if stored_stack(source.key, project.store) else {}


def named_by_git(how: str, made: Rendering) -> Held:
    """How Git calls what is MADE."""
    folders: dict[str, dict[str, bytes]] = {made.cluster: dict(made.files)} if made.files else {}
    for path, content in made.engine.items():
        engine, kind, cluster, name = path.split("/", 3)
        folders.setdefault(f"{engine}/{kind}/{cluster}", {})[name] = content
    index = Entry(PLAIN, blob_name(how, made.index()))
    trees = {path: Entry(TREE, tree_name(how, files)) for path, files in folders.items()}
    return {f"{INDEX}/{made.cluster}.json": index, **trees}


@dataclass
class Settling:
    """Finds the clusters that are `settled` in the rendered FOLDER, their `places` in it and the `side` they are.
    THEN are the policies of the base by cluster, AFTER what they are and render to now; TEXTS get what the base has."""

    git: Git
    project: Project
    folder: str
    then: Mapping[str, Source]
    after: New
    texts: Texts
    settled: set[str] = field(init=False)
    places: set[str] = field(init=False)
    side: Side = field(init=False)

    def settle(self, commit: str, merged: Mapping[str, Entry], title: str) -> tuple[Held, dict[str, Entry | None]]:
        """Find what is `settled` of COMMIT, a side called TITLE, which has MERGED by path, with `held_as_one`. Returns
        all of MERGED but that, files in the place of folders, and what else differs in the index (Git.restaged)."""
        changed = self.git.restaged(commit, ".")
        self._of_base(dict(self._below(merged.items())), title)
        if any(entry and not entry.blob for entry in changed.values()):  # a merge that isn't done
            self.settled.clear()
        merged = self._expanded(commit, merged)
        if self.settled:
            places = [f"{self.folder}/{path}" for name in self.settled for path in self.names[name]]
            staged = {**merged, **{path: entry for path, entry in changed.items() if entry}}
            mine = (path for path in staged if path.startswith((f"{self.folder}/", POLICIES)))
            if may_convert(self.git, (*places, *mine), staged) or line_ends(self.git):
                self.settled.clear()
            else:
                with ThreadPoolExecutor(1) as thread:
                    touched = thread.submit(self.git.touched, self.folder)  # Git looks at each file meanwhile
                    self._on_disk()
                    own = self._below((path, None) for path in touched.result())
                self._proposed(dict(self._below(changed.items())), dict(own))
            merged = self._expanded(commit, merged)
        self.places = {path for name in self.settled for path in self.names[name]}
        clusters, engine = (
            {name: files for name, files in each.items() if name in self.settled}
            for each in (self.side.clusters, self.side.engine)
        )
        self.side = replace(self.side, clusters=clusters, engine=engine)
        return self._rest(merged), self._rest(changed)

    def _rest(self, entries: Mapping[str, T]) -> dict[str, T]:
        """ENTRIES by path, less those of clusters that are settled."""
        return {path: entry for path, entry in entries.items() if self._name(path) not in self.settled}

    def _below(self, items: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
        """Those of ITEMS whose paths are in the folder, by the path from there."""
        start = f"{self.folder}/"
        return ((path[len(start) :], item) for path, item in items if path.startswith(start))

    def _name(self, path: str) -> str:
        """The cluster that has PATH, from the root, "" for none."""
        return next((whose(below) for below, _ in self._below([(path, None)])), "")

    def _expanded(self, commit: str, merged: Mapping[str, Entry]) -> Held:
        """MERGED of COMMIT with what is in them in the place of the folders of clusters that aren't settled."""
        open_ = {path for path, entry in merged.items() if entry.mode == TREE and self._name(path) not in self.settled}
        files = self.git.below(commit, open_ if len(open_) <= FEW else [self.folder])
        found = {path: entry for path, entry in merged.items() if path not in open_}
        return found | {path: entry for path, entry in files.items() if self._name(path) not in self.settled}

    def _of_base(self, rendered: Mapping[str, Entry], title: str) -> None:
        """Look which clusters the base has just as THEN rendered, of what it has RENDERED, by the path below the
        folder. They are the clusters of `side`, which is called TITLE."""
        held: dict[str, Held] = {}
        for path, entry in rendered.items():
            held.setdefault(whose(path), {})[path] = entry
        there = {name: self.then[name] for name in held if name in self.then}
        good = {key for key in {each.key for each in there.values()} if stored_stack(key, self.project.store)}
        self.names = names_of(self.project, self.git.algorithm, (each for each in there.values() if each.key in good))
        proven = [there[name] for name, names in self.names.items() if names == held[name]]
        self.layers: dict[str, str] = {}
        self.side = side_of(self.project, proven, self.texts, title, self.layers)
        self.settled = {source.name for source in proven}
        self._layouts: dict[int, Mapping[str, Set[str]]] = {}
        self._others: dict[tuple[int, int, bool], list[str]] = {}

    def _on_disk(self) -> None:
        """Keep the clusters whose folders in the work tree hold the files that they have in the base, or have now."""
        out, there = Path(self.folder), look(Path(self.folder), deep=False)
        for folder in (INDEX, *(f"{FOLDER}/{engine}" for engine in beside.engines_in(out))):
            there |= look(out, folder, deep=False)
        known = {INDEX, FOLDER, *(f"{FOLDER}/{engine}" for engine in engines.names())}
        if any(there[each] is not A_FOLDER for each in known if each in there):
            self.settled.clear()
        fresh = [path for path in there if path not in known]
        if any(folded(path) in known for path in fresh):  # what is in it may be like anybody's
            self.settled.clear()
        self._unlike(fresh)
        places: dict[str, dict[str, bool]] = {}
        for path, each in there.items():
            places.setdefault(whose(path), {})[path] = each is (A_FILE if path.startswith(f"{INDEX}/") else A_FOLDER)
        for name in list(self.settled):
            both, at = [self._files(name, now=now) for now in (False, True)], places.get(name, {})
            fine = name in self.after.policies.sources and all(at.values())
            fine = fine and all(self._places(name, *each) == at.keys() for each in both)
            if not (fine and any(self._is_laid_out(name, *each) for each in both)):
                self.settled.discard(name)

    def _places(self, name: str, files: Files, engine: Files) -> set[str]:
        """Where the cluster NAME with its own FILES and those of its ENGINE is below the folder."""
        return {f"{INDEX}/{name}.json", *([name] if files else ()), *(path.rpartition("/")[0] for path in engine)}

    def _is_laid_out(self, name: str, files: Files, engine: Files) -> bool:
        """Whether the folders of the cluster NAME in the work tree hold its own FILES, and those of its ENGINE."""
        if files and id(files) not in self._layouts:
            self._layouts[id(files)] = layout(files)
        own = not files or holds(f"{self.folder}/{name}", self._layouts[id(files)])
        by_place = grouped(path.rpartition("/")[::2] for path in engine)
        return own and all(holds(f"{self.folder}/{place}", {"": {*names}}) for place, names in by_place.items())

    def _files(self, name: str, *, now: bool) -> tuple[Files, Files]:
        """The files of the cluster NAME by their paths below its folder, and of its engine: then or NOW."""
        side, layers = (self.after.side, self.after.layers) if now else (self.side, self.layers)
        return {} if name in layers else side.clusters.get(name, {}), side.engine.get(name, {})

    def _proposed(self, changed: Mapping[str, Entry | None], touched: Iterable[str]) -> None:
        """Keep the clusters of which all is as in the base or as rendered now, of what is CHANGED in the index, TOUCHED
        in the work tree, by the path below the folder, or rendered otherwise now: nobody is believed of that."""
        odd = dict[str, set[str]]()
        for path in (*changed, *touched):
            odd.setdefault(whose(path), set()).add(path)
        self._unlike(path for name, paths in odd.items() if name not in self.settled for path in paths)
        now, anew = self.after.policies.sources, list[Source]()
        for name in self.settled:
            odd.setdefault(name, set()).update(self._differing(name))
            index = f"{INDEX}/{name}.json"
            if index in odd[name] and self._is_merged(name, index, changed):
                odd[name].discard(index)
            elif index in odd[name]:
                anew.append(now[name])
        names = names_of(self.project, self.git.algorithm, anew)
        for name in self.settled & odd.keys():
            if not all(self._is_fine(name, path, changed, names.get(name, {})) for path in odd[name]):
                self.settled.discard(name)

    def _differing(self, name: str) -> Iterator[str]:
        """The files of the cluster NAME, by the path below the folder, that are rendered otherwise now than then."""
        (then, engine), (now, engine_now) = (self._files(name, now=now) for now in (False, True))
        anew = self.then[name].display != self.after.policies.sources[name].display
        which = (id(then), id(now), anew)
        if which not in self._others:
            self._others[which] = [each for each in {**then, **now} if anew or then.get(each) != now.get(each)]
        mine = [f"{name}/{each}" for each in self._others[which]]
        mine += [each for each in {**engine, **engine_now} if anew or engine.get(each) != engine_now.get(each)]
        yield from (*mine, f"{INDEX}/{name}.json") if mine else ()

    def _is_merged(self, name: str, path: str, changed: Mapping[str, Entry | None]) -> bool:
        """Whether the file PATH of the cluster NAME is in the work tree and in the index as it was."""
        was = Entry(PLAIN, self._blob(name, path, self.names[name], now=False))
        return changed.get(path, was) == was and self._shown(path) == was.blob

    def _is_fine(self, name: str, path: str, changed: Mapping[str, Entry | None], names: Held) -> bool:
        """Whether the file PATH of the cluster NAME, of which Git calls NAMES what is rendered now, is in the work tree
        and in the index as it was or as it is rendered now."""
        was, is_now = self._blob(name, path, self.names[name], now=False), self._blob(name, path, names, now=True)
        staged = changed.get(path, Entry(PLAIN, was) if was else None)
        if staged and (staged.mode != PLAIN or staged.blob not in {was, is_now}):
            return False
        shown = self._shown(path)
        return shown in {was, is_now} if shown else not (was and is_now)

    def _blob(self, name: str, path: str, names: Held, *, now: bool) -> str:
        """How Git calls the file PATH of the cluster NAME then or NOW, "" where it has no such file."""
        if path.startswith(f"{INDEX}/"):
            return names[path].blob if path in names else ""
        files, engine = self._files(name, now=now)
        text = engine.get(path) if path.startswith(f"{FOLDER}/") else files.get(path.partition("/")[2])
        if text is None:
            return ""
        source = (self.after.policies.sources if now else self.then)[name]
        return blob_name(self.git.algorithm, (header(source.display) + self.texts(text)).encode())

    def _shown(self, path: str) -> str:
        """How Git would call what is at PATH in the work tree, "" where nothing is."""
        at = f"{self.folder}/{path}"
        try:
            if thing(os.lstat(at)) is not A_FILE:
                return ODD
            return blob_name(self.git.algorithm, read_regular(at, follow=False))
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError:
            return ODD

    def _unlike(self, paths: Iterable[str]) -> None:
        """Settle nothing whose files somebody could take PATHS for, who tells neither case nor ways to encode."""
        strange = {whose(folded(path)) for path in paths if whose(path) not in self.settled}
        self.settled -= {name for name in self.settled if folded(name) in strange} if strange else set()
