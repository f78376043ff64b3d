"""Fixtures: a control plane for all tests, one of their own for those that need it, simulated nodes, namespaces.

A test of a whole rollout reads like this::

    def test_rollout(new_control_plane: NewControlPlane) -> None:
        plane = new_control_plane()
        kubelets = plane.nodes(*(Machine(f"gpu-{n}") for n in range(3)))
        apply_cluster(plane.admin, "lab-a100")
        program = plane.python("reconciler", "-m", "...", kubeconfig=plane.account("name", "gpu-operator"))
        wait_for(lambda: ..., "all drivers are new")
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack

import pytest

from tests.control_plane import cluster
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.api import ApiError
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.kubelet import Kubelets

NewControlPlane = Callable[..., ControlPlane]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--emulated-version 1.34`: the control plane behaves as that release."""
    what = f"release of Kubernetes that the control plane behaves as: {', '.join(cluster.EMULATED)}"
    parser.addoption("--emulated-version", choices=cluster.EMULATED, default=cluster.RELEASE, help=what)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the end of each program's log."""
    report = yield
    if report.failed:
        for plane in cluster.RUNNING:
            report.sections += [(f"{one.name} ({plane.emulated})", one.tail(15)) for one in plane.programs.values()]
    return report


@pytest.fixture(scope="session")
def emulated(request: pytest.FixtureRequest) -> str:
    """The release that was asked for."""
    return str(request.config.getoption("--emulated-version"))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The control plane that tests share: they tidy up nodes and namespaces, and leave what hurts nobody."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), emulated=emulated) as plane:
        yield plane


@pytest.fixture
def new_control_plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[NewControlPlane]:
    """Makes control planes that are the test's own: `new_control_plane(emulated="1.34", controllers=False)`."""
    with ExitStack() as stack:

        def make(**options: object) -> ControlPlane:
            folder = tmp_path_factory.mktemp("control-plane")
            given = {"emulated": emulated, **options}
            return stack.enter_context(ControlPlane(folder, **given))  # type: ignore[arg-type]  # ControlPlane's options

        yield make


@pytest.fixture
def kubelets(control_plane: ControlPlane) -> Iterator[Kubelets]:
    """Simulated nodes on the shared control plane; gone after the test, which raises what went wrong in them."""
    yield from running(gpu_kubelets(control_plane.admin))


def running(kubelets: Kubelets) -> Iterator[Kubelets]:
    """KUBELETS, started; stopped at the end."""
    kubelets.start()
    try:
        yield kubelets
    finally:
        kubelets.remove(*list(kubelets.machines.values()))
        kubelets.stop()
    if kubelets.errors:
        raise kubelets.errors[0]


NUMBERS = itertools.count(1)


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what is in it goes with it."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    made = control_plane.namespace(f"{name}-{next(NUMBERS)}")
    yield made
    try:
        control_plane.admin.delete("Namespace", made)
    except ApiError as error:
        if error.status != 404:
            raise
