"""A small fleet, an object store with a bucket in it, and a Dask scheduler with two workers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.machine import FLEET, MOTO, OBJECTS, Machines, scheduling, started
from tests.project import Project

CLUSTERS = 14


@pytest.fixture(scope="session", autouse=True)
def _environments() -> None:
    for python in (FLEET, OBJECTS):
        if not python.exists():
            pytest.fail(f"{python} isn't there: `make test-machines` makes it", pytrace=False)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of clusters of which no two are equal."""
    project = Project(tmp_path_factory.mktemp("fleet"), Path("/nowhere"))
    for number in range(CLUSTERS):
        project.policy(f"c{number:02}", dcgmExporter={"enabled": True, "env": [{"name": "N", "value": str(number)}]})
    return project.folder


@pytest.fixture
def machines(tmp_path: Path, fleet: Path) -> Machines:
    """Makes machines that have the fleet."""
    return Machines(tmp_path, fleet)


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory, fleet: Path) -> dict[str, bytes]:
    """What the fleet renders to on a machine of its own."""
    machine = Machines(tmp_path_factory.mktemp("alone"), fleet)()
    ran = machine.run("render", "--jobs", "1")
    assert ran.code == 0, ran.err
    return machine.dist


@pytest.fixture
def store(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An empty object store, as what is set on machines that use it; it reads and writes."""
    program = started("moto", [OBJECTS, "-c", MOTO], tmp_path, lambda log: re.search(r"^port \d+$", log, re.MULTILINE))
    port = re.findall(r"^port (\d+)$", program.log.read_text(), re.MULTILINE)[0]
    yield {
        "GPUSTACK_CACHE": "s3://bucket/cache",
        "GPUSTACK_CACHE_WRITE": "1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
    }
    program.process.kill()
    program.process.wait()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler, as `--executor` takes it, which has no worker yet."""
    with scheduling(tmp_path) as address:
        yield address
