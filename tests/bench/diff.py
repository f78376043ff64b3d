"""diff of a fleet: one change that all clusters have in common, one of the engine's objects, and twenty different ones.

dist/ is committed, as in the repository of a user, and the new stacks are in the cache: a pull request has rendered
them already. Flux syncs the fleet, whose objects for a cluster are the most, and the clusters have three namespaces.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gpustack.review.impact.tiers import RED
from tests.bench import fleet
from tests.bench.measure import Cost, FailedError
from tests.bench.scenarios import SHAPES, Bench, Figure

BUDGET, PAGE = 64_000, 5_000_000
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def figures(bench: Bench) -> Iterator[Figure]:
    """The fleet with a label of its ServiceMonitors more, and with a change of each shape's own."""
    project = bench.project(bench.clusters, "shapes")
    specs = fleet.specs(bench.clusters, "shapes", shapes=SHAPES)
    base = {**fleet.LAYERS["base"], "gitops": engine("10m")}
    fleet.rewrite_layer(project, "base", base)
    bench.render(project, changed=bench.clusters)
    made = ["-c", "gc.auto=0", "commit", "-q", "-m", "x"]
    for words in (["init", "-q"], ["add", "-A"], made, ["repack", "-a", "-d", "-q"]):  # as a clone has it
        subprocess.run(["git", *words], cwd=project, env={**os.environ, **GIT}, check=True)
    exporter = base["dcgmExporter"]
    monitor = {**exporter["serviceMonitor"], "additionalLabels": {"example.com/team": "a"}}
    fleet.rewrite_layer(project, "base", base | {"dcgmExporter": {**exporter, "serviceMonitor": monitor}})
    diff(bench, project)
    what = f"diff of a change common to {bench.clusters:,} clusters"
    yield Figure(what, bench.repeat(lambda: diff(bench, project, start="1 change in ")), bench.target(2.0, 6.0))
    yield report(bench, project)
    fleet.rewrite_layer(project, "base", base | {"gitops": engine("5m")})
    diff(bench, project)
    what = f"diff of the engine's interval in {bench.clusters:,} clusters"
    yield Figure(what, bench.repeat(lambda: diff(bench, project, start="2 changes in ")), bench.target(2.0, 6.0))
    fleet.rewrite_layer(project, "base", base)
    for index, spec in enumerate(specs):
        fleet.rewrite(project, index, different(spec, index % SHAPES))
    diff(bench, project)
    effects = json.loads(output(bench, project, "json")[1])["impact"]
    every = {effect["rule"] for effect in effects if effect["tier"] <= RED}
    told = output(bench, project, "markdown")[1]
    if len(told.encode()) > BUDGET or not every or not all(f"**{rule} (" in told for rule in every):
        raise FailedError(f"{len(told.encode())} bytes of Markdown, and not all of {every} in it")
    what = f"diff of {SHAPES} changes in {bench.clusters:,} clusters, {len(told.encode()):,} bytes"
    yield Figure(what, bench.repeat(lambda: output(bench, project, "markdown")[0]))


def report(bench: Bench, project: Path) -> Figure:
    """The page about PROJECT with what changes in it."""
    cost, _ = bench.gpustack(project, "report", "--base", "HEAD", memory=True)
    size = (project / "report.html").stat().st_size
    if size > PAGE:
        raise FailedError(f"the report has {size} bytes")
    return Figure(f"report of it, {size:,} bytes", [cost], memory=cost, limit=500_000_000)


def engine(interval: str) -> fleet.Spec:
    """The section gitops of the fleet."""
    repository = {"url": "https://git.example.com/gpu/clusters.git"}
    return {"engine": "flux", "repository": repository, "flux": {"interval": interval}}


def different(spec: fleet.Spec, number: int) -> fleet.Spec:
    """SPEC with a change that nobody else has: another replica count, and a variable of two components."""
    first, *rest = spec["nodePools"]
    pools = [{**first, "sharing": {"timeSlicing": {"replicas": number + 12}}}, *rest]
    return fleet.changed(spec) | {"nodePools": pools, "gfd": {"env": [{"name": "LOG_LEVEL", "value": f"v{number}"}]}}


def diff(bench: Bench, project: Path, *, start: str = "") -> Cost:
    """Compare PROJECT with what is committed; what is printed must begin with START."""
    cost, text = output(bench, project, "text")
    if not text.startswith(start):
        raise FailedError(f"it was to begin with {start!r}:\n{text[:2000]}")
    return cost


def output(bench: Bench, project: Path, how: str) -> tuple[Cost, str]:
    """What diff costs, and what it prints."""
    return bench.gpustack(project, "diff", "--format", how, "--budget", str(BUDGET), good=(1,))
