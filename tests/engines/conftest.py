"""Fixtures: a synced cluster with nodes, an engine, and a repository that a user has made.

Whole Argo CD and whole Flux run as processes on the loopback interface (engine.py), against the API server of
tests/control_plane. A test of a cluster's life takes `life`: that cluster with that engine, once it was synced; tests
of one cluster with one engine share it, and leave it synced. Without `--all` it is the clusters and the events that CI
has time for (`@pytest.mark.ci`); `--record` writes what was found to record.yaml (record.py), and `--all --stale` tries
what the record doesn't tell of as things are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.control_plane import cluster as planes
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.conftest import pytest_runtest_makereport, running
from tests.control_plane.manifests import clusters
from tests.engines import record
from tests.engines.argocd import ArgoCd
from tests.engines.engine import Engine
from tests.engines.fleet import Fleet
from tests.engines.flux import Flux
from tests.engines.git_server import GitServer
from tests.engines.world import World

__all__ = ["pytest_runtest_makereport"]

ENGINES: dict[str, type[Engine]] = {"argocd": ArgoCd, "flux": Flux}
IN_CI = ("lab-a100", "train-dgx")
NewWorld = Callable[..., World]


CASES = pytest.StashKey[dict[str, record.Case]]()
"""Every case of an engine, also of those that are not selected, by the test's nodeid."""
REPORTS: list[pytest.TestReport] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all`: everything, which takes an hour or more."""
    parser.addoption("--all", action="store_true", help="every cluster and every event with both engines, recorded")
    parser.addoption("--record", action="store_true", help="record what is tried, also if it isn't all")
    parser.addoption(
        "--stale", action="store_true", help="with --all: only what the record doesn't tell of as it is now"
    )
    parser.addoption("--emulated-version", choices=planes.EMULATED, default="1.34", help="release of Kubernetes")


def pytest_configure(config: pytest.Config) -> None:
    """Markers of these tests."""
    config.addinivalue_line("markers", "ci: what .ci/run has time for")
    words = "the clusters that an event can happen to, or of which a test makes its own; all where it says none"
    config.addinivalue_line("markers", f"of(*clusters): {words}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of a cluster's life, for each cluster and engine."""
    if "life" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("of")
    wanted = marker.args if marker else [*IN_CI, *(name for name in clusters() if name not in IN_CI)]
    cases = [(engine, name) for name in wanted for engine in ENGINES]
    metafunc.parametrize("life", cases, indirect=True, scope="session", ids=["-".join(case) for case in cases])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --all, what is not for CI is deselected; with --stale besides, what the record tells of."""
    found = {item.nodeid: record.case_of(item.name, clusters_of(item)) for item in items}
    cases = config.stash[CASES] = {nodeid: case for nodeid, case in found.items() if case}
    for case in cases.values():
        record.now(case)  # what is here as the run begins; somebody may go on editing meanwhile
    kept = items[:]
    if not config.getoption("--all"):
        kept = [item for item in items if item.get_closest_marker("ci") and set(clusters_of(item)) <= {*IN_CI}]
    if config.getoption("--stale"):
        old = record.stale(cases.values())
        kept = [item for item in kept if item.nodeid not in cases or cases[item.nodeid].key in old]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def clusters_of(item: pytest.Item) -> tuple[str, ...]:
    """The clusters that a test is about."""
    if isinstance(item, pytest.Function) and "life" in item.fixturenames:
        _, cluster = cast(tuple[str, str], item.callspec.params["life"])
        return (cluster,)
    marker = item.get_closest_marker("of")
    return marker.args if marker else ()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what becomes of each test."""
    REPORTS.append(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the record, where it was asked for."""
    cases = session.config.stash.get(CASES, {})
    told = [(cases[report.nodeid], report) for report in REPORTS if report.nodeid in cases]
    if told and (session.config.getoption("--all") or session.config.getoption("--record")):
        record.write(record.outcomes(told), str(session.config.getoption("--emulated-version")))


@contextmanager
def made(engine: str, folder: Path, release: str, certificate: Path | None = None) -> Iterator[World]:
    """A cluster of Kubernetes RELEASE with ENGINE in it, and an empty repository. CERTIFICATE is trusted."""
    with ExitStack() as stack:
        (folder / "git").mkdir(parents=True)
        server = stack.enter_context(GitServer(folder / "git"))
        fleet = Fleet(folder / "fleet", server.create("fleet"))
        plane = stack.enter_context(ControlPlane(folder / "plane", emulated=release))
        kubelets = stack.enter_context(running(gpu_kubelets(plane.admin)))
        started = stack.enter_context(ENGINES[engine](plane, folder / engine, certificate=certificate))
        world = World(plane, kubelets, started, fleet, server)
        stack.callback(world.stop)
        yield world


@pytest.fixture(scope="session")
def release(request: pytest.FixtureRequest) -> str:
    """The release of Kubernetes that was asked for."""
    return str(request.config.getoption("--emulated-version"))


@pytest.fixture
def new_world(tmp_path: Path, release: str) -> Iterator[NewWorld]:
    """Makes worlds of the test's own: `new_world("argocd")`."""
    with ExitStack() as stack:
        yield lambda engine, **more: stack.enter_context(made(engine, tmp_path / engine, release, **more))


@pytest.fixture(scope="session")
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, release: str) -> Iterator[World]:
    """A cluster that was synced as a user has it done, from `gpustack init` to `bootstrap | kubectl apply`."""
    engine, cluster = request.param
    with made(engine, tmp_path_factory.mktemp(f"{cluster}-{engine}"), release) as world:
        world.cluster = cluster
        world.begin()
        yield world
