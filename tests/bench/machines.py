"""Compiling on Dask workers beside compiling alone: `make bench ARGS='--only machines'`.

Both have an empty cache and a fleet of which no two clusters are equal. The workers were started before, and have
compiled one stack, as workers that stay have; their processor time is not in the figure of who asks.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Cost, FailedError
from tests.machines.machine import FLEET, dask
from tests.project import ROOT

if TYPE_CHECKING:
    from tests.bench.scenarios import Bench, Figure

SHARE = 0.6
"""The time that two workers may take of that of one process."""


def figures(bench: Bench) -> Iterator[Figure]:
    """One process, then two workers, in turns."""
    from tests.bench.scenarios import Figure

    count = max(40, bench.clusters // 5)
    if not FLEET.exists():
        yield Figure("Dask: .tools/fleet-venv isn't there (tools/venv.sh fleet)", [])
        return
    alone, shared = list[Cost](), list[Cost]()
    for _ in range(bench.runs):
        alone.append(rendered(bench, count, "--jobs", "1"))
        with tempfile.TemporaryDirectory(dir=bench.root) as name:
            folder = Path(name)
            cache = {"GPUSTACK_CACHE": f"file://{folder}/shared", "GPUSTACK_CACHE_WRITE": "1"}
            with dask(folder, 2) as scheduler:
                rendered(bench, 2, "--executor", scheduler, **cache)
                shared.append(rendered(bench, count, "--executor", scheduler, **cache))
    one = statistics.median(cost.wall for cost in alone)
    yield Figure(f"{count} clusters, no two equal, in one process", alone)
    yield Figure(f"the same by two Dask workers (at most {SHARE} of it)", shared, SHARE * one, "one process", one)


def rendered(bench: Bench, count: int, *words: str, **more: str) -> Cost:
    """Render a new project of COUNT clusters with an empty cache of its own."""
    project = bench.project(count, "distinct")
    own = {"XDG_CACHE_HOME": str(project.with_name(f"{project.name}-cache")), "PYTHONPATH": str(ROOT), **more}
    environment = {key: value for key, value in bench.environment(project).items() if key != "GPUSTACK_CACHE"} | own
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [str(FLEET), "-m", "gpustack", "render", *words]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if f", {count} changed" not in done.stdout:
        raise FailedError(done.stdout[-2000:] + done.stderr[-2000:])
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
