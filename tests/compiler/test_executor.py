"""The executor: results in order, errors as they are, and nobody left behind.

All of it runs in programs of its own: a test process has threads and a Node, and is no place to fork from.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpustack.compiler.executor import SMALL, Executor, available_cpus
from tests.project import ROOT, Project

HEAD = r"""
import os, signal, sys, time
from gpustack.compiler.executor import Executor, SMALL
from gpustack.model import Finding, GpustackError, InputError

def work(item):
    if item % 7 == 0:
        time.sleep(0.02)
    return item, os.getpid()

def fail(item):
    if item == 20:
        raise InputError(Finding("GPU001", "error", "number 20"))
    return item

def die(item):
    if item == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return item

def interrupt(item):
    os.kill(os.getpid(), signal.SIGINT)
    return item

def wait(item):
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(60)

if __name__ == "__main__":
"""


def test_order(project: Project) -> None:
    """Results come in the order of the items, whoever was faster, from as many processes as were asked for at most."""
    body = """
    for jobs in (1, 2, 4):
        with Executor(jobs) as executor:
            results = list(executor.map(work, range(100)))
            again = list(executor.map(work, range(50, 70)))
        assert [item for item, _ in results] == list(range(100))
        assert [item for item, _ in again] == list(range(50, 70))
        processes = {process for _, process in results}
        assert len(processes) <= jobs
        assert (os.getpid() in processes) is (jobs == 1)
"""
    done = project.python(HEAD + body)
    assert (done.code, done.err) == (0, "")


def test_no_more_processes_than_items() -> None:
    """However many are asked for, there are no more than there is work for."""
    assert [Executor(100_000, items).jobs for items in (0, 1, 7, 200_000)] == [1, 1, 7, 100_000]


def test_small_work_stays_here() -> None:
    """Few items are not worth a process, and no pool is made for them."""
    with Executor(4) as executor:
        assert list(executor.map(lambda item: (item, os.getpid()), range(SMALL - 1))) == [
            (item, os.getpid()) for item in range(SMALL - 1)
        ]
        assert list(executor.map(str, [])) == []
        assert executor._pool is None


def test_available_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processors that this process may use count, not those of the machine; that is also how many jobs there
    are."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 9}, raising=False)
    assert available_cpus() == Executor().jobs == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus() == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_propagate(project: Project, jobs: int) -> None:
    """An error of an item ends the iteration with that very error, findings and all; the results before it are
    there."""
    body = f"""
    got = []
    try:
        with Executor({jobs}) as executor:
            for item in executor.map(fail, range(100)):
                got.append(item)
    except InputError as error:
        print(error.findings[0].what, got == list(range(len(got))), len(got) <= 20)
"""
    done = project.python(HEAD + body)
    assert (done.out, done.err) == ("number 20 True True\n", "")


def test_killed_worker(project: Project) -> None:
    """A worker that the system kills, for memory most likely, is an error in words and not a defect of ours."""
    body = """
    try:
        with Executor(2) as executor:
            list(executor.map(die, range(100)))
    except GpustackError as error:
        print(error.findings[0].what, "|", error.findings[0].remedy)
"""
    done = project.python(HEAD + body)
    assert "was killed" in done.out
    assert "--jobs 1" in done.out
    assert "Traceback" not in done.err


def test_ctrl_c_is_for_the_parent(project: Project) -> None:
    """Ctrl-C reaches workers too, and they leave it to the parent: what they do just now is finished."""
    body = """
    with Executor(2) as executor:
        assert list(executor.map(interrupt, range(100))) == list(range(100))
"""
    done = project.python(HEAD + body)
    assert (done.code, done.err) == (0, "")


def alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_die_with_their_parent(how: signal.Signals) -> None:
    """However a render ends, no process of it is left."""
    body = """
    with Executor(2) as executor:
        list(executor.map(wait, range(100)))
"""
    command = [sys.executable, "-c", HEAD + body]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as parent:
        try:
            assert parent.stdout is not None
            workers = [int(parent.stdout.readline()) for _ in range(2)]
            assert all(map(alive, workers))
            parent.send_signal(how)
            parent.wait(timeout=10)
        finally:
            parent.kill()
    end = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(alive, workers))


OWN_NODE = """
import sys

def make(number):
    import cdk8s
    chart = cdk8s.Chart(cdk8s.App(), f"chart-{number}")
    return [cdk8s.ApiObject(chart, f"{n}", api_version="v1", kind="ConfigMap").name for n in range(5)]

if __name__ == "__main__":
    from gpustack.compiler import node
    from gpustack.compiler.executor import Executor
    node.configure()
    mine = make(0)
    with Executor(2) as executor:
        found = list(executor.map(make, range(40)))
    print(len(found), found[0] == mine == make(0), {len(set(names)) for names in found})
"""


def test_a_process_with_a_node(project: Project) -> None:
    """A program that has used cdk8s already may have several processes: each gets a Node of its own, where forked ones
    would all talk to one."""
    file = project.write("program.py", OWN_NODE)
    command = [sys.executable, str(file)]
    done = subprocess.run(command, env=project.environment(), capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("40 True {5}\n", "")
