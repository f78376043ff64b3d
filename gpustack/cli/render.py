"""gpustack render: policies -> dist/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..compiler import fleet
from . import common
from .text import document, plain, print_findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_project(parser)
    common.add_today(parser)
    parser.add_argument(
        "--changed-since", metavar="REF", help="only clusters whose policy or layers differ from this Git revision"
    )


def run(options: argparse.Namespace) -> int:
    paths = common.select(options.policies)
    if options.changed_since is not None:
        paths = common.changed_since(options.changed_since, paths)
    everything = not options.policies and options.changed_since is None
    with common.project(options) as project:
        outcome = fleet.render(project, paths, prune=everything, progress=common.progress_line(options))
    report(outcome, options, project.out)
    return 0


def report(outcome: fleet.Outcome, options: argparse.Namespace, out: Path) -> None:
    """Quiet where nothing happened: one line, and one more for each cluster that changed."""
    if options.format == "json":
        print(as_json(0, outcome))
        return
    print_findings((fleet.also(item) for item in outcome.findings if item.finding.severity != "note"), sys.stderr)
    changed = [change for change in outcome.changes if change.any]
    for change in changed[:20]:
        print(
            f"{change.cluster}: {len(change.written)} written, {len(change.removed)} removed, "
            f"{change.unchanged} unchanged"
        )
    if len(changed) > 20:
        print(f"... and {len(changed) - 20} more")
    total = len(outcome.changes)
    print(f"{total} cluster{'' if total == 1 else 's'} rendered into {out}, {len(changed)} changed")


def as_json(code: int, outcome: fleet.Outcome) -> str:
    """The document of `render` and `check`; its findings say which clusters they are about."""
    clusters = [
        {
            "name": change.cluster,
            "written": list(change.written),
            "removed": list(change.removed),
            "unchanged": change.unchanged,
        }
        for change in outcome.changes
    ]
    findings = [{**plain(item.finding), "clusters": list(item.clusters)} for item in outcome.findings]
    return document(code, findings, clusters=clusters)
