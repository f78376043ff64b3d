"""gpustack lint: what the rules say about policies, or about tenants' manifests. Only reports are written."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..catalog.kinds import FOLDER
from ..compiler.lint import Lint, lint
from ..model import SEVERITIES
from ..policy.loading.brought import LIMITS, LIST
from ..text.source import LIMIT
from . import common
from .formats import FORMATS, Report, tell, write
from .refusals import refusal
from .saving import save
from .trees import links


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
