"""All rules over many policies, and nothing written: what `gpustack lint` says.

A render stops at the first file that can't be read; here that is one finding among the others, and the rest of the
fleet is looked at all the same. And what rings have ahead of them: a change that the last ring refuses would be found
out after the soak of all the others, so lint compiles what each cluster would be with each change that it has yet to
get, and with all of them. A render doesn't.
"""

import dataclasses
import difflib
import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model import SEVERITIES, Finding, GpustackError, InputError, few, grouped
from ..policy.loading.envelope import Envelope, open_policy, told
from ..policy.loading.layers import Part
from ..policy.loading.load import display, load, spec_key
from ..policy.loading.place import place
from ..policy.loading.rings import Rings, leaves, rings_of
from ..text.read import read
from . import fleet, sources
from .executor import Executor
from .judge import Decisions, GroupedFinding, group
from .sources import Project, Source, memo_of
from .stack import RefusedError, compile_stack

Asked = tuple[Project, Source, str, list[str], frozenset[str]]
"""A source, its ring, changes that come there, and the rules of which findings are waived."""


@dataclass(frozen=True, slots=True)
class Lint:
    """What there is to say about `clusters`. `unusable`: a policy or the waivers could not be read, so some findings
    are about no cluster."""

    clusters: tuple[str, ...]
    findings: tuple[GroupedFinding, ...]
    unusable: bool
    stacks: int


def lint(project: sources.Project, paths: Sequence[Path], progress: sources.Progress = lambda *_: None) -> Lint:
    """Run all rules on PATHS. Equal findings of many clusters are one; errors come first, then warnings, then notes."""
    with Executor(project.jobs, len(paths), project.scheduler) as executor:
        usable, unusable = sources.read_sources(project, paths, executor, progress)
        decisions, wrong = read_decisions(project, paths)
        judged, stacks = fleet.judge_sources(project, usable, decisions, executor, progress, notes=True)
        later = []
        for folder in {path.parent for path in paths}:
            beside = [source for source in usable if source.path.parent == folder]
            if fleet.is_whole(folder, beside):
                later += ahead(project, folder, beside, decisions.rules, executor)
    unusable += wrong
    findings = [*(GroupedFinding(finding, ()) for finding in unusable), *judged, *later]
    return Lint(tuple(dict.fromkeys(source.name for source in usable)), in_order(findings), bool(unusable), stacks)


def read_decisions(project: sources.Project, paths: Sequence[Path]) -> tuple[Decisions, list[Finding]]:
    """The waivers beside PATHS, or none and what is wrong with them."""
    try:
        return Decisions(fleet.read_waivers(project, paths), project.today), []
    except InputError as error:
        return Decisions({}, project.today), list(error.findings)


def in_order(findings: Iterable[GroupedFinding]) -> tuple[GroupedFinding, ...]:
    """FINDINGS with errors first, then warnings, then notes; those of one severity by their places."""
    return tuple(sorted(findings, key=_order))


def _order(item: GroupedFinding) -> tuple[int, str, int, int, str]:
    """Errors first; then by the place, for whoever goes through a file from the top."""
    finding, where = item.finding, item.finding.location
    place = (where.file, where.line or 0, where.column or 0) if where else ("", 0, 0)
    return SEVERITIES.index(finding.severity), *place, finding.rule


def ahead(
    project: Project, folder: Path, policies: Sequence[Source], waived: frozenset[str], executor: Executor
) -> list[GroupedFinding]:
    """What is wrong with POLICIES, all of FOLDER, as they will be, and with the rings and changes beside them."""
    rings = rings_of(folder.absolute(), lambda file: display(file, project.root))
    opened = [open_policy(read(each.path, each.display)) for each in policies] if rings.document else []
    asked: list[Asked] = []
    for source, policy in zip(policies, opened, strict=False):
        ring = rings.ring_of(policy) or ""
        names = [each.name for each in rings.changes if not rings.reached(each, ring)]
        asked += [(project, source, ring, names, waived)] if names else []
    refused = zip(asked, executor.map(_refused, asked), strict=True)
    later = group((item[1], finding) for item, findings in refused for finding in findings)
    beside = [GroupedFinding(each, ()) for each in _beside(rings, opened)]
    return beside + [GroupedFinding(finding, (*dict.fromkeys(each.name for each in same),)) for finding, same in later]


def _beside(rings: Rings, policies: Sequence[Envelope]) -> Iterator[Finding]:
    """What is to be said of rings and globs that none of POLICIES is in, of labels that miss their ring, and of changes
    that move no cluster of a ring."""
    names = [str(each.name) for each in policies]
    members = [rings.ring_of(each) for each in policies]
    for index, ring in enumerate(rings.rings):
        if rings.document and ring.name not in members:
            empty = told(rings.document, ("spec", "rings", index), "GPU093", "empty", ring=ring.name)
            yield dataclasses.replace(empty, severity="warning")
        for at, glob in enumerate(ring.clusters):
            if rings.document and not fnmatch.filter(names, glob):
                where = ("spec", "rings", index, "clusters", at)
                idle = told(rings.document, where, "GPU093", "idle", glob=glob, ring=ring.name)
                yield dataclasses.replace(idle, severity="warning")
    yield from _astray(rings, policies)
    own = [{called for called, *_ in leaves(Part("policy", "", each.spec).clean)} for each in policies]
    for change in rings.changes:
        said = {called for called, (_, value) in change.leaves.items() if value != {}}
        ways = {ring for ring, each in zip(members, own, strict=True) if not said <= each}
        unmoved = [ring.name for ring in rings.rings if ring.name in {*members} - ways]
        if unmoved and not change.version:
            words: dict[str, Any] = {"change": change.name, "where": f" in {few(unmoved, 6)}" if ways else ""}
            vain = told(change.document, ("spec",), "GPU094", "in vain" if said else "nothing", **words)
            yield dataclasses.replace(vain, severity="warning" if ways else "note")


def _astray(rings: Rings, policies: Sequence[Envelope]) -> Iterator[Finding]:
    """Those of POLICIES that no label has put into a ring, with a label by which RINGS select and a value that none of
    them names: where it is like one that is named, or several are. One ring may leave the rest to another."""
    values = grouped(label for ring in rings.rings for label in ring.labels.items())
    for policy in policies:
        if any(each.labels and each.labels.items() <= policy.labels.items() for each in rings.rings):
            continue
        for key in values.keys() & policy.labels.keys():
            value, known = policy.labels[key], [*dict.fromkeys(values[key])]
            near = difflib.get_close_matches(value, known, n=1)
            if value not in (*known, *(each.name for each in rings.rings)) and (near or len(known) > 1):
                others = f"write one of {few(known, 6)}, or name it in fleet.yaml"
                words: dict[str, Any] = {"label": f"{key}={value}", "ring": rings.ring_of(policy) or "none"}
                words["meant"] = f"did you mean {near[0]}?" if near else others
                stray = told(policy.document, ("metadata", "labels", key), "GPU093", "stray", **words)
                yield dataclasses.replace(stray, severity="warning")


def _refused(item: Asked) -> list[Finding]:
    """What refuses the cluster with one of its changes, or, where none does, with all of them."""
    project, source, ring, pending, waived = item
    findings = list[Finding]()
    for names in [*([each] for each in pending), pending]:
        try:
            if not findings or len(names) == 1:
                loaded = load(source.path, root=project.root, memo=memo_of(project.store), ahead=names)
                compile_stack(loaded.spec, spec_key(loaded.merged), project.store, waived)
        except GpustackError as error:
            head = f"once the ring {ring} has {' and '.join(names)}: "
            of_stack = isinstance(error, RefusedError)
            located = [place(loaded, each) if of_stack else each for each in error.findings]
            findings += [dataclasses.replace(each, what=head + each.what) for each in located]
    return findings
