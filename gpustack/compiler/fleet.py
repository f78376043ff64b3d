"""Many policy files at once: load, compile each distinct spec once, and only then write.

Four steps, each mapped over the executor:

1. *Sources*: a file whose bytes (and layers) were seen before is not even parsed; the others are loaded.
2. *Stacks*: each distinct effective spec is compiled once. Any error anywhere ends the render before a byte is written.
3. *Writing*: each cluster's folder is compared and replaced. A folder that is known to be as we left it is not read.
4. *Remembering*: how each folder looked as we left it (size, times and inode of every file), for step 3 of next time.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..model import Finding, FindingsError, GpustackError, InputError, Location
from ..policy.load import display
from . import node, output
from .cache import Store, digest
from .executor import Executor
from .folders import locked
from .judge import Decisions, GroupedFinding, also, due, group
from .stack import RefusedError, compile_stack, finding_of, plain, stored_stack

if TYPE_CHECKING:
    from ..policy.load import Loaded, Memo
    from ..policy.waivers import Waiver

__all__ = ["GroupedFinding", "Outcome", "Project", "Source", "also", "render", "stale"]

Progress = Callable[[str, int, int], None]
"""Told (step, done, total) as a render goes on."""

STACKS_PER_NODE = 20
"""Stacks that are worth a Node: one takes as long to start as ten stacks to compile, and 100 MB with its Python."""

RACY_SECONDS = 0.02
"""File systems stamp changes with a coarse clock: for this long, a change may look like none."""


@dataclass(frozen=True, slots=True)
class Project:
    """Where a render reads and writes. `root` is what file names in messages and headers are relative to.

    `today` is the day by which waivers expire and findings begin to count; None: none does.
    """

    root: Path
    out: Path
    store: Store
    jobs: int | None = None
    today: datetime.date | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A policy file: the cluster it describes and the key of its effective spec.

    `stamp` names the bytes it was read from, `spec` is the effective spec as JSON, "" when the store knew the bytes.
    `findings` are of the rules that look at who wrote what, whenever they count.
    """

    path: Path
    display: str
    stamp: str
    name: str
    key: str
    spec: str = field(default="", repr=False)
    findings: tuple[Finding, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a render did: changes by cluster, and what the rules had to say (equal findings of many clusters as one)."""

    changes: list[output.Change]
    findings: list[GroupedFinding]
    stacks: int


def sources(project: Project, paths: Sequence[Path], executor: Executor, progress: Progress) -> list[Source]:
    """Step 1: every policy file as a Source. Raises InputError with the errors of all files."""
    found, errors = read_sources(project, paths, executor, progress)
    if errors:
        raise InputError(*errors)
    return found


def read_sources(
    project: Project, paths: Sequence[Path], executor: Executor, progress: Progress
) -> tuple[list[Source], list[Finding]]:
    """The policies that can be used, in the order of PATHS, and what is wrong with the others."""
    _MEMOS.pop(project.store, None)
    found: list[Source] = []
    errors: list[Finding] = []
    layers: dict[Path, str] = {}
    fresh: list[tuple[Project, Path, str]] = []
    for path in paths:
        stamp = stamp_of(path, project.root, layers)
        known = _known(project, path, stamp)
        if known is None:
            fresh.append((project, path, stamp))
        else:
            found.append(known)
    if fresh and executor.alone(len(paths)) and not project.store.holds("component"):
        node.start_early()  # nothing was ever synthesised here, so something will be
    for done, result in enumerate(executor.map(_load, fresh), len(found) + 1):
        if isinstance(result, Source):
            found.append(result)
        else:
            errors += [finding for finding in result if finding not in errors]
        progress("reading", done, len(paths))
    order = {path: position for position, path in enumerate(paths)}
    found.sort(key=lambda source: order[source.path])
    return found, errors or twins(found)


def twins(found: Iterable[Source]) -> list[Finding]:
    """What is wrong where two files describe one cluster: they would overwrite each other in dist/."""
    first: dict[str, Source] = {}
    findings = []
    for source in found:
        other = first.setdefault(source.name, source)
        if other is not source:
            findings.append(
                Finding(
                    "GPU020",
                    "error",
                    f"{source.display} and {other.display} both describe the cluster {source.name!r}",
                    path="metadata.name",
                    location=name_location(source),
                    why="both would be written to the same folder",
                    remedy="give each cluster its own metadata.name",
                )
            )
    return findings


def name_location(source: Source) -> Location:
    """Where the policy of SOURCE names its cluster."""
    from ..policy.positions import locate
    from ..policy.read import read

    try:
        return locate(read(source.path, source.display).text, source.display, ("metadata", "name"))
    except InputError:  # it was there when it was loaded
        return Location(source.display)


def stamp_of(path: Path, root: Path, layers: dict[Path, str]) -> str:
    """Names the bytes of PATH and of every layer that it may extend, "" when it can't be read.

    LAYERS is filled by folder.
    """
    folder = path.parent
    try:
        if folder not in layers:
            below = folder / "layers"
            files = sorted(below.iterdir()) if below.is_dir() else []
            layers[folder] = digest(
                *(part for file in files if file.is_file() for part in (file.name, file.read_bytes()))
            )
        return digest("source", display(path, root), path.read_bytes(), layers[folder]) if path.is_file() else ""
    except OSError:
        return ""


def _known(project: Project, path: Path, stamp: str) -> Source | None:
    """The source of PATH if its bytes were loaded before and its stack is still in the store."""
    entry = project.store.get("source", stamp) if stamp else None
    if entry is None or project.store.get("stack", entry["key"]) is None:
        return None
    findings = tuple(finding_of(item) for item in entry["findings"])
    return Source(path, display(path, project.root), stamp, entry["name"], entry["key"], findings=findings)


def _load(item: tuple[Project, Path, str]) -> Source | list[Finding]:
    project, path, stamp = item
    try:
        loaded = load_policy(path, project.root, project.store)
    except GpustackError as error:
        return error.findings
    from ..checks.rule import rules_over
    from ..checks.subjects import Written
    from ..policy.load import spec_key

    written = Written(loaded.spec, loaded.merged)
    findings = tuple(finding for rule in rules_over("origins") for finding in rule.findings(written))
    text = loaded.spec.model_dump_json(exclude_none=True)
    return Source(path, loaded.file, stamp, loaded.name, spec_key(loaded.merged), text, findings)


def load_policy(path: Path, root: Path, store: Store) -> Loaded:
    """Load one policy file. Files of one run share their layers, and equal specs are validated once."""
    from ..policy.load import Memo, load

    memo = _MEMOS.setdefault(store, Memo())
    return load(path, root=root, memo=memo)


_MEMOS: WeakKeyDictionary[Store, Memo] = WeakKeyDictionary()
"""What the loads of one run share; a run is known by its store."""


def compile_sources(
    project: Project, found: Sequence[Source], executor: Executor, progress: Progress
) -> tuple[list[GroupedFinding], int]:
    """Step 2: compile each distinct spec once; returns what the rules say and the number of stacks that were compiled.

    Raises FindingsError with the located errors of all clusters, and InputError for waivers that can't be read.
    """
    decisions = Decisions(read_waivers(project, [source.path for source in found]), project.today)
    judgement = judge_sources(project, found, decisions, executor, progress)
    errors = [item for item in judgement.findings if item.finding.severity == "error"]
    if errors:
        raise FindingsError(*(also(item) for item in errors))
    return judgement.findings, judgement.stacks


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rules say about all clusters, and the number of stacks that were compiled for it."""

    findings: list[GroupedFinding]
    stacks: int


def judge_sources(
    project: Project,
    found: Sequence[Source],
    decisions: Decisions,
    executor: Executor,
    progress: Progress,
    *,
    complete: bool = True,
    notes: bool = False,
) -> Judgement:
    """Compile each distinct spec once, and remember the sources whose specs compile.

    Not COMPLETE: other policies could not be read, so a waiver may be about them. NOTES: locate notes too.
    """
    by_key: dict[str, list[Source]] = {}
    for source in found:
        by_key.setdefault(source.key, []).append(source)
    todo = [(project.store, key, same[0].spec, decisions.rules) for key, same in by_key.items() if same[0].spec]
    results: dict[str, list[Finding]] = {}
    refused: set[str] = set()
    for done, (key, findings, good) in enumerate(executor.map(_compile, todo, worth=STACKS_PER_NODE), 1):
        results[key] = [finding_of(item) for item in findings]
        refused.update(() if good else [key])
        progress("compiling", done, len(todo))
    for key in by_key.keys() - results.keys():
        entry = project.store.get("stack", key) or {"findings": []}
        results[key] = [finding_of(item) for item in entry["findings"]]
    told = (
        (source, decisions.waive(source.path.parent, source.name, finding))
        for source in found
        for finding in (*source.findings, *results[source.key])
        if due(finding, project.today)
    )
    grouped = group(told)
    places: dict[Path, Loaded | None] = {}
    located = [
        GroupedFinding(locate(project, same[0], finding, places, notes=notes), tuple(source.name for source in same))
        for finding, same in grouped
    ]
    remember(project, [source for source in found if source.key not in refused])
    located += [GroupedFinding(finding, ()) for finding in complaints(found, decisions, refused, complete)]
    return Judgement(located, len(todo))


def complaints(found: Sequence[Source], decisions: Decisions, refused: set[str], complete: bool) -> list[Finding]:
    """What is wrong with the waivers beside FOUND. Of the stacks REFUSED, not everything was looked at."""
    judged: dict[Path, list[Source]] = {}
    for source in found:
        judged.setdefault(source.path.parent, []).append(source)
    whole = [
        folder for folder, same in judged.items() if complete and decisions.covers(folder) and is_whole(folder, same)
    ]
    return decisions.complaints(
        {folder: [source.name for source in same] for folder, same in judged.items()},
        {folder: [source.name for source in judged[folder] if source.key in refused] for folder in whole},
    )


def is_whole(folder: Path, found: Iterable[Source]) -> bool:
    """Whether FOUND are all the policies in FOLDER."""
    from ..policy.load import policy_files

    return {source.path.name for source in found} >= {path.name for path in policy_files(folder, folder.name)}


def read_waivers(project: Project, paths: Iterable[Path]) -> dict[Path, tuple[Waiver, ...]]:
    """The waivers that lie beside PATHS, by folder. Raises InputError."""
    from ..policy.load import WAIVERS
    from ..policy.waivers import waivers_of

    folders = dict.fromkeys(path.parent for path in paths)
    found = {folder: waivers_of(folder, display(folder / WAIVERS, project.root)) for folder in folders}
    return {folder: waivers for folder, waivers in found.items() if waivers}


def remember(project: Project, found: Iterable[Source]) -> None:
    """Let the store know which effective specs the bytes of FOUND stand for."""
    layers: dict[Path, str] = {}
    for source in found:
        # Somebody may have saved the file between the look at its bytes and the reading of it.
        if source.spec and source.stamp and stamp_of(source.path, project.root, layers) == source.stamp:
            findings = [plain(finding) for finding in source.findings]
            project.store.put("source", source.stamp, {"name": source.name, "key": source.key, "findings": findings})


def _compile(item: tuple[Store, str, str, frozenset[str]]) -> tuple[str, list[list[Any]], bool]:
    """What the rules say about a spec, and whether it compiled."""
    store, key, text, tolerated = item
    from ..policy.spec import ClusterPolicySpec

    try:
        stack = compile_stack(ClusterPolicySpec.model_validate_json(text), key, store, tolerated)
    except RefusedError as error:
        return key, [plain(finding) for finding in (*error.findings, *error.beside)], False
    return key, [plain(finding) for finding in stack.findings], True


def locate(
    project: Project, source: Source, finding: Finding, places: dict[Path, Loaded | None], *, notes: bool = False
) -> Finding:
    """FINDING with the place in the files of SOURCE where its value was written; PLACES holds what was loaded for that.

    Without NOTES, notes go without: nobody waits for them.
    """
    if finding.location is not None or not finding.path or (finding.severity == "note" and not notes):
        return finding
    from ..policy.place import place

    if source.path not in places:
        try:
            places[source.path] = load_policy(source.path, project.root, project.store)
        except GpustackError:
            places[source.path] = None
    loaded = places[source.path]
    return place(loaded, finding) if loaded else finding


def render(
    project: Project, paths: Sequence[Path], *, prune: bool = False, progress: Progress = lambda *_: None
) -> Outcome:
    """Render PATHS. With PRUNE, clusters in the output folder that no path describes any more are removed."""
    with Executor(project.jobs) as executor:
        found = sources(project, paths, executor, progress)
        findings, stacks = compile_sources(project, found, executor, progress)
        with locked(project.out):
            output.sweep(project.out)
            changes = write_all(project, found, executor, progress)
            if prune:
                changes += [output.remove_cluster(project.out, name) for name in without_policy(project, found)]
    with contextlib.suppress(OSError):
        project.store.prune()
    return Outcome(changes, findings, stacks)


def write_all(project: Project, found: Sequence[Source], executor: Executor, progress: Progress) -> list[output.Change]:
    """Steps 3 and 4. A change that somebody makes after this returns is seen by the next render."""
    changes: dict[str, output.Change] = {}
    dirty: list[tuple[Project, Source]] = []
    for source in found:
        if untouched(project, source):
            changes[source.name] = output.Change(source.name)
        else:
            dirty.append((project, source))
    for done, change in enumerate(executor.map(_write, dirty), 1):
        changes[change.cluster] = change
        progress("writing", done, len(dirty))
    if dirty:
        time.sleep(RACY_SECONDS)
    return [changes[source.name] for source in found]


def rendered(project: Project, source: Source) -> output.Rendering:
    """What SOURCE's folder should hold. Compiles again what the store has lost meanwhile."""
    stack = stored_stack(source.key, project.store)
    if stack is None:
        loaded = load_policy(source.path, project.root, project.store)
        stack = compile_stack(loaded.spec, source.key, project.store, judged_already())
    head = output.header(source.display)
    files = {file.path: (head + file.text).encode() for file in stack.files}
    return output.Rendering(source.name, source.display, stack.minor, files)


def judged_already() -> frozenset[str]:
    """All rules: whoever writes what a stack renders to has been told what they say."""
    from ..checks.rule import all_rules

    return frozenset(rule.id for rule in all_rules())


def _write(item: tuple[Project, Source]) -> output.Change:
    project, source = item
    change = output.write(project.out, rendered(project, source))
    if change.look:
        project.store.put("state", _state_key(project, source), {"tree": _tree(source), "look": change.look})
    return change


def _state_key(project: Project, source: Source) -> str:
    return digest("state", os.path.realpath(project.out), source.name)


def _tree(source: Source) -> str:
    """Names the content of SOURCE's folder: what was rendered, and the header."""
    return digest("tree", source.key, output.header(source.display))


def untouched(project: Project, source: Source) -> bool:
    """Whether the cluster's folder holds this very content and nobody touched a file since we wrote it."""
    state = project.store.get("state", _state_key(project, source))
    if state is None or state["tree"] != _tree(source):
        return False
    return bool(state["look"] == output.look(project.out, source.name))


def without_policy(project: Project, found: Iterable[Source]) -> list[str]:
    """Clusters in the output folder that none of FOUND, which are all policies, describes."""
    names = {source.name for source in found}
    return [name for name in output.clusters_in(project.out) if name not in names]


def stale(
    project: Project, paths: Sequence[Path], *, prune: bool = False, progress: Progress = lambda *_: None
) -> Outcome:
    """What `render` would change, found by reading every file; nothing is written to the output folder."""
    with Executor(project.jobs) as executor:
        found = sources(project, paths, executor, progress)
        findings, stacks = compile_sources(project, found, executor, progress)
        changes = list(executor.map(_compare, [(project, source) for source in found]))
        if prune:
            changes += [output.left_over(project.out, name) for name in without_policy(project, found)]
    return Outcome(changes, findings, stacks)


def _compare(item: tuple[Project, Source]) -> output.Change:
    project, source = item
    return output.compare(project.out, rendered(project, source))
