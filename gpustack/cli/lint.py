"""gpustack lint: what the rules say about policies, or about tenants' manifests. Only reports are written."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..compiler.lint import Lint, lint
from ..model import SEVERITIES
from . import common
from .formats import FORMATS, Report, tell, write
from .refusals import refusal
from .saving import save
from .trees import links


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
        "--stdin",
        type=lambda text: Path(common.named(text)),
        metavar="FILE",
        help="take what comes on standard input for the content of this file, saved or not: for editors",
    )
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
    failing = SEVERITIES[: SEVERITIES.index(options.fail_on) + 1] if options.fail_on != "never" else ()
    files = [(name, path.absolute()) for name, path in options.report]
    with edited(options.stdin) if options.stdin else contextlib.nullcontext():
        linted = of_workloads(options) if options.workloads or options.cluster else of_policies(options)
        report = Report(linted, failing)
        for name, path in files:
            save(path, write(name, report), "the report", "name another file after --report")
        return tell(options.format, report)


@contextlib.contextmanager
def edited(file: Path) -> Iterator[None]:
    """A copy of the project in the current folder, with standard input in the place of FILE, as the current folder."""
    from ..catalog.kinds import FOLDER
    from ..policy.loading.brought import LIMITS, LIST
    from ..text.source import LIMIT

    name = os.path.relpath(file)
    if not name.startswith(f"{common.POLICIES}{os.sep}"):
        raise refusal("GPU026", "stdin", file=file, folder=common.POLICIES)
    text = sys.stdin.buffer.read(LIMIT + 1)
    links.refuse()
    here = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="gpustack-") as folder:
        there = Path(folder).resolve()
        for each in (common.POLICIES, FOLDER):
            if Path(each).is_dir():
                shutil.copytree(each, there / each, symlinks=True)
        if Path(LIST).is_file():
            shutil.copy2(LIST, there)
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).unlink(missing_ok=True)
        (there / name).write_bytes(text)
        if here in LIMITS:
            LIMITS[there] = LIMITS[here]
        with contextlib.chdir(there):
            yield


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
