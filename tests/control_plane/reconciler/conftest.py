"""Fixtures: one control plane with the rendered stack for all tests of the reconciler's program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.actors.operands import gpu_kubelets
from tests.control_plane.cluster import ControlPlane
from tests.control_plane.conftest import running
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import NEW_DRIVER, Stack, render
from tests.control_plane.reconciler.witness import Witness


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster as it is at first."""
    return render(tmp_path_factory.mktemp("rendered") / "old")


@pytest.fixture(scope="session")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster with a newer driver."""
    return render(tmp_path_factory.mktemp("rendered") / "new", NEW_DRIVER)


@pytest.fixture(scope="session")
def reconciled(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The control plane of these tests."""
    with ControlPlane(tmp_path_factory.mktemp("reconciled"), emulated=emulated) as plane:
        yield plane


@pytest.fixture
def stack(reconciled: ControlPlane, rendered: Path, tmp_path: Path) -> Iterator[Stack]:
    """The rendered stack, no node and no program; tidied up afterwards."""
    with running(gpu_kubelets(reconciled.admin)) as kubelets:
        made = Stack(reconciled, kubelets, tmp_path)
        reconciled.folder = tmp_path  # logs of programs
        made.apply(rendered)
        yield made
        made.tidy()


@pytest.fixture
def witness(stack: Stack) -> Iterator[Witness]:
    """Sees every change of every node, and whether a limit was broken at any moment."""
    made = Witness(stack.api)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def proxy(stack: Stack) -> Iterator[Proxy]:
    """Between a program and the API server."""
    made = Proxy(stack.api)
    made.start()
    yield made
    made.stop()
