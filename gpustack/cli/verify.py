"""gpustack verify: a cluster as it is, against what Git says. Looks, and changes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Finding, InputError
from . import common

if TYPE_CHECKING:
    from ..live import Expected, State
    from ..live.state import Kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    connect.add_look(parser)
    parser.add_argument("--format", choices=["text", "json", "junit"], default="text", help="how to print the result")


def run(options: argparse.Namespace) -> int:
    from ..live import verify

    name, expected, state, located = looked(options, ())
    return tell(options, name, [located(each) for each in verify(expected, state)], "verify")


def looked(
    options: argparse.Namespace, more: Sequence[Kind], *, alone: bool = False
) -> tuple[str, Expected, State, Callable[[Finding], Finding]]:
    """The cluster's name, what it is to be, what there is of it, of the kinds MORE as well (or ALONE), and what gives a
    finding its place in the policy."""
    import yaml

    from ..cluster.resolve import resolve
    from ..compiler import fleet, sources
    from ..live import Expected
    from ..live.state import wanted
    from .live import connect

    connect.files_stand_in(options)  # before anything is rendered
    with common.project(options) as project:
        (source,) = fleet.compiled(project, [common.select_one(options.cluster)])
        bodies = [yaml.load(file.text, yaml.CSafeLoader) for file in fleet.stack_of(project, source).files]
        expected = Expected(resolve(fleet.spec_of(project, source)), bodies)
    kinds = [] if alone else wanted(expected.rendered, expected.namespace)
    state = seen(options, expected, [*dict.fromkeys([*kinds, *more])])
    return source.name, expected, state, lambda each: sources.located(project, source, each) if each.path else each


def tell(options: argparse.Namespace, name: str, findings: Sequence[Finding], verb: str) -> int:
    """Print FINDINGS about the cluster NAME; the exit code."""
    from ..compiler.judge import GroupedFinding
    from ..compiler.lint import Lint
    from . import formats
    from .formats import Report

    lint = Lint((name,), tuple(GroupedFinding(each, (name,)) for each in findings), False, 1)
    return formats.tell(options.format, Report(lint, ("error",), verb))


def seen(options: argparse.Namespace, expected: Expected, kinds: Sequence[Kind]) -> State:
    """What there is of KINDS in the cluster, or of all in the files that stand for it."""
    from ..live import look, of_files
    from .live import connect, files

    if not options.sources:
        return connect.run(options, lambda cluster: look(cluster, kinds))
    paths = [path for source in options.sources for path in files.files(Path(source))]
    state = of_files(body for path in dict.fromkeys(paths) for body in files.objects(path))
    if not state.objects:
        what = f"{', '.join(options.sources[:3])} holds no object of a cluster"
        remedy = f"kubectl get nodes -o yaml, and kubectl -n {expected.namespace} get pods,daemonsets -o yaml"
        raise InputError.of("GPU936", what, remedy=remedy)
    return state
