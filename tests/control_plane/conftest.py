"""Fixtures: a control plane for all tests, one of their own for those that need it, simulated nodes, namespaces.

A test of a whole rollout reads like this::

    def test_rollout(new_control_plane: NewControlPlane, new_kubelets: NewKubelets) -> None:
        plane = new_control_plane()
        apply_cluster(plane.admin, DIST / "lab-a100")                      # manifests.py
        nodes = new_kubelets(plane)                                        # kubelet.py, with the operands of actors/
        nodes.add(*(Machine(f"gpu-{n}") for n in range(3)))                # machine.py
        account = plane.account("gpustack-reconciler", "gpu-operator")     # a kubeconfig with a ServiceAccount's token
        program = plane.python("reconciler", "-m", "gpustack.reconciler", kubeconfig=account)
        wait_for(lambda: ..., "all nodes have the new driver", 300)
        nodes.change(machine, driver_crashes=True)                         # faults, at any time
        program.kill()                                                     # or pause and resume, or stop

The control plane's own programs are in `plane.programs`, and `plane.run(name)` starts one again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.control_plane import cluster
from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.api import ApiError
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.kubelet import Kubelets

NewControlPlane = Callable[..., ControlPlane]
NewKubelets = Callable[..., Kubelets]


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
    with running(gpu_kubelets(control_plane.admin)) as started:
        yield started


@pytest.fixture
def new_kubelets(new_control_plane: NewControlPlane) -> Iterator[NewKubelets]:
    """Makes simulated nodes for control planes of `new_control_plane`: `new_kubelets(plane, Pace(driver=2))`."""
    with ExitStack() as stack:
        yield lambda plane, pace=None: stack.enter_context(running(gpu_kubelets(plane.admin, pace)))


@contextmanager
def running(kubelets: Kubelets) -> Iterator[Kubelets]:
    """KUBELETS, started; their nodes are removed at the end."""
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
