"""Both sides of a comparison: what is merged, from Git or from a folder, and what the policies render to now.

Where dist/ is not in Git, the policies of the base are rendered, in a folder of their own. Nothing in the work tree is
touched. The policies of both sides are read as well, for those clusters alone in which something changes: they say how
many nodes a change is about.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...catalog import kinds
from ...compiler import fleet
from ...compiler.beside import clusters_in
from ...compiler.dist import HEADER, header
from ...compiler.engine import EngineTexts
from ...compiler.fleet import Project, Source
from ...compiler.folders import regular_files
from ...compiler.foreign import Foreign
from ...gitops import FOLDER, engines
from ...model import GpustackError
from ...policy.loading.brought import LIMITS, LIST, LOCK
from ...text.regular import read_regular
from ...text.source import decode
from .. import common
from ..refusals import refusal
from .policies import Beside, Policies, beside
from .strays import by_index

if TYPE_CHECKING:
    from ...policy.loading.decisions import AcceptanceSpec
    from ...review.diff.objects import ObjectChange
    from ...review.diff.sides import Files, Side, Texts
    from ...review.images.lock import Locked
    from ...review.impact.effects import Effect, Impact
    from ...review.impact.origin import Fleet
    from ...review.rings import Ringed
    from ...review.steering import Content
    from ...review.versions import Step
    from ..formats.diff import Compared
    from .policies import Spec


@contextmanager
def compare(options: argparse.Namespace) -> Iterator[Compared]:
    """What OPTIONS ask to be compared."""
    from ...review import rings, steering, versions
    from ...review.diff import groups
    from ...review.diff import sides as compared
    from ...review.impact import effects, repository
    from ...review.impact.tiers import REFUSED, ROUTINE
    from ..formats.diff import Compared

    with sides(options) as both:
        before, after = both.before, both.after
        by_cluster, own = compared.differences(before, after)
        anew = both.said_anew(by_cluster)
        by_cluster = {**by_cluster, **anew}
        total = before.names() | after.names()
        specs = both.specs(by_cluster)
        new, gone = total - before.clusters.keys(), total - after.clusters.keys()
        impact = effects.impact(by_cluster, specs, new=new, gone=gone, own=own, fleet=both.fleet)
        told = {name for each in impact.effects for name in each.clusters}
        silent = {name for name in anew if name not in told and None not in specs[name]}
        same = {*both.reworded(by_cluster.keys() - silent)}
        same = same or {both.new.sources[name].path.as_posix() for name in silent if both.new}
        beside = [repository.effect("IMP001", REFUSED, each.path, each.why) for each in both.foreign]
        beside += [repository.effect("IMP906", ROUTINE, path, REWORDED) for path in sorted(same)]
        ringed = both.rings()
        beside += rings.effects(*ringed, by_cluster, common.time_on(options.today), specs) if ringed else ()
        steps = both.steps(by_cluster)
        beside += versions.effects(steps, impact.changes, own)
        impact = impact.joined([*beside, *both.told, *steering.effects(both.touched)])
        unknown = [name for name in by_cluster if _lacks(specs.get(name), name, both)]
        apart = tuple(versions.groups(steps, impact.changes, own))
        grouped = groups.Difference(before.title, after.title, len(total), apart)
        why = FOLDERS if getattr(options, "folders", []) else REVISION
        used = both.used(options)
        impact, complaints = judged(impact, options, used)
        yield Compared(grouped, replace(impact, unknown=tuple(unknown)), why, complaints, used)


def judged(
    impact: Impact, options: argparse.Namespace, used: Sequence[AcceptanceSpec]
) -> tuple[Impact, tuple[str, ...]]:
    """IMPACT with what somebody accepts, and what is wrong with acceptances. USED are merged already."""
    from ...policy.loading.decisions import ACCEPTANCES, acceptances
    from ...review import accepted

    name = getattr(options, "acceptances", ACCEPTANCES)
    listed = acceptances(Path(name), name)
    today = options.today
    impact = accepted.applied(impact, listed, today, used)
    return impact, tuple(accepted.complaints(impact, listed, today, used))


REWORDED = "is new, gone or in other words, and changes nothing"
FOLDERS = "no policies/ beside one of the folders renders to what is in it; a comparison with Git (--base) knows them"
REVISION = "no policy of one side can be read"
"""Why numbers are missing."""


def _lacks(pair: tuple[object, object] | None, cluster: str, both: Sides) -> bool:
    """Whether a policy of CLUSTER is not known that there must be."""
    known = pair or (None, None)
    there = (cluster in both.before.clusters, cluster in both.after.clusters)
    return any(side and spec is None for side, spec in zip(there, known, strict=True))


@dataclass(frozen=True)
class Sides:
    """Both sides, and the policies behind them; None for a side that has none, such as a folder."""

    before: Side
    after: Side
    old: Policies | None = None
    new: Policies | None = None
    touched: Mapping[str, Content] = field(default_factory=dict)
    """Files beside policies and the rendered folder that differ, with the content of both sides."""
    foreign: Sequence[Foreign] = ()
    """What lies in the rendered folder and isn't rendered."""

    merged: Callable[[str], bytes | None] = lambda _: None
    """The content of a file of the base, by its path from the current folder; None where there is none."""
    reworded: Callable[[Set[str]], Iterable[str]] = lambda _: ()
    """The files of policies and layers that are others, but for those of some clusters."""
    rings: Callable[[], tuple[Ringed, Ringed] | None] = lambda: None
    """The rings of both sides, where one of them has any."""
    told: Sequence[Effect] = ()
    """What is to be said of the base itself."""
    steps: Callable[[Mapping[str, object]], Sequence[Step]] = lambda _: ()
    """Those of clusters that another version of gpustack renders than on the base."""

    def used(self, options: argparse.Namespace) -> tuple[AcceptanceSpec, ...]:
        """The acceptances that the base has already; where nobody can read them, all that there are."""
        from ...policy.loading.decisions import ACCEPTANCES, acceptances, parsed

        name = getattr(options, "acceptances", ACCEPTANCES)
        content = self.merged(name)
        try:
            return tuple(parsed(decode(content, name), name)) if content is not None else ()
        except GpustackError:
            return tuple(acceptances(Path(name), name))

    def fleet(self) -> Fleet:
        """What the clusters of both sides say."""
        from ...review.impact.origin import Fleet
        from ..images import locked

        before, after = (policies.all() if policies else () for policies in (self.old, self.new))
        pinned: Mapping[str, Locked] = {}
        with suppress(GpustackError):  # nothing is pinned where that can't be read
            pinned = locked() or {}
        return Fleet.of(before, after, ((name, each.digest) for name, each in pinned.items()))

    def said_anew(self, changed: Mapping[str, Sequence[ObjectChange]]) -> dict[str, Sequence[ObjectChange]]:
        """Clusters beside CHANGED whose policies say something else, though they render the same: without changes."""
        nothing: Sequence[ObjectChange] = ()
        if not self.old or not self.new:
            return {}
        old, new = self.old.sources, self.new.sources
        both = [name for name in sorted(old.keys() & new.keys() - changed.keys()) if old[name].key != new[name].key]
        for policies in (self.old, self.new):
            if isinstance(policies, Beside):
                policies.prepare(both)
                both = [name for name in both if policies.spec(name)]  # others aren't those of the folder
        return dict.fromkeys(both, nothing)

    def specs(self, changed: Mapping[str, Sequence[ObjectChange]]) -> dict[str, tuple[Spec, Spec]]:
        """The effective specs of both sides for the CHANGED clusters."""
        for policies in filter(None, (self.old, self.new)):
            policies.prepare(changed)
        return {
            name: (self.old.spec(name) if self.old else None, self.new.spec(name) if self.new else None)
            for name in changed
        }


@contextmanager
def sides(options: argparse.Namespace) -> Iterator[Sides]:
    """Both sides of the comparison that OPTIONS ask for."""
    folders = getattr(options, "folders", [])
    if len(folders) not in {0, 2}:
        raise refusal("GPU027", "folders", named=f"{len(folders)} {'was' if len(folders) == 1 else 'were'}")
    if folders:
        first, last = map(Path, folders)
        merged = beside_of(first)
        with common.project(options) as project:
            old, new = folder_side(first), folder_side(last)
            root = last.resolve().parent
            if root not in {first.resolve().parent, Path.cwd()}:  # the first is the base
                LIMITS.update({root / each: merged(each) or b"" for each in (LIST, LOCK)})
            known = beside(first, old, project), beside(last, new, project)
        foreign = by_index(last) if clusters_in(last) else []  # what has no index was not rendered by us
        yield Sides(old, new, *known, foreign=foreign, merged=merged)
        return
    from .against_git import git_sides

    with common.project(options) as project, ExitStack() as stack:
        texts, after = new_side(project)
        yield git_sides(options, project, texts, after, stack)


def beside_of(folder: Path) -> Callable[[str], bytes | None]:
    """Reads files of the project that FOLDER is rendered in, where that isn't the one that is looked at."""

    def read(name: str) -> bytes | None:
        there = folder.resolve().parent / Path(name).name
        same = Path(name).exists() and there.exists() and there.samefile(name)
        return read_regular(there) if there.is_file() and not same else None

    return read


def folder_side(folder: Path) -> Side:
    """What stands in FOLDER, which has a folder for each cluster; every file is read."""
    from ...review.diff.sides import Side, Texts, without_header

    if not folder.is_dir():
        raise refusal("GPU027", "folder", folder=folder)
    texts = Texts()

    def files(root: Path, before: str = "") -> Files:
        return {
            f"{before}{name}": texts.name(without_header(read_regular(root / name).decode("utf-8", "replace"), HEADER))
            for name in sorted(regular_files(root))
            if name.endswith(".yaml")
        }

    clusters = {root.name: files(root) for root in _folders(folder)}
    engine: dict[str, Files] = {}
    for which in engines.names():
        for root in _folders(folder / FOLDER / which):
            engine[root.name] = {**engine.get(root.name, {}), **files(root, f"{FOLDER}/{which}/{root.name}/")}
    return Side(clusters, texts, f"{folder}/", engine)


def _folders(folder: Path) -> list[Path]:
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in entries if path.is_dir() and not path.name.startswith("."))


@dataclass(frozen=True)
class New:
    """What the policies render to, the first line of a cluster's files, and the digests of those in artifacts alone."""

    side: Side
    headers: Mapping[str, str]
    policies: Policies
    layers: Mapping[str, str] = field(default_factory=dict)


def new_side(project: Project) -> tuple[Texts, New]:
    """What the policies render to. Raises FindingsError where a rule refuses one."""
    from ...review.diff.sides import Texts

    sources = fleet.compiled(project, common.select([]))
    texts = Texts()
    layers: dict[str, str] = {}
    side = side_of(project, sources, texts, "policies", layers)
    headers = {source.name: header(source.display) for source in sources}
    return texts, New(side, headers, Policies(project, sources), layers)


def side_of(
    project: Project, sources: Sequence[Source], texts: Texts, title: str, layers: dict[str, str] | None = None
) -> Side:
    """What SOURCES render to; clusters of one spec share a mapping. LAYERS gets the digests of those in artifacts."""
    from ...review.diff.sides import Side

    shapes: dict[str, tuple[Files, EngineTexts, str]] = {}
    engine: dict[str, Files] = {}
    for source in sources:
        if source.key not in shapes:
            stack = fleet.stack_of(project, source)
            files = {file.path: texts.name(file.text) for file in stack.files}
            shapes[source.key] = (files, EngineTexts(stack.plan), stack.layer)
        if layers is not None and shapes[source.key][2]:
            layers[source.name] = shapes[source.key][2]
        own = {path: texts.name(text) for path, text in shapes[source.key][1].of(source.name).items()}
        engine |= {source.name: own} if own else {}
    known = kinds.kinds_of(project.root)
    return Side({source.name: shapes[source.key][0] for source in sources}, texts, title, engine, known)
