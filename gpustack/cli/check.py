"""gpustack check: is dist/ what the policies render to?"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from ..compiler import fleet
from ..compiler.beside import index_of
from . import common
from .render import as_json
from .text import print_findings, printable, say
from .trees import artifacts, staged, strays


def run(options: argparse.Namespace) -> int:
    paths = common.sharded(common.select(options.policies), options.shard)
    everything = not options.policies and options.shard is None
    with common.project(options) as project:
        outcome = fleet.stale(project, paths, prune=everything, progress=common.progress_line(options))
    for number, change in enumerate(outcome.changes):
        index = index_of(change.cluster)
        if change.unlisted and index not in change.written:  # it doesn't say what is rendered, so it is stale as well
            outcome.changes[number] = dataclasses.replace(change, written=(*change.written, index))
    chosen = None if everything else [change.cluster for change in outcome.changes]
    hidden = strays.beside_git(outcome.foreign, outcome.changes, Path(options.out), chosen)
    outcome = dataclasses.replace(outcome, foreign=tuple(sorted([*outcome.foreign, *hidden])))
    old = [change for change in outcome.changes if change.any]
    wrong = staged.missing(options)
    code = 3 if old or wrong or outcome.foreign else 0
    if options.format == "json":
        print(as_json(code, outcome, wrong))
        return code
    print_findings((fleet.also(item) for item in outcome.findings if item.finding.severity == "warning"), sys.stderr)
    others(project.out, outcome)
    for change in old:
        known = artifacts.held(project.out, change.cluster) or (project.out / change.cluster).exists()
        if not change.removed and not known:
            print(printable(f"never rendered: {change.cluster} ({common.counted(len(change.written), 'file')})"))
            continue
        for word, names in (("stale", change.written), ("left over", change.removed)):
            for name in names:
                print(printable(f"{word}: {os.path.normpath(project.out / change.cluster / name)}"))
    for each in outcome.foreign:
        say(printable(f"not rendered: {each.path} ({each.kind}): {each.why}"))
    if outcome.foreign:
        remedy = outcome.foreign[0].finding.remedy
        say(f"{common.counted(len(outcome.foreign), 'path')} not rendered: {remedy}", sys.stderr)
    if old:
        stale = f"{len(old)} of {common.counted(len(outcome.changes), 'cluster')} stale"
        say(f"{stale}: run `gpustack render` and commit {project.out}/", sys.stderr)
    else:
        print_findings(wrong, sys.stderr)
    if not code:
        print(f"{project.out} is current: {common.counted(len(outcome.changes), 'cluster')}")
    return code


def others(out: Path, outcome: fleet.Outcome) -> None:
    """Say which clusters another project rendered into a folder that both have: gpustack leaves them."""
    foreign = {each.path for each in outcome.foreign}
    for name in outcome.others:
        if str(out / name) not in foreign:
            say(printable(f"not ours: {os.path.normpath(out / name)}, rendered from another project"), sys.stderr)
