"""Many policy files at once: load, compile each distinct spec once, and only then write.

Four steps, each mapped over the executor:

1. *Sources*: a file whose bytes (and layers) were seen before is not even parsed; the others are loaded.
2. *Stacks*: each distinct effective spec is compiled once. Any error anywhere ends the render before a byte is written.
3. *Writing*: each cluster's folder is compared and replaced. A folder that is known to be as we left it is not read.
4. *Remembering*: how each folder looked as we left it (size, times and inode of every file), for step 3 of next time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checks.rule import all_rules
from ..model import Finding, FindingsError, Location, grouped
from ..policy.loading.load import WAIVERS, display, policy_files
from ..policy.loading.waivers import Waiver, waivers_of
from . import beside, dist, foreign, sources, versions
from .cache import digest
from .engine import EngineTexts
from .executor import Executor
from .folders import locked, look
from .foreign import Foreign
from .judge import Decisions, GroupedFinding, also, due, group
from .sources import Progress, Project, Source
from .stack import RefusedError, Stack, bring_stacks, compile_stack, finding_of, plain, stored_stack

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec

__all__ = ["GroupedFinding", "Outcome", "Progress", "Project", "Source", "also", "render", "stale"]

STACKS_PER_NODE = 20
"""Stacks that are worth a Node: one takes as long to start as ten stacks to compile, and 100 MB with its Python."""
LOOKS_PER_PROCESS = 100
"""Folders that are worth a process to look at: it takes as long to start as a hundred looks."""
STACKS_PER_SWEEP = 50
"""Stacks after which garbage is collected: a cluster and its pools refer to each other, and keep their spec."""
STACKS_PER_FETCH = 50
"""Stacks that others compiled and that are fetched in one go."""
RACY_SECONDS = 0.02
"""File systems stamp changes with a coarse clock: for this long, a change may look like none."""

Seen = tuple[dist.Change, list[Foreign]]
"""What was, or would be, changed in a cluster's folder, and what else is there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a render did: changes by cluster, and what the rules had to say (equal findings of many clusters as one).

    `others` are clusters in the output folder that another project rendered; `foreign` is what else lies there and
    isn't rendered."""

    changes: list[dist.Change]
    findings: list[GroupedFinding]
    stacks: int
    others: tuple[str, ...] = ()
    foreign: tuple[Foreign, ...] = ()


def compile_sources(
    project: Project, policies: Sequence[Source], executor: Executor, progress: Progress
) -> tuple[list[GroupedFinding], int]:
    """Step 2: compile each distinct spec once; returns what the rules say and the number of stacks that were compiled.

    Raises FindingsError with the located errors of all clusters, and InputError for waivers that can't be read."""
    decisions = Decisions(read_waivers(project, [source.path for source in policies]), project.today)
    findings, stacks = judge_sources(project, policies, decisions, executor, progress)
    errors = [item for item in findings if item.finding.severity == "error"]
    if errors:
        raise FindingsError(*(also(item) for item in errors))
    return findings, stacks


def judge_sources(
    project: Project,
    policies: Sequence[Source],
    decisions: Decisions,
    executor: Executor,
    progress: Progress,
    *,
    notes: bool = False,
) -> tuple[list[GroupedFinding], int]:
    """As `compile_sources`, but errors are among the findings instead of raised. Sources whose specs compile are
    remembered. NOTES: locate notes as well."""
    by_key = grouped((source.key, source) for source in policies)
    todo = [(project, key, same[0].spec, decisions.rules) for key, same in by_key.items() if same[0].spec]
    results: dict[str, list[Finding]] = {}
    refused: set[str] = set()
    bring_stacks((key for _, key, *_ in todo), project.store)
    where = grouped((project.store.get("stack", item[1]) is None, item) for item in todo)  # what is here needs no other
    elsewhere = len(where.get(True, ())) if executor.scheduler else 0
    judged = (executor.map(_compile, where.get(far, []), worth=STACKS_PER_NODE, far=far) for far in (True, False))
    for done, (key, findings, good) in enumerate(itertools.chain.from_iterable(judged), 1):
        results[key] = [finding_of(item) for item in findings]
        refused.update(() if good else [key])
        progress("compiling", done, len(todo))
        if done <= elsewhere and (done % STACKS_PER_FETCH == 0 or done == elsewhere):  # while others compile
            bring_stacks(list(results)[-STACKS_PER_FETCH:], project.store)
    for key in by_key.keys() - results.keys():
        entry = project.store.get("stack", key) or {"findings": []}
        results[key] = [finding_of(item) for item in entry["findings"]]
    told = (
        (source, decisions.waive(source.path.parent, source.name, finding))
        for source in policies
        for finding in (*source.findings, *results[source.key])
        if due(finding, project.today)
    )
    alike = group(told)
    known = [_located(project, same[0], finding, notes) for finding, same in alike]
    asked = [
        (project, dataclasses.replace(same[0], spec=b""), finding)
        for (finding, same), placed in zip(alike, known, strict=True)
        if placed is None
    ]
    fresh = executor.map(_locate, asked, warm=True)
    located = [
        GroupedFinding(placed or next(fresh), tuple(source.name for source in same))
        for placed, (_, same) in zip(known, alike, strict=True)
    ]
    sources.remember(project, [source for source in policies if source.key not in refused], executor)
    located += [GroupedFinding(finding, ()) for finding in complaints(policies, decisions, refused)]
    return located, len(todo)


def complaints(policies: Sequence[Source], decisions: Decisions, refused: set[str]) -> list[Finding]:
    """What is wrong with the waivers beside POLICIES, of which those are left out that could not be read. Of the
    stacks REFUSED, not everything was looked at."""
    judged = grouped((source.path.parent, source) for source in policies)
    whole = [folder for folder, same in judged.items() if decisions.covers(folder) and is_whole(folder, same)]
    return decisions.complaints(
        {folder: [source.name for source in same] for folder, same in judged.items()},
        {folder: [source.name for source in judged[folder] if source.key in refused] for folder in whole},
    )


def is_whole(folder: Path, policies: Iterable[Source]) -> bool:
    """Whether POLICIES are all that are in FOLDER."""
    return {source.path.name for source in policies} >= {path.name for path in policy_files(folder, folder.name)}


def read_waivers(project: Project, paths: Iterable[Path]) -> dict[Path, tuple[Waiver, ...]]:
    """The waivers that lie beside PATHS, by folder. Raises InputError."""
    folders = dict.fromkeys(path.parent for path in paths)
    by_folder = {folder: waivers_of(folder, display(folder / WAIVERS, project.root)) for folder in folders}
    return {folder: waivers for folder, waivers in by_folder.items() if waivers}


def _compile(item: tuple[Project, str, bytes, frozenset[str]]) -> tuple[str, list[list[Any]], bool]:
    """What the rules say about a spec, and whether it compiled."""
    project, key, packed, tolerated = item
    try:
        stack = sources.stack_from(project, key, packed, tolerated)
    except RefusedError as error:
        return key, [plain(finding) for finding in (*error.findings, *error.beside)], False
    finally:
        _sweep()
    return key, [plain(finding) for finding in stack.findings], True


_turns = itertools.count(1)


def _sweep() -> None:
    """Collect garbage once in a while, and never again look at what was there by the first time: the program."""
    done = next(_turns)
    if done % STACKS_PER_SWEEP == 0:
        gc.collect()
        if done == STACKS_PER_SWEEP:
            gc.freeze()


def _located(project: Project, source: Source, finding: Finding, notes: bool) -> Finding | None:
    """FINDING with its place, if it needs none or `_locate` found it in another run; else None.
    Without NOTES, notes go without: nobody waits for them."""
    if finding.location is not None or not finding.path or (finding.severity == "note" and not notes):
        return finding
    known = project.store.get("place", _place_key(source, finding)) if source.stamp else None
    if known is None:
        return None
    return dataclasses.replace(finding, why=known["why"], location=Location(**known["at"]) if known["at"] else None)


def placed(project: Project, source: Source, finding: Finding) -> Finding:
    """FINDING with its place in the files of SOURCE's policy, which the store may know."""
    return _located(project, source, finding, True) or _locate((project, source, finding))


def _place_key(source: Source, finding: Finding) -> str:
    return digest("place", source.stamp, json.dumps(plain(finding)))


def _locate(item: tuple[Project, Source, Finding]) -> Finding:
    """A finding with the place in the files of a policy where its value was written.

    Looking for it means to load the policy and to parse its text once more, so the store keeps it: a warm render that
    has something to tell stays one."""
    project, source, finding = item
    placed = sources.located(project, source, finding)
    if source.stamp and sources.stamp_of(source.path, project.root, {}) == source.stamp:  # nobody saved it meanwhile
        place_found = dataclasses.asdict(placed.location) if placed.location else None
        project.store.put("place", _place_key(source, finding), {"at": place_found, "why": placed.why})
    return placed


def render(
    project: Project, paths: Sequence[Path], *, prune: bool = False, progress: Progress = lambda *_: None
) -> Outcome:
    """Render PATHS. With PRUNE, clusters of this project in the output folder that no path describes are removed."""
    with Executor(project.jobs, len(paths), project.scheduler) as executor:
        policies = sources.read_all(project, paths, executor, progress)
        findings, stacks = compile_sources(project, policies, executor, progress)
        with locked(project.out):
            dist.sweep(project.out)
            changes, inside = write_all(project, policies, executor, progress)
            gone, others = without_policy(project, policies) if prune else ([], [])
            changes += [dist.remove_cluster(project.out, name) for name in gone]
    with contextlib.suppress(OSError):
        project.store.prune()
    names = {source.name for source in policies}
    alien = foreign.gathered(project.root, project.out, inside, names if prune else None, others)
    return Outcome(changes, findings, stacks, tuple(others), tuple(alien))


def write_all(
    project: Project, policies: Sequence[Source], executor: Executor, progress: Progress
) -> tuple[list[dist.Change], list[Foreign]]:
    """Steps 3 and 4, and what is foreign in the clusters' folders. A change that somebody makes after this returns is
    seen by the next render."""
    changes, alien = _settled(project, policies, executor, _write, lambda *done: progress("writing", *done))
    if any(change.look for change in changes):
        time.sleep(RACY_SECONDS)
    return changes, alien


def _settled(
    project: Project,
    policies: Sequence[Source],
    executor: Executor,
    work: Callable[[tuple[Project, Source]], Seen],
    progress: Callable[[int, int], object] = lambda *_: None,
) -> tuple[list[dist.Change], list[Foreign]]:
    """The changes of POLICIES and what is foreign in their folders: of those that hold what we left there as we know
    it, of the others what WORK says."""
    every = [(project, source) for source in policies]
    found = list(executor.map(untouched, every, worth=LOOKS_PER_PROCESS))
    dirty = [position for position, seen in enumerate(found) if seen is None]
    worked = executor.map(work, [every[position] for position in dirty])
    same: dict[str, str] = {}  # one text for a file of 10,000 clusters
    for done, (position, (change, there)) in enumerate(zip(dirty, worked, strict=True), 1):
        names = tuple(same.setdefault(name, name) for name in change.written)
        found[position] = dataclasses.replace(change, written=names), there
        progress(done, len(dirty))
    known = [seen for seen in found if seen]
    return [change for change, _ in known], [each for _, there in known for each in there]


def compiled(project: Project, paths: Sequence[Path], progress: Progress = lambda *_: None) -> list[Source]:
    """PATHS as sources whose stacks are in the store; nothing is written to the output folder."""
    with Executor(project.jobs, scheduler=project.scheduler) as executor:
        policies = sources.read_all(project, paths, executor, progress)
        compile_sources(project, policies, executor, progress)
    return policies


def stack_of(project: Project, source: Source) -> Stack:
    """What SOURCE compiles to. Compiles again what the store has lost meanwhile."""
    stack = stored_stack(source.key, project.store)
    if stack is None and source.by:
        versions.rendered_by(project, source.by, [source.path])
        stack = stored_stack(source.key, project.store)
    if stack is None:
        loaded = sources.load_policy(source.path, project.root, project.store)
        # All rules are waived: whoever writes what a stack renders to has been told what they say.
        stack = compile_stack(loaded.spec, source.key, project.store, {rule.id for rule in all_rules()})
    return stack


def spec_of(project: Project, source: Source) -> ClusterPolicySpec:
    return sources.load_policy(source.path, project.root, project.store).spec


def digest_of(project: Project, source: Source) -> str:
    """Names by content what is rendered for SOURCE, wherever the project lies."""
    return digest(beside.without_project(rendered(project, source).index()))


_RENDERED: dict[tuple[str, str], tuple[Stack, EngineTexts]] = {}


def rendered(project: Project, source: Source) -> dist.Rendering:
    """What SOURCE's folder should hold. A process keeps what it rendered last: clusters of one spec share it."""
    which = (project.store.salt, source.key)
    if which not in _RENDERED:
        if len(_RENDERED) == sources.HELD:
            _RENDERED.clear()
        stack = stack_of(project, source)
        _RENDERED[which] = (stack, EngineTexts(stack.plan))
    stack, texts = _RENDERED[which]
    head = dist.header(source.display)
    here = () if stack.artifact and not project.whole else stack.files
    files = {file.path: (head + file.text).encode() for file in here}
    engine = {path: (head + text).encode() for path, text in texts.of(source.name).items()}
    owner = beside.owner(project.root, project.out)
    return dist.Rendering(source.name, source.display, stack.minor, files, owner, engine, stack.artifact)


def _write(item: tuple[Project, Source]) -> Seen:
    project, source = item
    _sweep()
    made = rendered(project, source)
    change = dist.write(project.out, made)
    alien = foreign.of_cluster(project.out, made)
    if change.look:
        held = change.unchanged + len(change.written)
        others = [dataclasses.astuple(each) for each in alien]
        state = {"tree": _tree(source), "look": change.look, "files": held, "foreign": others}
        project.store.put("state", _state_key(project, source), state)
    return change, alien


def _state_key(project: Project, source: Source) -> str:
    return digest("state", os.path.realpath(project.out), source.name)


def _tree(source: Source) -> str:
    """Names the content of SOURCE's folder: what was rendered, and the header."""
    return digest("tree", source.key, dist.header(source.display))


def untouched(item: tuple[Project, Source]) -> Seen | None:
    """That nothing is to be changed in the cluster's folder, if it is as we left it with this content; else None."""
    project, source = item
    state = project.store.get("state", _state_key(project, source))
    if state is None or state["tree"] != _tree(source) or state["look"] != dist.look_of(project.out, source.name):
        return None
    return dist.Change(source.name, unchanged=state["files"]), [Foreign(*each) for each in state["foreign"]]


def without_policy(project: Project, policies: Iterable[Source]) -> tuple[list[str], list[str]]:
    """Clusters in the output folder that none of POLICIES, which are all, describes: those that this project
    rendered, and those of others, whose policies are elsewhere."""
    names = {source.name for source in policies}
    own = beside.owner(project.root, project.out)
    left: tuple[list[str], list[str]] = ([], [])
    for name in beside.clusters_in(project.out):
        if name not in names:
            left[beside.index_data(project.out, name).get("project", "") != own].append(name)
    return left


def stale(
    project: Project, paths: Sequence[Path], *, prune: bool = False, progress: Progress = lambda *_: None
) -> Outcome:
    """What `render` would change; nothing is written to the output folder. A file is read unless its size, its times
    (the change time too, which nobody can set) and its inode are as `render` left them."""
    with Executor(project.jobs, len(paths), project.scheduler) as executor:
        policies = sources.read_all(project, paths, executor, progress)
        findings, stacks = compile_sources(project, policies, executor, progress)
        changes, inside = _settled(project, policies, executor, _compare)
        gone, others = without_policy(project, policies) if prune else ([], [])
        changes += [dist.left_over(project.out, name) for name in gone]
    names = {source.name for source in policies}
    alien = foreign.gathered(project.root, project.out, inside, names if prune else None, others)
    return Outcome(changes, findings, stacks, tuple(others), foreign.untold(project.out, alien, changes))


def _compare(item: tuple[Project, Source]) -> Seen:
    project, source = item
    made, there = rendered(project, source), look(project.out, source.name)
    return dist.compare(project.out, made, there), foreign.of_cluster(project.out, made, there)
