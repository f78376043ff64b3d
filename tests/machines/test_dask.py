"""Stacks compiled by the workers of a Dask scheduler: the same bytes, or a clear end and nothing written."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.machines.machine import FLEET, Machine, Machines, code_in, free_port, working
from tests.project import ROOT, TODAY, Project

NO_NODE = {"JSII_NODE": "/no/such/node"}


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, str]:
    """A folder that all machines mount."""
    return {"GPUSTACK_CACHE": f"file://{tmp_path}/shared", "GPUSTACK_CACHE_WRITE": "1"}


def test_others_compile(
    machines: Machines, alone: dict[str, bytes], shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """A machine without Node renders the bytes of one that does everything itself, and compiles nothing a second time;
    nothing of the clone is where the workers are.
    """
    asking = machines(**shared, **NO_NODE)
    code = (
        "import sys; from gpustack.compiler import fleet; fleet.compile_stack = None\nfrom gpustack.cli import main\n"
    )
    with working(tmp_path, scheduler):
        words = ["render", "--jobs", "1", "--today", TODAY, "--executor", scheduler]
        ran = code_in(asking, f"{code}sys.exit(main({words}))")
    assert (ran.code, asking.dist) == (0, alone), ran.err


def test_an_object_store_carries_the_results(
    machines: Machines, alone: dict[str, bytes], store: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """What the workers render comes back through S3, and no other way: a machine without Node gets nothing of workers
    that can't reach it.
    """
    asking = machines(**store, **NO_NODE)
    lost = {**store, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}
    with working(tmp_path, scheduler, 1, env=lost):
        assert asking.run("render", "--executor", scheduler).code == 5
    assert asking.dist == {}
    with working(tmp_path, scheduler, env=store):
        ran = asking.run("render", "--executor", scheduler)
    assert (ran.code, asking.dist) == (0, alone), ran.err


def begun(machine: Machine, scheduler: str) -> subprocess.Popen[str]:
    """A render that has come as far as to have some stacks compiled."""
    program = subprocess.Popen(
        [FLEET, "-m", "gpustack", "render", "--today", TODAY, "--executor", scheduler],
        cwd=machine.folder,
        env=machine.environment(NO_NODE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    shared = Path(machine.env["GPUSTACK_CACHE"].removeprefix("file://"))
    until = time.monotonic() + 60
    while not [*shared.glob("*/stack/*/*")]:
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return program


def test_a_worker_that_is_killed(
    machines: Machines, alone: dict[str, bytes], shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """Its work is done by the other; the bytes are the same."""
    asking = machines(**shared)
    with working(tmp_path, scheduler) as workers:
        program = begun(asking, scheduler)
        workers[0].process.send_signal(signal.SIGKILL)
        _, err = program.communicate(timeout=120)
        assert (program.returncode, asking.dist) == (0, alone), err
        assert workers[1].running


def test_a_scheduler_that_goes_away(
    machines: Machines, alone: dict[str, bytes], shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """The render ends, says so, and has written nothing; the next one, without, goes on from what is in the cache."""
    asking = machines(**shared)
    port = scheduler.rpartition(":")[2]
    with working(tmp_path, scheduler):
        program = begun(asking, scheduler)
        subprocess.run(["/usr/bin/pkill", "-KILL", "-f", f"dask_scheduler.*--port {port}"], check=True)
        _, err = program.communicate(timeout=120)
    assert (program.returncode, asking.dist) == (5, {}), err
    assert f"GPU982: {scheduler} did not compile the stacks" in err
    assert "Traceback" not in err
    assert asking.run("render").code == 0
    assert asking.dist == alone


IMPATIENT = "import sys; from gpustack.compiler import distant; distant.ALONE = 2.0\nfrom gpustack.cli import main\n"


def test_no_worker_comes(
    machines: Machines, alone: dict[str, bytes], shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """A scheduler that never gets a worker is a clear end: Dask would wait for ever. One that comes late is used."""
    asking = machines(**shared)
    ran = code_in(asking, f"{IMPATIENT}sys.exit(main(['render', '--executor', '{scheduler}']))")
    assert (ran.code, asking.dist) == (5, {}), ran.err
    assert f"GPU982: {scheduler} did not compile the stacks: TimeoutError: no worker in 2 s" in ran.err
    words = [str(FLEET), "-m", "gpustack", "render", "--today", TODAY, "--executor", scheduler]
    program = subprocess.Popen(words, cwd=asking.folder, env=asking.environment(NO_NODE), stderr=subprocess.PIPE)
    time.sleep(3)
    with working(tmp_path, scheduler, 1):
        _, err = program.communicate(timeout=120)
    assert (program.returncode, asking.dist) == (0, alone), err


def test_nobody_there(machines: Machines, shared: dict[str, str]) -> None:
    """No scheduler at that address: a clear end."""
    asking, nowhere = machines(**shared), f"dask://127.0.0.1:{free_port()}"
    code = "import sys; from gpustack.compiler import distant; distant.WAIT = '1s'\nfrom gpustack.cli import main\n"
    ran = code_in(asking, f"{code}sys.exit(main(['render', '--executor', '{nowhere}']))")
    assert (ran.code, asking.dist) == (5, {})
    assert f"GPU982: {nowhere} did not compile" in ran.err
    assert "Traceback" not in ran.err


def test_what_is_in_the_shared_cache_is_asked_of_nobody(
    machines: Machines, alone: dict[str, bytes], shared: dict[str, str]
) -> None:
    """Stacks that another machine has compiled are fetched: no scheduler is asked, and needs to be there."""
    assert machines(**shared).run("render").code == 0
    fresh, nowhere = machines(**shared, **NO_NODE), f"dask://127.0.0.1:{free_port()}"
    ran = fresh.run("render", "--executor", nowhere)
    assert (ran.code, fresh.dist) == (0, alone), ran.err


def test_workers_of_another_version_are_refused(
    machines: Machines, shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """No cluster is rendered by two versions, not even by one line of difference."""
    other = tmp_path / "other"
    shutil.copytree(ROOT / "gpustack", other / "gpustack", ignore=shutil.ignore_patterns("__pycache__"))
    (other / "schemas").symlink_to(ROOT / "schemas")
    (other / "gpustack/model.py").write_text((ROOT / "gpustack/model.py").read_text() + "\n# another\n")
    asking = machines(**shared)
    with working(tmp_path, scheduler, 1, package=other):
        ran = asking.run("render", "--executor", scheduler)
    assert (ran.code, asking.dist) == (5, {})
    assert "GPU983: a worker of Dask has another gpustack" in ran.err


def test_what_a_repository_brings_along_goes_with_the_work(
    machines: Machines, shared: dict[str, str], scheduler: str, tmp_path: Path
) -> None:
    """Kinds of other software, which `schema add` put into the clone, are known to workers that have no clone."""
    asking = machines(**shared)
    crd = ROOT / "examples/constructs/acme_queues/gpuqueues.acme.example.yaml"
    assert asking.run("schema", "add", str(crd)).code == 0
    body = {"apiVersion": "acme.example/v1", "kind": "GpuQueue", "metadata": {"name": "q"}, "spec": {"gpus": 4}}
    Project(asking.folder, asking.cache).policy("c00", extraObjects=[body])
    with working(tmp_path, scheduler):
        ran = asking.run("render", "c00", "--executor", scheduler, env=NO_NODE)
    assert ran.code == 0, ran.err
    assert any("gpuqueue-q" in path for path in asking.dist)


def test_without_a_shared_cache_nothing_comes_back(machines: Machines) -> None:
    """A cache of this machine alone, or one that may only be read, is refused before anybody is asked."""
    for env in ({}, {"GPUSTACK_CACHE": "file:///tmp/nowhere-to-write"}):
        ran = machines(**env).run("render", "--executor", "dask://127.0.0.1:1")
        assert ran.code == 4
        assert "GPU985: --executor asks dask://127.0.0.1:1" in ran.err


@pytest.mark.parametrize("word", ["dask://", "tcp://127.0.0.1:1", "127.0.0.1:1", "dask://host", "dask://host:x"])
def test_addresses_that_are_no_scheduler(machines: Machines, word: str) -> None:
    """Refused as an argument."""
    ran = machines().run("render", "--executor", word)
    assert ran.code == 4, ran.err
    assert "is not dask://HOST:PORT" in ran.err
