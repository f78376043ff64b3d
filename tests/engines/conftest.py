"""Fixtures: a synced cluster with nodes, an engine, and a repository that a user has made.

Whole Argo CD and whole Flux run as processes on the loopback interface (engine.py), against the API server of
tests/control_plane. A test of a cluster's life takes `life`: that cluster with that engine, once it was synced; tests
of one cluster with one engine share it, and leave it synced. Without `--all` it is the clusters and the events that CI
has time for (`@pytest.mark.ci`); `--record` writes what was found to record.yaml (record.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--all`: everything, which takes an hour or more."""
    parser.addoption("--all", action="store_true", help="every cluster and every event with both engines, recorded")
    parser.addoption("--record", action="store_true", help="record what is tried, also if it isn't all")
    parser.addoption("--emulated-version", choices=planes.EMULATED, default="1.34", help="release of Kubernetes")


def pytest_configure(config: pytest.Config) -> None:
    """Markers of these tests."""
    config.addinivalue_line("markers", "ci: what .ci/run has time for")
    config.addinivalue_line(
        "markers", "of(*clusters): the clusters that an event can happen to; all where it says none"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of a cluster's life, for each cluster and engine."""
    if "life" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("of")
    wanted = marker.args if marker else [*IN_CI, *(name for name in clusters() if name not in IN_CI)]
    if not metafunc.config.getoption("--all"):
        wanted = [name for name in wanted if name in IN_CI]
    cases = [(engine, name) for name in wanted for engine in ENGINES]
    metafunc.parametrize("life", cases, indirect=True, scope="session", ids=["-".join(case) for case in cases])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --all, what is not for CI is deselected."""
    if not config.getoption("--all"):
        kept = [item for item in items if item.get_closest_marker("ci")]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


REPORTS: list[pytest.TestReport] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what becomes of each case of an engine."""
    if any(f"[{engine}" in report.nodeid for engine in ENGINES):
        REPORTS.append(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the record, where it was asked for."""
    if REPORTS and (session.config.getoption("--all") or session.config.getoption("--record")):
        record.write(REPORTS, str(session.config.getoption("--emulated-version")))


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
