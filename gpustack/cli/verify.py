"""gpustack verify: clusters as they are, against what Git says. Looks, and changes nothing."""

from __future__ import annotations

import argparse
import datetime
import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ..compiler import fleet, sources
from ..compiler.judge import GroupedFinding, group
from ..model import SEVERITIES, Finding, InputError
from . import common
from .refusals import refusal

if TYPE_CHECKING:
    from ..api.expectations import Kind
    from ..cluster.expectations import Expected
    from ..live.state import State

Asked = tuple[str, "Expected", Callable[[Finding], Finding]]
"""A cluster's name, what it is to be, and what gives a finding its place in the policy."""


def service(text: str) -> str:
    """TEXT, a Service; https: stands before the name of one that speaks that."""
    if text and not re.fullmatch(r"[a-z0-9-]+/(https:)?[a-z0-9.-]+:[a-z0-9-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Service: write NAMESPACE/NAME:PORT")
    return text


def run(options: argparse.Namespace) -> int:
    from ..live.state import State
    from ..live.verify import unreached, verify

    asked = expectations(options, common.select(options.cluster))
    if options.trial and (options.sources or len(asked) > 1):
        raise refusal("GPU026", "one trial", option=f"--{options.trial}")
    by_source = {}
    for (name, expected, located), state in zip(asked, _states(options, asked), strict=True):
        told = [unreached(state)] if isinstance(state, InputError) else verify(expected, state)
        if options.trial and isinstance(state, State):
            told += tried(options, expected, state)
        by_source[name] = [located(each) if each.path else each for each in told]
    return tell(options, by_source, "verify")


def tried(options: argparse.Namespace, expected: Expected, state: State) -> list[Finding]:
    """What comes of the trials that OPTIONS ask for, by what there is (STATE)."""
    from ..live.verify import folded, texts
    from .live import connect, trials

    given = getattr(trials, options.trial)(expected, state)
    hits = connect.run(options, lambda cluster: trials.carried_out(cluster, given))
    return [*folded(hits, expected.namespace, texts())]


def _states(options: argparse.Namespace, asked: Sequence[Asked]) -> Sequence[State | InputError]:
    """What there is of the clusters; of a fleet's the context is its own name where nothing else is said."""
    from ..api.expectations import Kind
    from .live import connect
    from .live.look import looked_at

    names, given = [name for name, _, _ in asked], options.context
    own = {head: tail for head, _, tail in (each.partition("=") for each in given) if tail and head in names}
    plain = [each for each in given if each.partition("=")[0] not in names]
    if len(plain) > 1 or (len(names) > 1 and (plain or options.sources)):
        named = common.counted(len(names), "cluster")
        raise refusal("GPU026", "one of several", option=", ".join(plain) or "--from", named=named)
    if len(names) == 1:
        options.context = own.get(names[0]) or "".join(plain)
        every = [Kind("v1", "Pod")] if options.trial else []  # of all namespaces: whoever uses a GPU
        return [seen(options, asked[0][1], [*asked[0][1].kinds, *every])]
    work = functools.partial(looked_at, prometheus=options.prometheus)
    looks = [
        (own.get(name, name), functools.partial(work, expected=expected, kinds=expected.kinds))
        for name, expected, _ in asked
    ]
    return connect.at_once(options, looks)


def expectations(options: argparse.Namespace, paths: Sequence[Path]) -> list[Asked]:
    """What the clusters of the policies PATHS are to be."""
    from ..cluster.expectations import Expected
    from ..cluster.resolve import resolve
    from .live import connect

    connect.files_stand_in(options)  # before anything is rendered
    options.looked_at, options.rendered = time.time(), dict[str, str]()
    asked, same = list[Asked](), dict[str, Expected]()
    with common.project(options) as project:
        for source in fleet.compiled(project, paths):
            if source.key not in same:
                bodies = [yaml.load(file.text, yaml.CSafeLoader) for file in fleet.stack_of(project, source).files]
                same[source.key] = Expected.of(resolve(fleet.spec_of(project, source)), bodies)
            options.rendered[source.name] = fleet.digest_of(project, source)
            asked.append((source.name, same[source.key], functools.partial(sources.located, project, source)))
    return asked


def looked(
    options: argparse.Namespace, more: Callable[[str], Sequence[Kind]], *, alone: bool = False
) -> tuple[str, Expected, State, Callable[[Finding], Finding]]:
    """The cluster's name, what it is to be, what there is of it, of the kinds of MORE (by the stack's namespace) too or
    ALONE, and what gives a finding its place in the policy."""
    ((name, expected, located),) = expectations(options, [common.select_one(options.cluster)])
    kinds = [] if alone else expected.kinds
    return name, expected, seen(options, expected, [*dict.fromkeys([*kinds, *more(expected.namespace)])]), located


def tell(options: argparse.Namespace, by_source: Mapping[str, Sequence[Finding]], verb: str) -> int:
    """Print findings BY_SOURCE, of a fleet with a table; the exit code."""
    from ..compiler.lint import Lint
    from . import formats
    from .formats import Report

    grouped = group((name, each) for name, findings in by_source.items() for each in findings)
    grouped.sort(key=lambda item: SEVERITIES.index(item[0].severity))
    lint = Lint(tuple(by_source), tuple(GroupedFinding(each, tuple(names)) for each, names in grouped), False, 1)
    looked = common.moment(datetime.datetime.fromtimestamp(options.looked_at, datetime.UTC))
    code = formats.tell(options.format, Report(lint, ("error",), verb, looked, options.rendered))
    if len(by_source) > 1 and options.format == "text":
        width = max(map(len, by_source))
        print(f"{'':<{width}}  errors  warnings  notes")
        for name, findings in by_source.items():
            number = Counter(each.severity for each in findings)
            print(f"{name:<{width}}  {number['error']:>6}  {number['warning']:>8}  {number['note']:>5}")
    return code


def seen(options: argparse.Namespace, expected: Expected, kinds: Sequence[Kind]) -> State:
    """What there is of KINDS in the cluster, or of all in the files that stand for it."""
    from ..live.state import name_of, of_files
    from .live import connect, files, look

    if not options.sources:
        asked = getattr(options, "prometheus", "")
        return connect.run(options, lambda cluster: look.looked_at(cluster, expected, kinds, asked))
    paths = [path for source in options.sources for path in files.files(Path(source))]
    options.looked_at = min((path.stat().st_mtime for path in paths), default=options.looked_at)
    bodies = []
    for path in dict.fromkeys(paths):
        try:
            bodies += [*files.objects(path)]
        except InputError as error:
            if str(path) in options.sources:
                raise
            print(f"left out: {error.findings[0].what}", file=sys.stderr)
    state = of_files(bodies)
    state.logs = files.logs(options.sources, {name for each in state.of("Pod") for _, name in [name_of(each)]})
    if not state.objects:
        raise refusal("GPU936", "nothing", files=", ".join(options.sources[:3]), space=expected.namespace)
    return state
