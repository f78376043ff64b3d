"""Policy files as sources: which cluster each describes, and the key of its effective spec.

A file whose bytes, and the layers beside it, were seen before is not even parsed. What was found out about the others
is remembered once their specs compile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import itertools
import os
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..checks.rule import rules_over
from ..checks.subjects import Written
from ..model import Finding, GpustackError, InputError, Location, few, grouped
from ..policy.loading.brought import brought_by
from ..policy.loading.load import Loaded, Memo, Opened, display, load_opened, open_with_layers, spec_key
from ..policy.loading.place import place
from ..policy.loading.rings import shared_files
from ..text.positions import locate
from ..text.read import read
from ..text.regular import read_regular
from ..text.source import LIMIT
from . import node, versions
from .cache import Store, digest
from .executor import Executor
from .refusals import said
from .stack import Stack, bring_stacks, compile_stack, finding_of, known_stack, plain

if TYPE_CHECKING:
    from ..policy.language.gitops import GitOps
    from ..policy.language.spec import ClusterPolicySpec
    from ..policy.loading.versions import Version

Progress = Callable[[str, int, int], None]
"""Told (step, done, total) as a render goes on."""

HELD = 64
"""Effective specs, and files, that a process holds on to."""

SEEN = 32
"""For so many policies that were seen before, one that was not is compiled beside the look at the others."""

REMEMBERED = 64
"""Sources that a process remembers at a time: they share the look at the layers."""


@dataclass(frozen=True, slots=True)
class Project:
    """Where a render reads and writes. `root` is what file names in messages and headers are relative to.

    `today` is the day by which waivers expire and findings begin to count; None: none does. `scheduler` is the address
    of who has stacks compiled elsewhere, "" for nobody (distant.py). `versions` is the folder with other versions of
    gpustack (versions.py); None: this one renders all, whatever gpustack.lock says. `whole`: what an OCI artifact
    alone holds is written as well."""

    root: Path
    out: Path
    store: Store
    jobs: int | None = None
    today: datetime.date | None = None
    scheduler: str = ""
    versions: Path | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A policy file: the cluster it describes and the key of its effective spec.

    `stamp` names the bytes it was read from, `spec` is the effective spec (`unpacked`), b"" when the store knew it.
    `findings` are of the rules that look at who wrote what, whenever they count. `artifact` is the OCI artifact that
    an engine reads the cluster from, "" for a cluster without. `by` is the version of gpustack that renders
    it, where that isn't this one: then `key` is that of what it rendered."""

    path: Path
    display: str
    stamp: str
    name: str
    key: str
    spec: bytes = field(default=b"", repr=False)
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    artifact: str = ""
    by: Version | None = None


def read_all(project: Project, paths: Sequence[Path], executor: Executor, progress: Progress) -> list[Source]:
    """Step 1: every policy file as a Source. Raises InputError with the errors of all files."""
    sources, errors = read_sources(project, paths, executor, progress)
    if errors:
        raise InputError(*errors)
    return sources


def read_sources(
    project: Project, paths: Sequence[Path], executor: Executor, progress: Progress
) -> tuple[list[Source], list[Finding]]:
    """The policies that can be used, in the order of PATHS, and what is wrong with the others."""
    _MEMOS.clear()
    sources: list[Source] = []
    errors: list[Finding] = []
    layers: dict[Path, str] = {}
    fresh: list[tuple[Project, Path, str]] = []
    begun: list[Iterator[Source | list[Finding]]] = []
    beside = project.store.holds("component") and not executor.alone(len(paths)) and not executor.scheduler
    elsewhere = set[Path]()
    try:
        for version, theirs in versions.split(project, paths).items():
            elsewhere |= {*theirs}
            sources += versions.rendered_by(project, version, theirs)
    except InputError as error:
        errors += error.findings
    for path in (each for each in paths if each not in elsewhere):
        stamp = stamp_of(path, project.root, layers)
        seen = known(project, path, stamp)
        if seen is None:
            fresh.append((project, path, stamp))
        else:
            sources.append(seen)
        if beside and len(begun) < len(fresh) < len(sources) / SEEN and executor.alone(len(fresh)):
            begun += [executor.ahead(_compiled, item) for item in fresh[len(begun) :]]
    if fresh and executor.alone(len(paths)) and not project.store.holds("component"):
        node.start_early()  # nothing was ever synthesised here, so something will be
    loaded = itertools.chain(*begun, executor.map(_load, fresh[len(begun) :]))
    for done, result in enumerate(loaded, len(paths) - len(fresh) + 1):
        if isinstance(result, Source):
            sources.append(result)
        else:
            errors += [finding for finding in result if finding not in errors]
        progress("reading", done, len(paths))
    order = {path: position for position, path in enumerate(paths)}
    sources.sort(key=lambda source: order[source.path])
    return sources, errors or [*twins(sources), *shared_artifacts(project, sources)]


def twins(sources: Iterable[Source]) -> list[Finding]:
    """What is wrong where two files describe one cluster: they would overwrite each other in dist/."""
    first: dict[str, Source] = {}
    findings = []
    for source in sources:
        other = first.setdefault(source.name, source)
        if other is not source:
            where, name = name_location(source), repr(source.name)
            twin = said("GPU020", "", where, at="metadata.name", one=source.display, other=other.display, name=name)
            findings.append(twin)
    return findings


def shared_artifacts(project: Project, sources: Iterable[Source]) -> Iterator[Finding]:
    """What is wrong where several clusters read one OCI artifact: it holds what one of them renders to."""
    for artifact, same in grouped((source.artifact, source) for source in sources if source.artifact).items():
        names = sorted({source.name for source in same})
        if len(names) < 2:
            continue
        at, count = "spec.gitops.repository.url", len(names)
        told = said("GPU046", at=at, count=count, artifact=artifact, names=few(names, 6), first=names[0])
        yield located(project, same[0], told)


def located(project: Project, source: Source, finding: Finding) -> Finding:
    """FINDING with the place in the files of SOURCE's policy."""
    try:
        return place(load_policy(source.path, project.root, project.store), finding)
    except GpustackError:  # somebody saved another policy meanwhile
        return finding


def name_location(source: Source) -> Location:
    """Where the policy of SOURCE names its cluster."""
    try:
        return locate(read(source.path, source.display).text, source.display, ("metadata", "name"))
    except InputError:  # it was there when it was loaded
        return Location(source.display)


def stamp_of(path: Path, root: Path, layers: dict[Path, str]) -> str:
    """Names the bytes of PATH and of all that may be merged with it, layers, changes and rings, "" when it can't be
    read.

    LAYERS is filled by folder."""
    folder = path.parent
    try:
        if folder not in layers:
            files = sorted(shared_files(folder).items())
            layers[folder] = stamp_of_layers((name, _bytes(file)) for name, file in files)
        return stamp_of_bytes(display(path, root), _bytes(path), layers[folder])
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return ""


def stamp_of_layers(files: Iterable[tuple[str, bytes]]) -> str:
    """Names the layers, changes and rings FILES, by their names and contents in the order of the names."""
    return digest(*(part for file in files for part in file))


def stamp_of_bytes(shown: str, content: bytes, layers: str) -> str:
    """The stamp of a policy called SHOWN, by its CONTENT and the name of its LAYERS."""
    return digest("source", shown, content, layers)


def _bytes(path: Path) -> bytes:
    """The content of PATH. Raises OSError for a file that no load would take, which may be endless."""
    data = read_regular(path, limit=LIMIT + 1)
    if len(data) > LIMIT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def known(project: Project, path: Path, stamp: str) -> Source | None:
    """The source of PATH if its bytes were loaded before and its stack is still in the store."""
    entry = project.store.get("source", stamp) if stamp else None
    if entry is None or project.store.get("stack", entry["key"]) is None:
        return None
    findings = tuple(finding_of(item) for item in entry["findings"])
    shown = display(path, project.root)
    return Source(path, shown, stamp, entry["name"], entry["key"], b"", findings, entry["artifact"])


def _load(item: tuple[Project, Path, str]) -> Source | list[Finding]:
    from ..gitops.reads import artifact

    project, path, stamp = item
    try:
        opened = _opened(path, project.root, project.store)
        name, held = str(opened.policy.name), memo_of(project.store)
        content = opened.content
        if alike := held.alike.get(content):
            source, gitops = alike
            file, layer = opened.policy.document.file, artifact(gitops, name)
            return dataclasses.replace(source, path=path, display=file, stamp=stamp, name=name, artifact=layer)
        loaded = load_opened(opened)
    except GpustackError as error:
        return error.findings
    source = source_of(project, path, stamp, loaded)
    told = "".join(text for each in source.findings for text in (each.what, each.why, each.remedy))
    if content and source.display not in told:
        held.alike[content] = source, loaded.spec.gitops
    return source


def _compiled(item: tuple[Project, Path, str]) -> Source | list[Finding]:
    """As `_load`; what the policy renders to is in the store then, where nothing is wrong with it."""
    source = _load(item)
    if isinstance(source, Source):
        bring_stacks([source.key], item[0].store)
        with contextlib.suppress(GpustackError):  # it is told where that is compiled which isn't in the store
            stack_from(item[0], source.key, source.spec)
    return source


def source_of(project: Project, path: Path, stamp: str, loaded: Loaded) -> Source:
    """The source that PATH with the bytes STAMP is, which was LOADED, perhaps with something over it."""
    from ..gitops.reads import artifact

    written = Written(loaded.spec, loaded.merged)
    findings = tuple(finding for rule in rules_over("origins") for finding in rule.findings(written))
    key, memo = spec_key(loaded.merged), memo_of(project.store)
    if key not in memo.packed:  # by a quarter of its length, which of ten thousand policies is 65 MB less
        memo.packed[key] = zlib.compress(loaded.spec.model_dump_json(exclude_none=True).encode(), 1)
    layer = artifact(loaded.spec.gitops, loaded.name)
    return Source(path, loaded.file, stamp, loaded.name, key, memo.packed[key], findings, layer)


def load_policy(path: Path, root: Path, store: Store) -> Loaded:
    """Load one policy file. Files of one run share their layers, and equal specs are validated once in a process."""
    return load_opened(_opened(path, root, store))


def _opened(path: Path, root: Path, store: Store) -> Opened:
    memo = memo_of(store)
    for held in (memo.specs, memo.packed, memo.documents, memo.alike):
        if len(held) > HELD:  # a fleet of which no two specs are equal shares nothing but its layers
            held.clear()
    return open_with_layers(path, root=root, memo=memo)


@dataclass
class Held(Memo):
    """What the loads of one run share, effective specs by their keys as sources have them, and what policies are whose
    content was seen, with their section gitops."""

    packed: dict[str, bytes] = field(default_factory=dict)
    alike: dict[str, tuple[Source, GitOps | None]] = field(default_factory=dict)


def memo_of(store: Store) -> Held:
    """What the loads of the run with STORE share in this process."""
    return _MEMOS.setdefault((store.root, store.salt), Held())


def stack_from(project: Project, key: str, spec: bytes, tolerated: Container[str] = ()) -> Stack:
    """As `compile_stack`; SPEC is unpacked only where the store doesn't have the stack KEY."""
    known = known_stack(key, project.store, tolerated)
    return known or compile_stack(unpacked(spec, project.root, project.store), key, project.store, tolerated)


def unpacked(spec: bytes, root: Path, store: Store) -> ClusterPolicySpec:
    """The effective SPEC that a source below ROOT has: compressed JSON."""
    from ..policy.language.spec import ClusterPolicySpec

    memo = memo_of(store)
    if memo.brought is None:
        memo.brought = brought_by(root)
    return ClusterPolicySpec.model_validate_json(zlib.decompress(spec), context=memo.brought.context)


_MEMOS: dict[tuple[Path, str], Held] = {}
"""What the loads of one run share, in each process. A run is known by its store, of which workers have copies."""


def remember(project: Project, sources: Iterable[Source], executor: Executor) -> None:
    """Let the store know which effective specs the bytes of SOURCES stand for."""
    fresh = [dataclasses.replace(source, spec=b"") for source in sources if source.spec and source.stamp]
    parts = [(project, fresh[start : start + REMEMBERED]) for start in range(0, len(fresh), REMEMBERED)]
    list(executor.map(_remember, parts, warm=True))


def _remember(item: tuple[Project, list[Source]]) -> None:
    project, sources = item
    layers: dict[Path, str] = {}
    for source in sources:
        # Somebody may have saved the file between the look at its bytes and the reading of it.
        if stamp_of(source.path, project.root, layers) == source.stamp:
            findings = [plain(finding) for finding in source.findings]
            entry = {"name": source.name, "key": source.key, "findings": findings, "artifact": source.artifact}
            project.store.put("source", source.stamp, entry)
