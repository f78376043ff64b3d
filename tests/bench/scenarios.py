"""What is measured, and what stands beside it.

Every cold run has a folder of its own, and nothing is deleted before the end: on ext4, making files is up to thirty
times slower for some minutes after many were deleted, which would be taken for a property of the second run.

A baseline belongs to each group, measured in turns with it: the interpreter alone, the imports that a cold render can't
do without, or the same files written by plain Python. On another machine, or a busy one, the figures move and their
ratios stay.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import fleet, helm
from tests.bench.measure import Cost, FailedError, run

REPOSITORY = Path(__file__).parents[2]
SHAPES = 20
MEGABYTE = 1e6
MEMORY = Path("/dev/shm")  # noqa: S108 - folders with random names are made in it
"""Where Linux has files in memory."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: what was measured, its runs, the target in seconds (None: none), and what is beside it.

    `memory` is the run that memory was sampled in, `limit` its target in bytes.
    """

    what: str
    costs: Sequence[Cost]
    target: float | None = None
    beside: str = ""
    baseline: float = 0.0
    memory: Cost | None = None
    limit: float | None = None

    @property
    def wall(self) -> float:
        return statistics.median(cost.wall for cost in self.costs)

    @property
    def cpu(self) -> float:
        return statistics.median(cost.cpu for cost in self.costs)


@dataclass
class Bench:
    """The measurements: `root` is an empty folder, `runs` how often each is repeated, `clusters` a fleet's size.

    A figure gets no further run when it has had `seconds`: on a busy machine, one may have to do.
    """

    root: Path
    runs: int = 3
    clusters: int = 1000
    seconds: float = 25.0
    _number: Iterator[int] = field(default_factory=itertools.count)
    _floor: list[Cost] = field(default_factory=list)

    def groups(self) -> dict[str, Callable[[], Iterator[Figure]]]:
        """What --only may name."""
        from tests.bench import diff, lint, machines, mig, reconciler

        return {
            "one": self.one,
            "help": self.help,
            "shapes": self.shapes,
            "artifacts": self.artifacts,
            "distinct": self.distinct,
            "unshared": self.unshared,
            "update": self.update,
            "lint": functools.partial(lint.figures, self),
            "diff": functools.partial(diff.figures, self),
            "machines": functools.partial(machines.figures, self),
            "mig": functools.partial(mig.figures, self),
            "reconciler": functools.partial(reconciler.figures, self),
            "helm": self.helm,
        }

    def warm_up(self) -> None:
        """Once, unmeasured: Python writes its byte code, and jsii unpacks what it runs."""
        project = self.project(1, "distinct")
        self.render(project)

    def one(self) -> Iterator[Figure]:
        """One cluster: the folder of somebody who tries it, or the save-and-look of who edits a policy."""
        cold, parts, warm, python = [], [], [], []
        for _ in range(2 * self.runs + 1):
            parts.append(self.python("import cdk8s, pydantic, yaml, jsonschema_rs"))
            project = self.project(1, "distinct")
            cold.append(self.render(project, changed=1))
            python.append(self.python("pass"))
            warm.append(self.render(project, changed=0))
        yield Figure("1 cluster, empty cache", cold, 1.0, "the imports alone, with Node", _median(parts))
        yield Figure("1 cluster, nothing changed", warm, 0.3, "python -c pass", _median(python))

    def help(self) -> Iterator[Figure]:
        """How long the command line takes to say anything."""
        costs, python = [], []
        for _ in range(2 * self.runs + 1):
            python.append(self.python("pass"))
            costs.append(self.gpustack(self.root, "--help")[0])
        yield Figure("--help", costs, 0.1, "python -c pass", _median(python))

    def shapes(self) -> Iterator[Figure]:
        """A fleet cut from templates: all of it, none of it, one of it."""
        projects: list[Path] = []

        def cold() -> Cost:
            project = self.project(self.clusters, "shapes")
            projects.append(project)
            cost = self.render(project, changed=self.clusters, stacks=SHAPES)
            self._floor.append(write_plainly(project / "dist", self.folder()))
            return cost

        costs = self.repeat(cold)
        memory = self.render(self.project(self.clusters, "shapes"), changed=self.clusters, memory=True)
        what = f"{self.clusters:,} clusters of {SHAPES} shapes, empty cache"
        limit = (400 if self.clusters <= 1000 else 500) * MEGABYTE
        yield self.beside_floor(Figure(what, costs, self.target(6.0, 45.0), memory=memory, limit=limit))
        project = projects[0]
        looked = _median(self.repeat(lambda: look_plainly(project)))
        floor = "hashing policies and looking at files by plain Python"
        yield from self.unchanged(project, floor, looked)
        specs = iter(fleet.specs(self.runs, "shapes", shapes=SHAPES))
        numbers = itertools.count()

        def changed() -> Cost:
            fleet.rewrite(project, next(numbers), fleet.changed(next(specs)))
            return self.render(project, changed=1)

        target = self.target(1.5, 3.5)
        yield Figure(f"one of {self.clusters:,} changed", self.repeat(changed), target, floor, looked)
        self.drop(projects)

    def unchanged(self, project: Path, floor: str = "", looked: float = 0.0) -> Iterator[Figure]:
        """PROJECT, which is rendered, once more and checked, in turns; and checked where nobody knows what was left."""
        pairs = [
            (self.render(project, changed=0), self.gpustack(project, "check")[0])
            for _ in range(max(1, self.runs if self.clusters <= 1000 else self.runs // 2))
        ]
        again, checked = zip(*pairs, strict=True)
        yield Figure("the same again, nothing changed", again, self.target(2.5, 3.0), floor, looked)
        allowed = 1.2 * _median(again)
        yield Figure("check of it", checked, allowed, "render, nothing changed", _median(again))
        whole = self.gpustack(project, "check", "--no-cache")[0]
        yield Figure("check of it as of a fresh clone (--no-cache)", [whole], None, "render", _median(again))

    def artifacts(self) -> Iterator[Figure]:
        """The fleet cut from templates, in artifacts alone: their address stands in a layer."""
        project = self.project(self.clusters, "shapes")
        repository = {"url": "oci://registry.example.com/gpu/{cluster}", "dist": "oci"}
        gitops = {"engine": "flux", "repository": repository}
        fleet.rewrite_layer(project, "base", fleet.LAYERS["base"] | {"gitops": gitops})
        cost = self.render(project, changed=self.clusters, stacks=SHAPES, memory=True)
        what = f"{self.clusters:,} clusters of {SHAPES} shapes, into artifacts"
        yield Figure(what, [cost], self.target(None, 12.0), memory=cost, limit=500 * MEGABYTE)
        yield from self.unchanged(project)
        self.drop([project])

    def target(self, thousand: float | None, ten_thousand: float) -> float | None:
        """The seconds that a fleet of this size may take, which are said for two sizes."""
        return {1000: thousand, 10_000: ten_thousand}.get(self.clusters)

    def distinct(self) -> Iterator[Figure]:
        """A fleet in which people did what they do: no two clusters are equal, but their parts often are."""
        yield self.fleet(
            "distinct", f"{self.clusters:,} clusters, no two of one effective spec", self.target(25.0, 100.0)
        )

    def unshared(self) -> Iterator[Figure]:
        """The worst case: every cluster differs in something that reaches nearly all of its objects."""
        yield self.fleet("unshared", f"{self.clusters:,} clusters, a label of its own each", None, runs=1)

    def fleet(self, sort: str, what: str, target: float | None, runs: int | None = None) -> Figure:
        """A fleet of SORT with an empty cache, RUNS times where that isn't as often as all else."""
        projects: list[Path] = []

        def cold(*, memory: bool = False) -> Cost:
            projects.append(self.project(self.clusters, sort))
            return self.render(projects[-1], changed=self.clusters, stacks=self.clusters, memory=memory)

        costs, memory = self.repeat(cold, runs), cold(memory=True)
        if not self._floor:
            self._floor.append(write_plainly(projects[0] / "dist", self.folder()))
        self.drop(projects)
        return self.beside_floor(Figure(what, costs, target, memory=memory))

    def update(self) -> Iterator[Figure]:
        """A change that reaches every cluster. It deletes what it replaces, so what makes files comes before it."""
        project = self.project(self.clusters, "shapes")
        self.render(project, changed=self.clusters)
        base, values = fleet.LAYERS["base"], itertools.count()

        def labelled() -> Cost:
            daemonsets = base["daemonsets"] | {"labels": {"example.com/fleet": f"f{next(values)}"}}
            fleet.rewrite_layer(project, "base", base | {"daemonsets": daemonsets})
            return self.render(project, changed=self.clusters)

        yield Figure(f"a label for all {self.clusters:,}, of {SHAPES} shapes", self.repeat(labelled))

    def helm(self) -> Iterator[Figure]:
        """`helm template` of a chart with the same objects."""
        program = shutil.which("helm")
        if program is None:
            yield Figure("helm template: helm not on the PATH", [])
            return
        project = self.project(1, "distinct")
        self.render(project)
        chart = self.folder()
        objects = helm.write_chart(chart, project / "dist" / "cluster-0000")
        command = [program, "template", "stack", str(chart), "--namespace", "gpu-operator"]
        figure = Figure("", self.repeat(lambda: run(command, self.root, self.environment(project))[0]))
        many = f"(of {self.clusters:,} one by one: {self.clusters * figure.wall:.0f} s)"
        yield Figure(f"helm template of {objects} objects {many}", figure.costs)

    # --- the parts ---

    def repeat(self, measure: Callable[[], Cost], runs: int | None = None) -> list[Cost]:
        """The costs of each run of MEASURE: RUNS, or as many as all have."""
        costs: list[Cost] = []
        end = time.perf_counter() + self.seconds
        while len(costs) < (runs or self.runs) and (not costs or time.perf_counter() < end):
            costs.append(measure())
        return costs

    def folder(self) -> Path:
        """A folder that wasn't there."""
        path = self.root / f"{next(self._number):04}"
        path.mkdir()
        return path

    def project(self, clusters: int, sort: str) -> Path:
        """A project of CLUSTERS policies, without dist/ and cache."""
        path = self.folder()
        fleet.write(path, clusters, sort, shapes=SHAPES)
        return path

    def drop(self, projects: Sequence[Path]) -> None:
        """Delete PROJECTS where they lie in memory; on a disk, that would slow down what comes."""
        if self.root.is_relative_to(MEMORY):
            for project in projects:
                shutil.rmtree(project)

    def environment(self, project: Path) -> dict[str, str]:
        """The user's, with a cache of the project's own, and byte code as any installation has it."""
        own = {"GPUSTACK_CACHE": str(project.with_name(f"{project.name}-cache")), "PYTHONPATH": str(REPOSITORY)}
        return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | own

    def gpustack(
        self, project: Path, *arguments: str, memory: bool = False, good: Sequence[int] = (0,)
    ) -> tuple[Cost, str]:
        command = [sys.executable, "-m", "gpustack", *arguments]
        return run(command, project, self.environment(project), memory=memory, good=good)

    def python(self, code: str) -> Cost:
        """What CODE costs in a new interpreter."""
        node = "import os; from gpustack.compiler import node; node.configure(os.environ)\n" if "cdk8s" in code else ""
        return run([sys.executable, "-c", node + code], self.root, self.environment(self.root))[0]

    def render(
        self, project: Path, *, changed: int | None = None, stacks: int | None = None, memory: bool = False
    ) -> Cost:
        """Render PROJECT and look whether it did what is to be measured: CHANGED clusters, STACKS compiled."""
        cost, output = self.gpustack(project, "render", memory=memory)
        if changed is not None and f", {changed} changed" not in output:
            raise FailedError(f"{changed} clusters were to change:\n{output[-2000:]}")
        found = len(list(project.with_name(f"{project.name}-cache").glob("*/stack/*/*")))
        if stacks is not None and found != stacks:
            raise FailedError(f"{stacks} stacks were to be compiled, not {found}")
        return cost

    def beside_floor(self, figure: Figure) -> Figure:
        beside = "the same files by plain Python"
        return Figure(
            figure.what,
            figure.costs,
            figure.target,
            beside,
            _median(self._floor),
            memory=figure.memory,
            limit=figure.limit,
        )


def write_plainly(source: Path, target: Path) -> Cost:
    """Write the files of SOURCE below TARGET by the shortest program there is: the floor below any render."""
    files = [(path.relative_to(source), path.read_bytes()) for path in source.rglob("*") if path.is_file()]
    folders = sorted({path.parent for path, _ in files})
    before, start = os.times(), time.perf_counter()
    for folder in folders:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files:
        with open(f"{target}/{name}", "xb", buffering=0) as file:  # noqa: PTH123 - the floor
            file.write(content)
    after = os.times()
    return Cost(time.perf_counter() - start, after.user + after.system - before.user - before.system)


def look_plainly(project: Path) -> Cost:
    """Read and hash the policies of PROJECT and look at each file of its dist/: what no check can do without."""
    before, start = os.times(), time.perf_counter()
    for path in os.scandir(project / "policies"):
        if path.is_file():
            hashlib.sha256(Path(path).read_bytes()).hexdigest()
    folders = [str(project / "dist")]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
    after = os.times()
    return Cost(time.perf_counter() - start, after.user + after.system - before.user - before.system)


def _median(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.wall for cost in costs)
