"""Lint of a fleet: all rules over a thousand clusters of twenty shapes, cold and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.bench.measure import Cost, FailedError
from tests.bench.scenarios import SHAPES, Bench, Figure


def figures(bench: Bench) -> Iterator[Figure]:
    """The fleet with an empty cache, and the same again; beside the interpreter with the imports of a cold render."""
    projects = [bench.project(bench.clusters, "shapes") for _ in range(bench.runs)]
    parts = [bench.python("import cdk8s, pydantic, yaml, jsonschema_rs") for _ in range(bench.runs)]
    floor = sorted(cost.wall for cost in parts)[len(parts) // 2]
    beside = "the imports alone, with Node"
    what = f"lint of {bench.clusters:,} clusters of {SHAPES} shapes, empty cache"
    yield Figure(what, [lint(bench, project) for project in projects], 3.0, beside, floor)
    yield Figure("the same again", [lint(bench, project) for project in projects], None, beside, floor)


def lint(bench: Bench, project: Path) -> Cost:
    """Lint PROJECT and look whether it was all of it."""
    cost, output = bench.gpustack(project, "lint")
    if f"{bench.clusters} clusters: " not in output:
        raise FailedError(f"{bench.clusters} clusters were to be looked at:\n{output[-2000:]}")
    return cost
