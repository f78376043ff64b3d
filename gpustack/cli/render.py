"""gpustack render: policies -> dist/."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from ..compiler import fleet
from ..compiler.beside import index_data
from ..model import Finding, InputError
from . import common
from .refusals import said
from .text import document, picked, plain, print_findings
from .trees import staged


def run(options: argparse.Namespace) -> int:
    paths = common.select(options.policies)
    if options.changed_since is not None:
        paths = common.changed_since(options.changed_since, paths)
    paths = common.sharded(paths, options.shard)
    everything = not options.policies and options.changed_since is None and options.shard is None
    refuse_strangers(paths, options.out)
    with common.project(options) as project:
        outcome = fleet.render(project, paths, prune=everything, progress=common.progress_line(options))
    wrong = staged.missing(options)
    code = 3 if wrong else 0
    report(outcome, options, project.out, code, wrong)
    return code


def refuse_strangers(paths: Sequence[Path], out: str) -> None:
    """Refuse a policy from outside policies/ whose cluster policies/ describes too: it would replace that folder."""
    home = Path(common.POLICIES).resolve()
    inside = {folder for folder in {path.parent for path in paths} if folder.absolute() == home}
    for path in paths:
        name = "" if path.parent in inside or path.resolve().parent == home else common.name_of(path)
        source = index_source(Path(out), name) if name else ""
        if source.startswith(f"{common.POLICIES}/") and Path(source).exists():
            raise InputError(said("GPU037", path=path, source=source, name=name, out=out))


def index_source(out: Path, cluster: str) -> str:
    """The policy that the folder of CLUSTER below OUT was rendered from, "" where that isn't known."""
    return str(index_data(out, cluster).get("source", ""))


def report(outcome: fleet.Outcome, options: argparse.Namespace, out: Path, code: int, wrong: Sequence[Finding]) -> None:
    """Quiet where nothing happened: one line, and one more for each cluster that changed; then what is WRONG."""
    if options.format == "json":
        print(as_json(code, outcome, wrong))
        return
    print_findings((fleet.also(item) for item in outcome.findings if item.finding.severity != "note"), sys.stderr)
    changed = [change for change in outcome.changes if change.any]
    for change in changed[:20]:
        written, removed = len(change.written), len(change.removed)
        print(f"{change.cluster}: {written} written, {removed} removed, {change.unchanged} unchanged")
    if len(changed) > 20:
        print(f"... and {len(changed) - 20} more")
    gone = [change for change in changed if change.gone]
    rendered = common.counted(len(outcome.changes) - len(gone), "cluster")
    lost = f", {len(gone)} removed" if gone else ""
    print(f"{rendered} rendered into {out}, {len(changed) - len(gone)} changed{lost}")
    print_findings((dataclasses.replace(each.finding, severity="warning") for each in outcome.foreign), sys.stderr)
    print_findings(wrong, sys.stderr)


def as_json(code: int, outcome: fleet.Outcome, wrong: Sequence[Finding]) -> str:
    """The document of `render` and `check`: findings by cluster; those that are WRONG, and what lies there, by none."""
    clusters = [picked(change, "name=cluster written removed unchanged") for change in outcome.changes]
    about = [(item.finding, item.clusters) for item in outcome.findings]
    about += [(each, ()) for each in (*wrong, *(each.finding for each in outcome.foreign))]
    findings = [{**plain(finding), "clusters": names} for finding, names in about]
    return document(code, findings, clusters=clusters, foreign=[dataclasses.asdict(each) for each in outcome.foreign])
