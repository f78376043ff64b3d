"""Both sides of a comparison: what is merged, from Git or from a folder, and what the policies render to now.

Where dist/ is not in Git, the policies of the base are rendered, in a folder of their own. Nothing in the work tree is
touched. The policies of both sides are read as well, for those clusters alone in which something changes: they say how
many nodes a change is about.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalog import kinds
from ..gitops import place
from ..model import Finding, GpustackError, InputError
from . import common
from .git import blob_name
from .policies import Beside, Policies, beside
from .steered import touched

if TYPE_CHECKING:
    from ..compiler.fleet import Project, Source
    from ..compiler.foreign import Foreign
    from ..review.diff.objects import ObjectChange
    from ..review.diff.sides import Files, Side, Texts
    from ..review.impact.effects import Impact
    from ..review.impact.origin import Fleet
    from ..review.steering import Content
    from .formats.diff import Compared
    from .git import Git
    from .policies import Spec


@contextmanager
def compare(options: argparse.Namespace) -> Iterator[Compared]:
    """What OPTIONS ask to be compared."""
    from ..review import steering
    from ..review.diff import groups
    from ..review.diff import sides as compared
    from ..review.impact import effects, repository
    from ..review.impact.tiers import REFUSED
    from .formats.diff import Compared

    with sides(options) as both:
        before, after = both.before, both.after
        found, own = compared.differences(before, after)
        found = {**found, **both.said_anew(found)}
        total = before.names() | after.names()
        specs = both.specs(found)
        new, gone = total - before.clusters.keys(), total - after.clusters.keys()
        impact = effects.impact(found, specs, new=new, gone=gone, own=own, fleet=both.fleet)
        beside = [repository.effect("IMP001", REFUSED, each.path, each.why) for each in both.foreign]
        impact = impact.joined([*beside, *steering.effects(both.touched)])
        unknown = [name for name in found if _lacks(specs.get(name), name, both)]
        grouped = groups.Difference(before.title, after.title, len(total), tuple(groups.group(impact.changes, own)))
        why = FOLDERS if getattr(options, "folders", []) else REVISION
        impact, complaints = judged(impact, options)
        yield Compared(grouped, replace(impact, unknown=tuple(unknown)), why, complaints)


def judged(impact: Impact, options: argparse.Namespace) -> tuple[Impact, tuple[str, ...]]:
    """IMPACT with what somebody accepts, and what is wrong with acceptances."""
    from ..policy.loading.acceptances import NAME, acceptances
    from ..review import accepted

    name = getattr(options, "acceptances", NAME)
    listed = acceptances(Path(name), name)
    today = options.today
    impact = accepted.applied(impact, listed, today)
    return impact, tuple(accepted.complaints(impact, listed, today))


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
    """Files beside policies and the rendered folder that are others, with the content of both sides."""
    foreign: Sequence[Foreign] = ()
    """What lies in the rendered folder and isn't rendered."""

    def fleet(self) -> Fleet:
        """What the clusters of both sides say."""
        from ..review.impact.origin import Fleet

        before, after = (policies.all() if policies else () for policies in (self.old, self.new))
        return Fleet.of(before, after, pins())

    def said_anew(self, found: Mapping[str, Sequence[ObjectChange]]) -> dict[str, Sequence[ObjectChange]]:
        """The clusters beside FOUND whose policies say something else, though they render the same: without changes."""
        nothing: Sequence[ObjectChange] = ()
        if not self.old or not self.new:
            return {}
        old, new = self.old.sources, self.new.sources
        both = [name for name in sorted(old.keys() & new.keys() - found.keys()) if old[name].key != new[name].key]
        for policies in (self.old, self.new):
            if isinstance(policies, Beside):
                policies.prepare(both)
                both = [name for name in both if policies.spec(name)]  # others aren't those of the folder
        return dict.fromkeys(both, nothing)

    def specs(self, found: Mapping[str, Sequence[ObjectChange]]) -> dict[str, tuple[Spec, Spec]]:
        """The effective specs of both sides for the clusters FOUND."""
        for policies in filter(None, (self.old, self.new)):
            policies.prepare(found)
        return {
            name: (self.old.spec(name) if self.old else None, self.new.spec(name) if self.new else None)
            for name in found
        }


@contextmanager
def sides(options: argparse.Namespace) -> Iterator[Sides]:
    """Both sides of the comparison that OPTIONS ask for."""
    folders = getattr(options, "folders", [])
    if len(folders) not in {0, 2}:
        what = f"diff compares two folders, and {len(folders)} {'was' if len(folders) == 1 else 'were'} named"
        raise InputError(Finding("GPU027", "error", what, remedy="name both, or none to compare with Git"))
    if folders:
        with common.project(options) as project:
            old, new = (folder_side(Path(folder)) for folder in folders)
            known = [beside(Path(folder), side, project) for folder, side in zip(folders, (old, new), strict=True)]
            yield Sides(old, new, known[0], known[1], foreign=listed(Path(folders[1])))
        return
    with common.project(options) as project, ExitStack() as stack:
        texts, after = new_side(project)
        yield git_sides(options, project, texts, after, stack)


def listed(folder: Path) -> list[Foreign]:
    """What lies in FOLDER and its indexes don't list; nothing where it has no index, and so was not rendered by us."""
    from ..compiler.index import clusters_in
    from .strays import by_index

    return by_index(folder) if clusters_in(folder) else []


def folder_side(folder: Path) -> Side:
    """What stands in FOLDER, which has a folder for each cluster; every file is read."""
    from ..compiler.folders import regular_files
    from ..compiler.output import HEADER
    from ..review.diff.sides import Side, Texts, without_header
    from ..text.regular import read_regular

    if not folder.is_dir():
        remedy = "name a folder that gpustack rendered into, such as dist"
        raise InputError(Finding("GPU027", "error", f"{folder} is no folder", remedy=remedy))
    texts = Texts()

    def files(root: Path, before: str = "") -> Files:
        return {
            f"{before}{name}": texts.name(without_header(read_regular(root / name).decode("utf-8", "replace"), HEADER))
            for name in sorted(regular_files(root))
            if name.endswith(".yaml")
        }

    clusters = {root.name: files(root) for root in _folders(folder)}
    engine: dict[str, Files] = {}
    for which in place.ENGINES:
        for root in _folders(folder / place.FOLDER / which):
            engine[root.name] = {**engine.get(root.name, {}), **files(root, f"{place.FOLDER}/{which}/{root.name}/")}
    return Side(clusters, texts, f"{folder}/", engine)


def _folders(folder: Path) -> list[Path]:
    """The folders of clusters in FOLDER."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and not path.name.startswith("."))


@dataclass(frozen=True)
class New:
    """The side that the policies render to. `header` of a cluster begins each of its files."""

    side: Side
    headers: Mapping[str, str]
    policies: Policies


def new_side(project: Project) -> tuple[Texts, New]:
    """What the policies render to. Raises FindingsError where a rule refuses one."""
    from ..compiler import fleet
    from ..compiler.output import header
    from ..review.diff.sides import Texts

    found = fleet.compiled(project, common.select([]))
    texts = Texts()
    side = side_of(project, found, texts, "policies")
    headers = {source.name: header(source.display) for source in found}
    return texts, New(side, headers, Policies(project, found))


def side_of(project: Project, found: Sequence[Source], texts: Texts, title: str) -> Side:
    """What the policies FOUND render to; clusters of one spec share a mapping."""
    from ..compiler import fleet
    from ..compiler.engine import EngineTexts
    from ..review.diff.sides import Side

    shapes: dict[str, tuple[Files, EngineTexts]] = {}
    engine: dict[str, Files] = {}
    for source in found:
        if source.key not in shapes:
            stack = fleet.stack_of(project, source)
            shapes[source.key] = ({file.path: texts.name(file.text) for file in stack.files}, EngineTexts(stack.plan))
        own = {path: texts.name(text) for path, text in shapes[source.key][1].of(source.name).items()}
        engine |= {source.name: own} if own else {}
    known = kinds.kinds_of(project.root)
    return Side({source.name: shapes[source.key][0] for source in found}, texts, title, engine, known)


def git_sides(options: argparse.Namespace, project: Project, texts: Texts, after: New, stack: ExitStack) -> Sides:
    """What is merged: the rendered folder at the base's commit, or what its policies render to; beside AFTER."""
    from ..review.diff.sides import Side
    from .git import Git
    from .strays import Proposed

    git = Git("diff compares with a revision of Git", "install Git, or name two folders to compare")
    commit = git.base(options.base)
    title = f"{options.base} ({commit[:10]})"
    where = git.place(options.out)
    folder = git.named(where) if where else options.out.rstrip("/")
    there = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpustack-diff-"))).resolve()
    git.extract(git.files(commit, kinds.FOLDER), there)
    elsewhere = replace(common.elsewhere_in(project, there), out=there / "dist")
    merged = git.entries(commit, ".")
    there_before = {path: entry for path, entry in merged.items() if path.startswith(f"{folder}/")}
    blobs = {path: entry.blob for path, entry in there_before.items() if entry.mode.startswith("100")}
    known = unchanged(after, folder, git.algorithm)
    staged = git.staged(".")
    foreign = Proposed(
        git,
        project,
        folder,
        {path.removeprefix(f"{folder}/"): name for path, (name, _) in known.items()},
        {path.removeprefix(f"{folder}/"): entry for path, entry in there_before.items()},
        {path: entry for path, entry in merged.items() if entry.mode == "160000"},
        after.policies.sources,
    ).strays(staged)
    others = touched(git, merged, staged, folder)
    if not blobs:
        side, old = rendered_there(git, commit, elsewhere, texts, title)
        return Sides(side, after.side, old, after.policies, others, foreign)
    found: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {})
    unread: dict[str, list[tuple[dict[str, str], str]]] = {}
    for path, blob in blobs.items():
        placed = _placed(path.removeprefix(f"{folder}/"))
        if placed is None:
            continue
        whose, cluster, name = placed
        files = found[whose].setdefault(cluster, {})
        if known.get(path, ("", ""))[0] == blob:
            files[name] = known[path][1]
        else:
            unread.setdefault(blob, []).append((files, name))
    read_rest(git, unread, texts)
    before = Side(shared(found[0], after.side.clusters), texts, title, shared(found[1], after.side.engine))
    policies = git.files(commit, common.POLICIES)
    same = set(unchanged_policies(policies, after.policies).values()) if policies else set()
    wanted = (  # a new cluster is compared with what others say
        unread or after.side.names() - before.names() or same != after.policies.sources.keys()
    )
    then = read_there(git, commit, elsewhere, after.policies) if wanted else None
    return Sides(before, after.side, then, after.policies, others, foreign)


def pins() -> Iterator[tuple[str, str]]:
    """The images of images.lock, and the digests that they are pinned to; nothing where it can't be read."""
    from .images import locked

    with suppress(GpustackError):
        yield from ((name, each.digest) for name, each in (locked() or {}).items())


def _placed(path: str) -> tuple[int, str, str] | None:
    """Whose the file PATH below the rendered folder is: 0 for a cluster's, 1 for its engine's; the cluster, and what
    the side calls the file. None for what is no manifest.
    """
    first, _, rest = path.partition("/")
    if not rest or not path.endswith(".yaml"):
        return None
    if first == place.FOLDER:
        engine, cluster, *file = rest.split("/", 2)
        return (1, cluster, path) if file and engine in place.ENGINES else None
    return None if first.startswith(".") else (0, first, rest)


def read_rest(git: Git, unread: Mapping[str, list[tuple[dict[str, str], str]]], texts: Texts) -> None:
    """Read the blobs that are not what is rendered now, each into the files that are UNREAD."""
    from ..compiler.output import HEADER
    from ..review.diff.sides import without_header

    for blob, content in git.contents(unread):
        name = texts.name(without_header(content.decode("utf-8", "replace"), HEADER))
        for files, file in unread[blob]:
            files[file] = name


def shared(clusters: Mapping[str, dict[str, str]], after: Mapping[str, Files]) -> dict[str, Files]:
    """CLUSTERS, with the very mapping of AFTER where nothing differs."""
    return {name: after[name] if after.get(name) == files else files for name, files in clusters.items()}


def algorithm(blobs: Mapping[str, str]) -> str:
    """How Git names contents in this repository."""
    return "sha256" if len(next(iter(blobs.values()))) == 64 else "sha1"


def unchanged(after: New, folder: str, how: str) -> dict[str, tuple[str, str]]:
    """The names that Git would give to the files of AFTER, by path, and the content: what has the same name need not be
    read.
    """
    encoded: dict[str, bytes] = {}
    found = {}
    both = [(f"{folder}/{cluster}/", cluster, files) for cluster, files in after.side.clusters.items()]
    both += [(f"{folder}/", cluster, files) for cluster, files in after.side.engine.items()]
    for where, cluster, files in both:
        head = after.headers[cluster].encode()
        for name, text in files.items():
            if text not in encoded:
                encoded[text] = after.side.text(text).encode()
            found[f"{where}{name}"] = blob_name(how, head, encoded[text]), text
    return found


def rendered_there(git: Git, commit: str, project: Project, texts: Texts, title: str) -> tuple[Side, Policies]:
    """What the policies of COMMIT render to, for repositories that do not commit what they render to."""
    from ..compiler import fleet
    from ..policy.loading.load import policy_files

    folder = project.root / common.POLICIES
    git.extract(git.files(commit, common.POLICIES), project.root)
    paths = policy_files(folder, common.POLICIES) if folder.is_dir() else []
    found = fleet.compiled(project, paths) if paths else []
    return side_of(project, found, texts, title), Policies(project, found)


def read_there(git: Git, commit: str, project: Project, now: Policies) -> Policies:
    """The policies of COMMIT, read and not rendered. Those that are the same now are not read again."""
    from ..compiler.executor import Executor
    from ..compiler.sources import read_sources
    from ..policy.loading.load import policy_files

    blobs = git.files(commit, common.POLICIES)
    folder = project.root / common.POLICIES
    same = unchanged_policies(blobs, now) if blobs else {}
    layers = f"{common.POLICIES}/layers/"
    git.extract(
        {path: blob for path, blob in blobs.items() if path not in same or path.startswith(layers)}, project.root
    )
    paths = policy_files(folder, common.POLICIES) if folder.is_dir() else []
    with Executor(project.jobs, len(paths)) as executor:
        found, _ = read_sources(project, paths, executor, lambda *_: None)
    return Policies(project, found, dict.fromkeys(same.values(), now))


def unchanged_policies(blobs: Mapping[str, str], now: Policies) -> dict[str, str]:
    """The paths among BLOBS of policies that are the same now, with all layers, and the clusters that they describe."""
    from ..text.regular import read_regular

    how = algorithm(blobs)
    layers = Path(common.POLICIES) / "layers"
    here = {path.as_posix() for path in layers.iterdir()} if layers.is_dir() else set()
    there = {path for path in blobs if path.startswith(f"{layers.as_posix()}/")}
    if here != there or any(blob_name(how, read_regular(Path(path))) != blobs[path] for path in there):
        return {}
    return {
        path: name
        for name, source in now.sources.items()
        if (path := source.path.as_posix()) in blobs and blob_name(how, read_regular(source.path)) == blobs[path]
    }
