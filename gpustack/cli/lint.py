"""gpustack lint: what the rules say about policies, or about tenants' manifests. Only reports are written."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from ..compiler.lint import Lint, lint
from ..model import SEVERITIES
from . import common
from .formats import FORMATS, Report, tell, write
from .refusals import refusal
from .saving import save


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_policies(parser)
    common.add_today(parser)
    parser.add_argument("--format", choices=list(FORMATS), default="text", help="how to print the findings")
    parser.add_argument(
        "--report",
        action="append",
        default=[],
        type=target,
        metavar="FORMAT=PATH",
        help=f"write them to a file as well, in another format perhaps: {', '.join(FORMATS)}; may be repeated",
    )
    parser.add_argument(
        "--workloads",
        type=lambda text: Path(common.named(text)),
        metavar="DIR",
        help="check the manifests in this folder (or file) against what --cluster offers, instead of policies",
    )
    which = parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        metavar="CLUSTER|FILE",
        help="the cluster that --workloads is for: a name, a glob, or a policy file; may be repeated",
    )
    common.completed(which)
    parser.add_argument(
        "--fail-on",
        choices=[*SEVERITIES, "never"],
        default="error",
        help="the least severity that makes exit code 2 (default: error)",
    )
    parser.set_defaults(out="dist")


def target(text: str) -> tuple[str, Path]:
    """FORMAT=PATH in its two parts."""
    name, _, path = text.partition("=")
    if name not in FORMATS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=PATH, with one of {', '.join(FORMATS)}")
    if path == "-":
        raise argparse.ArgumentTypeError(f"{text!r} names no file; --format {name} prints that")
    return name, Path(path)


def run(options: argparse.Namespace) -> int:
    twice = [path for path, times in Counter(path for _, path in options.report).items() if times > 1]
    if twice:
        raise refusal("GPU026", "one report", file=twice[0])
    linted = of_workloads(options) if options.workloads or options.cluster else of_policies(options)
    failing = SEVERITIES[: SEVERITIES.index(options.fail_on) + 1] if options.fail_on != "never" else ()
    report = Report(linted, failing)
    for name, path in options.report:
        save(path, write(name, report), "the report", "name another file after --report")
    return tell(options.format, report)


def of_policies(options: argparse.Namespace) -> Lint:
    paths = common.select(options.policies)
    with common.project(options) as project:
        return lint(project, paths, common.progress_line(options))


def of_workloads(options: argparse.Namespace) -> Lint:
    from ..compiler.tenants import lint_workloads

    if not options.workloads or not options.cluster or options.policies:
        raise refusal("GPU026", "workloads")
    paths = common.select(options.cluster)
    with common.project(options) as project:
        return lint_workloads(project, paths, options.workloads)
