"""What was tried with which engine, kept in the repository: record.yaml, which docs/gitops.md shows as a table.

Each case (an event, an engine, a cluster) says of what it holds: the digests of what that cluster is rendered to, of
the code of gpustack/gitops/ and of gpustack/reconciler/ with gpustack/api/, and the versions of the programs. So it may
be brought up to date in parts: what was tried again takes the place of what stood there, all else stays, and `stale`
says which cases are about something that is no longer here.

Comments, docstrings, imports and the names of files are no part of the code's digests: nothing of that runs.
"""

from __future__ import annotations

import ast
import datetime
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gpustack.gitops.engines import names
from tests.control_plane.cluster import ROOT

RECORD = Path(__file__).with_name("record.yaml")
CODE = {"gitops": ("gitops",), "reconciler": ("reconciler", "api")}
"""The rooms behind each digest: the reconciler runs what it shares with the compiler, too."""
HEAD = "# What tests/engines has tried: `make test-engines` with ARGS=--all or --record writes this, and nobody else.\n"
Outcome = dict[str, str]
"""`outcome` and `date`, and of what it holds: `dist`, `gitops`, `reconciler`, `engine`, `kubernetes`."""


class Case(NamedTuple):
    """What is tried: the test's name in words, the engine's, and the cluster's, or `own` where the test makes its own
    of `clusters`.
    """

    event: str
    engine: str
    cluster: str
    clusters: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.event, self.engine, self.cluster


def case_of(name: str, clusters: Iterable[str]) -> Case | None:
    """The case of a test called NAME, `test_event[engine-cluster]`, about CLUSTERS; None for one of no engine."""
    found = re.fullmatch(rf"test_(\w+)\[({'|'.join(names())})(?:-(.+))?\]", name)
    if not found:
        return None
    event, engine, cluster = found.groups()
    return Case(event.replace("_", " "), engine, cluster or "own", (cluster,) if cluster else tuple(clusters))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@cache
def rendered(cluster: str) -> str:
    """Names what CLUSTER is rendered to."""
    folder = ROOT / "dist" / cluster
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return _digest(f"{path.relative_to(folder).as_posix()} {path.read_text('utf-8')}" for path in paths)


@cache
def code(*rooms: str) -> str:
    """Names what runs of ROOMS of gpustack: the lines of their modules, and their data."""
    below = [path for room in rooms for path in (ROOT / "gpustack" / room).rglob("*")]
    paths = [path for path in below if path.is_file() and path.suffix != ".pyc"]
    texts = [(path.suffix, path.read_text("utf-8")) for path in paths]
    return _digest(sorted("\n".join(lines(text)) if kind == ".py" else text for kind, text in texts))


def lines(text: str) -> Iterator[str]:
    """The lines of a module that run."""
    idle: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        says = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if says or isinstance(node, ast.Import | ast.ImportFrom):
            idle.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    for number, line in enumerate(text.splitlines(), 1):
        if number not in idle and line.strip() and not line.lstrip().startswith("#"):
            yield line


@cache
def versions() -> dict[str, str]:
    """The versions of the engines, as their modules are pinned."""
    go = ROOT / "tests/engines/go"
    pins = {"argocd": "argo-cd/v3", "flux": "kustomize-controller"}
    found = {
        name: re.search(rf"/{pin} v([0-9.]+)", (go / name / "go.mod").read_text("utf-8")) for name, pin in pins.items()
    }
    return {name: match[1] for name, match in found.items() if match}


def now(case: Case) -> Outcome:
    """Of what CASE would hold if it were tried now; the reconciler is part of it where a cluster has one."""
    runs = any((ROOT / "dist" / name / "reconciler").is_dir() for name in case.clusters)
    digests = {name: code(*rooms) for name, rooms in CODE.items() if runs or name != "reconciler"}
    return {"dist": _digest(rendered(name) for name in case.clusters), **digests, "engine": versions()[case.engine]}


def read() -> dict[tuple[str, str, str], Outcome]:
    """The record: what became of each case, by its key."""
    said = (yaml.safe_load(RECORD.read_text("utf-8")) or {}) if RECORD.is_file() else {}
    return {
        (event, engine, cluster): {key: str(value) for key, value in outcome.items()}
        for event, engines in said.items()
        for engine, clusters in engines.items()
        for cluster, outcome in clusters.items()
    }


def stale(cases: Iterable[Case]) -> dict[tuple[str, str, str], str]:
    """Which of CASES the record doesn't tell of as things are now, and why."""
    known = read()
    found = ((case.key, why(case, known.get(case.key))) for case in cases)
    return {key: word for key, word in found if word}


def why(case: Case, told: Mapping[str, str] | None) -> str:
    """What the record lacks of CASE, of which TOLD is recorded; "" where it lacks nothing."""
    if told is None:
        return "was never tried"
    if told["outcome"] != "passed":
        return told["outcome"]
    other = [name for name, value in now(case).items() if told.get(name) != value]
    return f"is of another {', '.join(other)}" if other else ""


def write(outcomes: Mapping[Case, str], kubernetes: str) -> None:
    """Keep OUTCOMES, which are of KUBERNETES; what stands there of other cases stays."""
    record = read()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    for case, outcome in outcomes.items():
        record[case.key] = {"outcome": outcome, "date": date, **now(case), "kubernetes": kubernetes}
    tree: dict[str, dict[str, dict[str, Outcome]]] = {}
    for event, engine, cluster in sorted(record):
        tree.setdefault(event, {}).setdefault(engine, {})[cluster] = record[event, engine, cluster]
    text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=1000)
    RECORD.write_text(HEAD + text, encoding="utf-8")


def outcomes(reports: Iterable[tuple[Case, pytest.TestReport]]) -> dict[Case, str]:
    """What became of each case, by its REPORTS: it passed where nothing of it failed."""
    found: dict[Case, str] = {}
    for case, report in reports:
        if report.outcome != "passed" or (report.when == "call" and case not in found):
            found[case] = report.outcome
    return found
