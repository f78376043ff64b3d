"""Compiling on Dask workers beside compiling alone: `make bench ARGS='--only machines'`.

Both have an empty cache and a fleet of which no two clusters are equal. The workers were started before, and have
compiled one stack, as workers that stay have; their processor time is not in the figure of who asks.

What compiling takes is the time of such a render less that of one which reads as much and writes as much and finds all
compiled: the same policies, with a line of comment more, beside the cache that the first has filled.

Two processors that are busy may each be slower than one alone. So two renders that know nothing of each other, each of
half the fleet, stand beside: no sharing out of work can be faster than they are.
"""

from __future__ import annotations

import functools
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Cost, FailedError
from tests.machines.machine import FLEET, dask
from tests.project import ROOT

if TYPE_CHECKING:
    from tests.bench.scenarios import Bench, Figure

Pair = tuple[Cost, Cost]
"""A render that compiles, and one that finds all compiled."""
SHARE = 0.6
"""The time that two workers may take of that of one process."""


def figures(bench: Bench) -> Iterator[Figure]:
    """One process, then two workers, in turns."""
    from tests.bench.scenarios import Figure

    count = max(40, bench.clusters // 5)
    if not FLEET.exists():
        yield Figure("Dask: .tools/fleet-venv isn't there (tools/venv.sh fleet)", [])
        return
    alone, halves, shared = list[Pair](), list[Cost](), list[Pair]()
    for _ in range(bench.runs):
        alone.append(rendered(bench, count, "--jobs", "1"))
        halves.append(side_by_side(bench, count))
        with tempfile.TemporaryDirectory(dir=bench.root) as name:
            folder = Path(name)
            cache = {"GPUSTACK_CACHE": f"file://{folder}/shared", "GPUSTACK_CACHE_WRITE": "1"}
            with dask(folder, 2) as scheduler:
                rendered(bench, 2, "--executor", scheduler, **cache)
                shared.append(rendered(bench, count, "--executor", scheduler, **cache))
    one = statistics.median(whole.wall for whole, _ in alone)
    parts = statistics.median(_less(*pair).wall for pair in alone)
    yield Figure(f"{count} clusters, no two equal, in one process", [whole for whole, _ in alone])
    yield Figure("half of it each, in two that share nothing", halves, None, "one process", one)
    yield Figure("the same by two Dask workers", [whole for whole, _ in shared], None, "one process", one)
    yield Figure("compiling alone, in one process", [_less(*pair) for pair in alone])
    both = [_less(*pair) for pair in shared]
    yield Figure(f"compiling alone, two workers (at most {SHARE} of it)", both, SHARE * parts, "one process", parts)


def rendered(bench: Bench, count: int, *words: str, **more: str) -> Pair:
    """Render a new project of COUNT clusters with an empty cache of its own, and then one that differs by a comment."""
    project, again = bench.project(count, "distinct"), bench.project(count, "distinct")
    for policy in (again / "policies").glob("*.yaml"):
        policy.write_text(f"{policy.read_text(encoding='utf-8')}\n# again\n", encoding="utf-8")
    return tuple(_rendered(bench, each, _cache(project), count, words, more) for each in (project, again))  # type: ignore[return-value]  # of two


def side_by_side(bench: Bench, count: int) -> Cost:
    """Render the halves of a fleet of COUNT clusters at the same time, each alone."""
    projects = [bench.project(count // 2, "distinct") for _ in range(2)]
    with ThreadPoolExecutor(2) as both:
        of_half = functools.partial(_rendered, bench, count=count // 2, words=["--jobs", "1"], more={})
        costs = list(both.map(lambda project: of_half(project, _cache(project)), projects))
    return Cost(max(cost.wall for cost in costs), max(cost.cpu for cost in costs))  # who ends last saw the other end


def _cache(project: Path) -> Path:
    """Beside it: one in the work tree is not used."""
    return project.with_name(f"{project.name}-cache")


def _rendered(bench: Bench, project: Path, cache: Path, count: int, words: Sequence[str], more: dict[str, str]) -> Cost:
    own = {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT), **more}
    environment = {key: value for key, value in bench.environment(project).items() if key != "GPUSTACK_CACHE"} | own
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [str(FLEET), "-m", "gpustack", "render", *words]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if f", {count} changed" not in done.stdout:
        raise FailedError(done.stdout[-2000:] + done.stderr[-2000:])
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _less(whole: Cost, rest: Cost) -> Cost:
    return Cost(whole.wall - rest.wall, whole.cpu - rest.cpu)
