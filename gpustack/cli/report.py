"""gpustack report: the fleet on one page: versions, GPUs and findings, and what changes if asked.

The page is one HTML file that needs nothing but a browser: no network, no other file.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiler.executor import Executor
from ..compiler.fleet import stack_of, stale
from ..compiler.sources import Project, Source, read_sources
from ..model import Finding, GpustackError
from ..policy.loading.load import ringed
from . import common
from .saving import save
from .text import printable, say

if TYPE_CHECKING:
    from ..review.report.frame import Section


def run(options: argparse.Namespace) -> int:
    from ..review.report import findings, frame

    parts = [*changes(options), *fleet(options)]
    parts.append(findings.meanings(parts))
    page = frame.page(options.title, f"As of {options.today.isoformat()}", parts)
    if options.file == "-":
        print(page, end="")
        return 0
    save(Path(options.file), page, "the report", "name another file after --file")
    say(printable(f"{options.file}: {', '.join(part.title.lower() for part in parts if part.body)}"))
    return 0


def fleet(options: argparse.Namespace) -> list[Section]:
    """What is so, whatever changes. A policy that can't be read, or is refused, is among the findings alone."""
    from ..compiler.lint import lint
    from ..review import rings as by_rings
    from ..review.report import findings, frame, matrix, pictures
    from .trees.policies import Policies

    paths = common.select([])
    with common.project(options) as project:
        linted = lint(project, paths)
        with Executor(project.jobs, len(paths), project.scheduler) as executor:
            sources, _ = read_sources(project, paths, executor, lambda *_: None)
        beside = [] if options.base is not None else strays(project, paths)
        read, known = Policies(project, sources), dict[str, dict[str, str]]()
        clusters = {}
        for source in sorted(sources, key=lambda one: one.name):
            spec = read.spec(source.name)
            if source.key not in known:
                known[source.key] = versions(project, source)
            if spec is not None:
                clusters[source.name] = matrix.Cluster(spec, known[source.key])
    rings, ring_of, _ = ringed(Path(common.POLICIES), Path.cwd()) if not linted.unusable else (None, {}, {})
    heads, rows = by_rings.table(rings, ring_of) if rings else ([], [])
    going = frame.table("changes by rings", heads, [[frame.text(cell) for cell in row] for row in rows]) if rows else ""
    told = [*beside, *((item.finding, item.clusters) for item in linted.findings)]
    specs = {name: cluster.spec for name, cluster in clusters.items()}
    last = [findings.section(told, len(paths)), frame.Section("rings", "Changes on their way", going)]
    return [matrix.section(clusters), pictures.section(specs), *last]


def strays(project: Project, paths: list[Path]) -> list[tuple[Finding, tuple[str, ...]]]:
    """What lies in dist/ and isn't rendered, as findings about no cluster; with a base it is among the changes. Nothing
    where a policy is refused, which is a finding itself."""
    try:
        return [(each.finding, ()) for each in stale(project, paths, prune=True).foreign]
    except GpustackError:
        return []


def versions(project: Project, source: Source) -> dict[str, str]:
    """What SOURCE renders to, by component; nothing where a rule refuses it."""
    from ..review.report import matrix

    try:
        files = stack_of(project, source).files
    except GpustackError:
        return {}
    kinds = ("daemonset-", "deployment-", "statefulset-")
    return matrix.versions([file.text for file in files if file.path.rpartition("/")[2].startswith(kinds)])


def changes(options: argparse.Namespace) -> list[Section]:
    """What changes against --base."""
    if options.base is None:
        return []
    from ..review.report import changes, frame
    from ..review.templates import each
    from .formats.diff import head, missing, verdict
    from .trees.comparison import compare

    with compare(options) as compared:
        lines = [f"{head(compared)}, against {options.base}", *filter(None, (verdict(compared), missing(compared)))]
        return [
            frame.Section("review", "What changes", each("paragraph", map(frame.prose, lines))),
            changes.effects(compared.impact, compared.difference.total),
            changes.groups(compared.difference),
        ]
