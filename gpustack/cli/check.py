"""gpustack check: is dist/ what the policies render to?"""

from __future__ import annotations

import argparse
import os
import sys

from ..compiler import fleet
from . import common
from .render import as_json
from .text import print_findings, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_project(parser)
    common.add_today(parser)


def run(options: argparse.Namespace) -> int:
    paths = common.select(options.policies)
    with common.project(options) as project:
        outcome = fleet.stale(project, paths, prune=not options.policies, progress=common.progress_line(options))
    old = [change for change in outcome.changes if change.any]
    code = 3 if old else 0
    if options.format == "json":
        print(as_json(code, outcome))
        return code
    print_findings((fleet.also(item) for item in outcome.findings if item.finding.severity == "warning"), sys.stderr)
    for change in old:
        for word, names in (("stale", change.written), ("left over", change.removed)):
            for name in names:
                print(printable(f"{word}: {os.path.normpath(project.out / change.cluster / name)}"))
    if old:
        print(
            f"{len(old)} of {len(outcome.changes)} clusters are stale: run `gpustack render` and commit {project.out}/",
            file=sys.stderr,
        )
        return code
    print(f"{project.out} is current: {len(outcome.changes)} clusters")
    return code
