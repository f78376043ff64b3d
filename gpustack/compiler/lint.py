"""All rules over many policies, and nothing written: what `gpustack lint` says.

A render stops at the first file that can't be read; here that is one finding among the others, and the rest of the
fleet is looked at all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model import SEVERITIES, Finding, InputError
from . import fleet, sources
from .ahead import ahead
from .executor import Executor
from .judge import Decisions, GroupedFinding


@dataclass(frozen=True, slots=True)
class Lint:
    """What there is to say about `clusters`. `unusable` tells whether a policy, or the waivers, could not be read: then
    its findings are about no cluster.
    """

    clusters: tuple[str, ...]
    findings: tuple[GroupedFinding, ...]
    unusable: bool
    stacks: int


def lint(project: sources.Project, paths: Sequence[Path], progress: sources.Progress = lambda *_: None) -> Lint:
    """Run all rules on PATHS. Equal findings of many clusters are one; errors come first, then warnings, then notes."""
    with Executor(project.jobs, len(paths), project.scheduler) as executor:
        usable, unusable = sources.read_sources(project, paths, executor, progress)
        decisions, wrong = read_decisions(project, paths)
        judgement = fleet.judge_sources(project, usable, decisions, executor, progress, notes=True)
        later = []
        for folder in {path.parent for path in paths}:
            beside = [source for source in usable if source.path.parent == folder]
            if fleet.is_whole(folder, beside):
                later += ahead(project, folder, beside, decisions.rules, executor)
    unusable += wrong
    findings = [*(GroupedFinding(finding, ()) for finding in unusable), *judgement.findings, *later]
    return Lint(
        tuple(dict.fromkeys(source.name for source in usable)),
        in_order(findings),
        bool(unusable),
        judgement.stacks,
    )


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
