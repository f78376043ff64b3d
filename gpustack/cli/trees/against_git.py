"""What is merged, as a side of a comparison: dist/ at the base's commit, or what the policies there render to.

Solves: a fleet's dist/ has 80,000 files, and most pull requests touch few of them. So contents are known by the names
that Git has for them: what is rendered now is named as Git would name it, and only what has another name is read.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...catalog.kinds import FOLDER
from ...compiler import fleet
from ...compiler.dist import HEADER
from ...compiler.executor import Executor
from ...compiler.fleet import Project, Source
from ...compiler.stack import Stack, stored_stack
from ...gitops import FOLDER as OF_ENGINES
from ...gitops import engines
from ...model import GpustackError, InputError, grouped
from ...policy.loading.brought import LIST, LOCK
from ...policy.loading.load import BESIDE, layers_of, policy_files, ringed
from ...policy.loading.rings import FLEET, is_shared, shared_files
from ...text.regular import read_regular
from .. import common
from .artifacts import Base, digest_in, indexes
from .comparison import New, Sides, side_of
from .policies import Policies
from .repository import Entry, Git, blob_name
from .settled import Settling, how
from .steered import touched, touched_above
from .versions import stepped

if TYPE_CHECKING:
    from ...review.diff.sides import Files, Side, Texts
    from ...review.impact.effects import Effect
    from ...review.rings import Ringed
    from .policies import Spec


MANY = 20
"""Clusters of the base that are worth compiling what they share: then none of their files or policies is read."""
LINKS = 8
"""Links that may lead from one to the next."""
BELOW = f"{common.POLICIES}/"
BROUGHT = (f"{FOLDER}/", LIST, LOCK)
"""What a repository brings along."""
Shown = dict[str, dict[str, str]]
"""For each cluster its files and the names of their texts."""


class Made(NamedTuple):
    """A file as it is rendered now: the name that Git would give to its content, and that of its text on its side."""

    blob: str
    text: str


def git_sides(options: argparse.Namespace, project: Project, texts: Texts, after: New, stack: ExitStack) -> Sides:
    """What is merged, at the base that OPTIONS name, beside AFTER. STACK ends a folder for what has to be written."""
    from ...review.diff.sides import Side
    from .strays import Proposed

    git = Git("diff compares with a revision of Git", "install Git, or name two folders to compare")
    commit = git.base(options.base)
    title = f"{options.base} ({commit[:10]})"
    folder = git.named(where) if (where := git.place(options.out)) else options.out.rstrip("/")
    there = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpustack-diff-"))).resolve()
    held = git.folders(commit, functools.partial(how, folder))
    git.extract(
        {at: each.blob for at, each in held.items() if at.startswith(BROUGHT) and each.mode[:3] == "100"}, there
    )
    elsewhere = replace(common.elsewhere_in(project, there), out=there / "dist", versions=None)
    policies = policies_of(git, commit, held)
    same = unchanged_policies(git, policies, after.policies) if policies else {}
    there_read = None
    if any(path.startswith(f"{folder}/") for path in held):
        there_read = read_there(git, policies, same, elsewhere, after.policies)
    settling = Settling(git, project, folder, there_read.every() if there_read else {}, after, texts)
    merged, changed = settling.settle(commit, held, title)
    rendered = {path[len(folder) + 1 :]: entry for path, entry in merged.items() if path.startswith(f"{folder}/")}
    made = named(after, git.algorithm, settling.settled)
    staged = git.staged_beside(merged, changed)
    submodules = {path: entry for path, entry in merged.items() if entry.mode == "160000"}
    known = (made, rendered, submodules, after.policies.sources, settling.places)
    foreign = Proposed(git, project, folder, *known).strays(staged)
    others = {**touched(git, merged, staged, folder), **touched_above(git, commit)}

    laid_out = functools.partial(lay_out, git, policies, there)
    then = replace(elsewhere, versions=project.versions)
    if there_read is None:
        before, old = rendered_there(git, policies, then, texts, title)
        told: Sequence[Effect] = ()
    else:
        files = merged_files(git, rendered, made, texts)
        digests = {name: digest_in(each) for name, each in indexes(git, rendered, files[0]).items() if digest_in(each)}
        base = Base(digests, elsewhere, texts, getattr(options, "registry", False))
        clusters = shared(files[0], after.side.clusters) | base.sides(after, there_read, set(same.values()))
        engine = {**shared(files[1], after.side.engine), **settling.side.engine}
        before, told = Side({**clusters, **settling.side.clusters}, texts, title, engine), base.effects
        old = there_read
    steps = functools.partial(stepped, then, laid_out, before, after)
    readers = (
        functools.partial(read_merged, git, merged),
        functools.partial(reworded_files, git, policies, after.policies, others.keys()),
        functools.partial(both_rings, f"{BELOW}{FLEET}" in policies, laid_out),
    )
    return Sides(before, after.side, old, after.policies, others, foreign, *readers, told, steps)


def read_merged(git: Git, merged: Mapping[str, Entry], name: str) -> bytes | None:
    """The content of the file NAME among what is MERGED; None where it has no such file."""
    entry = merged.get(os.path.relpath(name))
    return dict(git.contents([entry.blob]))[entry.blob] if entry is not None and entry.mode[:3] == "100" else None


def lay_out(git: Git, policies: Mapping[str, str], there: Path) -> Path:
    """Write POLICIES into the folder THERE, which is returned."""
    git.extract(policies, there)
    (there / BELOW).mkdir(exist_ok=True)
    return there


def both_rings(known: bool, laid_out: Callable[[], Path]) -> tuple[Ringed, Ringed] | None:
    """The rings of the base, laid out by LAID_OUT, and of now; None where neither has any. KNOWN: the base has some."""
    if not known and not Path(BELOW, FLEET).exists():
        return None
    there = laid_out()
    try:
        return ringed(there / BELOW, there)[:2], ringed(Path(BELOW), Path.cwd())[:2]
    except InputError:  # of the base; what is wrong now was refused
        return None


def named(after: New, how: str, but: Set[str]) -> dict[str, Made]:
    """The files of AFTER by their paths below the rendered folder, BUT for those of some clusters, named as Git names
    contents with the algorithm HOW: what has the same name need not be read."""
    encoded: dict[str, bytes] = {}
    by_path = {}
    clusters, engine = after.side.clusters, after.side.engine
    both = [(f"{cluster}/", cluster, clusters[cluster]) for cluster in clusters.keys() - after.layers.keys() - but]
    both += [("", cluster, engine[cluster]) for cluster in engine.keys() - but]
    for where, cluster, files in both:
        head = after.headers[cluster].encode()
        for name, text in files.items():
            if text not in encoded:
                encoded[text] = after.side.text(text).encode()
            by_path[where + name] = Made(blob_name(how, head + encoded[text]), text)
    return by_path


def merged_files(
    git: Git, rendered: Mapping[str, Entry], made: Mapping[str, Made], texts: Texts
) -> tuple[Shown, Shown]:
    """What is merged as RENDERED, by the paths below the rendered folder: the files of each cluster, and those of its
    engine. What is MADE so now isn't read."""
    from ...review.diff.sides import without_header

    merged: tuple[Shown, Shown] = ({}, {})
    unread: dict[str, list[tuple[dict[str, str], str]]] = {}
    for path, (mode, blob) in rendered.items():
        placed = _placed(path) if mode.startswith("100") else None
        if placed is None:
            continue
        whose, cluster, name = placed
        files = merged[whose].setdefault(cluster, {})
        known = made.get(path)
        if known and known.blob == blob:
            files[name] = known.text
        else:
            unread.setdefault(blob, []).append((files, name))
    for blob, content in git.contents(unread):
        text = texts.name(without_header(content.decode("utf-8", "replace"), HEADER))
        for files, name in unread[blob]:
            files[name] = text
    return merged


def _placed(path: str) -> tuple[int, str, str] | None:
    """Whose the file PATH below the rendered folder is: 0 for a cluster's, 1 for its engine's; the cluster, and what
    the side calls the file. None for what is not a manifest."""
    first, _, rest = path.partition("/")
    if not rest or not path.endswith(".yaml"):
        return None
    if first == OF_ENGINES:
        engine, cluster, *file = rest.split("/", 2)
        return (1, cluster, path) if file and engine in engines.names() else None
    return None if first.startswith(".") else (0, first, rest)


def shared(clusters: Mapping[str, dict[str, str]], after: Mapping[str, Files]) -> dict[str, Files]:
    """CLUSTERS, with the very mapping of AFTER where nothing differs."""
    return {name: after[name] if after.get(name) == files else files for name, files in clusters.items()}


def read_there(
    git: Git, policies: Mapping[str, str], same: Mapping[str, str], project: Project, now: Policies
) -> Merged:
    """The POLICIES of the base, read and not rendered. Those that are the SAME NOW are not read again."""
    wanted = {path: blob for path, blob in policies.items() if path not in same}
    content = dict(git.contents(wanted.values()))
    by_path = {path: content[blob] for path, blob in wanted.items()}
    return Merged(project, by_path, dict.fromkeys(same.values(), now))


def rendered_there(
    git: Git, policies: Mapping[str, str], project: Project, texts: Texts, title: str
) -> tuple[Side, Policies]:
    """What the POLICIES of the base render to, for repositories that do not commit what they render to."""
    folder = project.root / common.POLICIES
    git.extract(policies, project.root)
    paths = policy_files(folder, common.POLICIES) if folder.is_dir() else []
    sources = fleet.compiled(project, paths) if paths else []
    return side_of(project, sources, texts, title), Policies(project, sources)


def policies_of(git: Git, commit: str, merged: Mapping[str, Entry]) -> dict[str, str]:
    """The contents of policies and layers among what is MERGED at COMMIT, by path. A link within the repository is what
    it leads to there, as it is when policies are read from the work tree."""
    start = f"{common.POLICIES}/"
    waiting = {path: entry for path, entry in merged.items() if f"{path}/".startswith(start)}
    contents: dict[str, str] = {}
    for _ in range(LINKS):
        contents |= {path: blob for path, (mode, blob) in waiting.items() if mode.startswith("100")}
        links = {path: blob for path, (mode, blob) in waiting.items() if mode == "120000"}
        content = dict(git.contents(links.values()))
        waiting = {}
        for path, blob in links.items():
            target = os.path.normpath(os.path.join(os.path.dirname(path), os.fsdecode(content[blob])))  # noqa: PTH118, PTH120 - strings
            there = git.entries(commit, target)
            waiting |= {path + name.removeprefix(target): entry for name, entry in there.items()}
    return contents


class Merged(Policies):
    """The policies of the base, of which the store knows most by their bytes: only what is asked for is written to the
    root of PROJECT, and read. CONTENT is that of all policies and layers, by path."""

    def __init__(self, project: Project, content: Mapping[str, bytes], same: Mapping[str, Policies]) -> None:
        from ...compiler import sources

        self._content = dict(content)
        self._shared = sorted(filter(shared_by_many, content))
        stamp = sources.stamp_of_layers((path.removeprefix(BELOW), content[path]) for path in self._shared)
        known: list[Source] = []
        fresh: list[Path] = []
        for path in filter(_is_policy, sorted(content)):
            at = project.root / path
            seen = sources.known(project, at, sources.stamp_of_bytes(path, content[path], stamp))
            if seen is None:
                fresh.append(at)
            else:
                known.append(seen)
        with Executor(project.jobs, len(fresh), project.scheduler) as executor:
            self._write(project, fresh)
            more, _ = sources.read_sources(project, fresh, executor, lambda *_: None)
            super().__init__(project, [*known, *more], same)
            for key, alike in grouped((source.key, source) for source in more).items():
                kept = stored_stack(key, project.store) or (self.stack(alike[0].name) if len(alike) >= MANY else None)
                if kept and not any(finding.severity == "error" for finding in kept.findings):
                    sources.remember(project, alike, executor)

    def _write(self, project: Project, paths: Iterable[Path]) -> None:
        """Write what is at PATHS, and what many clusters share."""
        wanted = {path.relative_to(project.root).as_posix() for path in paths}
        if wanted:
            for path in [path for path in (*wanted, *self._shared) if path in self._content]:
                target = project.root / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._content.pop(path))

    def every(self) -> dict[str, Source]:
        """The policies of all clusters, those too that are the same now."""
        return self.sources | {name: now.sources[name] for name, now in self._same.items()}

    def _read(self, source: Source) -> Spec:
        self._write(self.project, [source.path])
        return super()._read(source)

    def stack(self, cluster: str) -> Stack | None:
        """What the policy of CLUSTER rendered to, by this gpustack; None where a rule refuses it now."""
        source = self.sources[cluster]
        self._write(self.project, [source.path])
        try:
            return fleet.stack_of(self.project, source)
        except GpustackError:
            return None


def _is_policy(path: str) -> bool:
    """Whether the file PATH, from the project on, is a policy by its name."""
    name = path.removeprefix(BELOW)
    return not name.startswith(".") and name.endswith((".yaml", ".yml")) and "/" not in name and name not in BESIDE


def shared_by_many(path: str) -> bool:
    """Whether the file PATH, from the project on, is a layer, a change or the rings."""
    return path.startswith(BELOW) and is_shared(path.removeprefix(BELOW))


def unchanged_policies(git: Git, blobs: Mapping[str, str], now: Policies) -> dict[str, str]:
    """The paths among BLOBS of policies that are the same now, with all layers, and the clusters that they describe."""
    here = {path.as_posix() for path in shared_files(Path(common.POLICIES)).values()}
    there = {path for path in blobs if shared_by_many(path)}
    if here != there or not all(_as_merged(git, blobs, path) for path in there):
        return {}
    return {
        path: name for name, source in now.sources.items() if _as_merged(git, blobs, path := source.path.as_posix())
    }


def _as_merged(git: Git, blobs: Mapping[str, str], path: str) -> bool:
    """Whether the file at PATH is as BLOBS have it."""
    return Path(path).is_file() and blob_name(git.algorithm, read_regular(Path(path))) == blobs.get(path)


def reworded_files(git: Git, blobs: Mapping[str, str], now: Policies, but: Set[str], told: Set[str]) -> list[str]:
    """The paths among BLOBS of policies that are others NOW, but for those of the clusters TOLD, and of layers, but for
    those that one of them extends. Layers that are new or gone count; paths in BUT don't."""
    paths = {source.path.as_posix() for name, source in now.sources.items() if name not in told}
    beside = shared_files(Path(common.POLICIES)).values()
    layers = {path for path in (*blobs, *(each.as_posix() for each in beside)) if path.startswith(f"{BELOW}layers/")}
    others = {path for path in (paths & blobs.keys()) | layers if not _as_merged(git, blobs, path)}
    for name, source in now.sources.items():
        if name in told and layers & others:  # a fleet extends what it has within its first clusters
            others -= {os.path.relpath(path) for path in layers_of(source.path)}
    return sorted(others - but)
