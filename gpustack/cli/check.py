"""gpustack check: is dist/ what the policies render to?"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..compiler import fleet
from . import common, staged
from .render import as_json
from .text import print_findings, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_project(parser)
    common.add_today(parser)
    staged.add_argument(parser)


def run(options: argparse.Namespace) -> int:
    paths = common.select(options.policies)
    with common.project(options) as project:
        outcome = fleet.stale(project, paths, prune=not options.policies, progress=common.progress_line(options))
    old = [change for change in outcome.changes if change.any]
    wrong = staged.missing(options)
    code = 3 if old or wrong else 0
    if options.format == "json":
        print(as_json(code, outcome, wrong))
        return code
    print_findings((fleet.also(item) for item in outcome.findings if item.finding.severity == "warning"), sys.stderr)
    foreign(project.out, outcome)
    for change in old:
        if not change.removed and not (project.out / change.cluster).exists():
            print(printable(f"never rendered: {change.cluster} ({len(change.written)} files)"))
            continue
        for word, names in (("stale", change.written), ("left over", change.removed)):
            for name in names:
                print(printable(f"{word}: {os.path.normpath(project.out / change.cluster / name)}"))
    if old:
        stale = f"{len(old)} of {common.counted(len(outcome.changes), 'cluster')} stale"
        print(f"{stale}: run `gpustack render` and commit {project.out}/", file=sys.stderr)
        return code
    if wrong:
        print_findings(wrong, sys.stderr)
        return code
    print(f"{project.out} is current: {common.counted(len(outcome.changes), 'cluster')}")
    return code


def foreign(out: Path, outcome: fleet.Outcome) -> None:
    """Say which files of the clusters, and which clusters, somebody else put there: gpustack leaves them, and engines
    sync them as well.
    """
    for change in outcome.changes:
        names = sorted(common.foreign_files(out, change.cluster))
        for name in names[:10]:
            print(printable(f"not ours: {os.path.normpath(out / change.cluster / name)}"), file=sys.stderr)
        if len(names) > 10:
            print(f"not ours: ... and {len(names) - 10} more", file=sys.stderr)
    for name in outcome.others:
        print(printable(f"not ours: {os.path.normpath(out / name)}, rendered from another project"), file=sys.stderr)
