"""Machines beside each other: each has a cache of its own and runs the program with the extra `fleet`.

They share an object store, or the workers of a Dask scheduler. All of them are processes here, on loopback.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.control_plane.process import Program
from tests.project import ROOT, TODAY, Ran, tree

FLEET = ROOT / ".tools/fleet-venv/bin/python"
OBJECTS = ROOT / ".tools/objects-venv/bin/python"
BUCKET = "s3://bucket/cache"
PROFILE = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"
REGISTERED = re.compile("Registered to:")

MOTO = """\
import sys, time
from moto.server import ThreadedMotoServer
import boto3
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
host, port = server.get_host_and_port()
login = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
boto3.client("s3", endpoint_url=f"http://{host}:{port}", **login).create_bucket(Bucket="bucket")
print(f"port {port}", flush=True)
time.sleep(3600)
"""


@dataclass(frozen=True)
class Machine:
    """One that renders the project in `folder`; `env` is what its users set."""

    folder: Path
    cache: Path
    env: Mapping[str, str]

    def run(self, *words: str, env: Mapping[str, str] | None = None, python: Path = FLEET) -> Ran:
        """Run `gpustack WORDS`."""
        done = subprocess.run(
            [
                python,
                "-m",
                "gpustack",
                *words,
                *(["--today", TODAY] if words[0] in {"render", "check", "lint"} else []),
            ],
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of its programs."""
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("GPUSTACK_", "AWS_"))}
        return {**bare, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.cache), **self.env, **(env or {})}

    @property
    def dist(self) -> dict[str, bytes]:
        """What it rendered."""
        return tree(self.folder / "dist")


class Machines:
    """Makes machines with copies of one project."""

    def __init__(self, folder: Path, project: Path) -> None:
        self._folder, self._project, self._count = folder, project, 0

    def __call__(self, **env: str) -> Machine:
        """One more, where ENV is set."""
        self._count += 1
        folder, cache = (self._folder / f"{name}{self._count}" for name in ("project", "cache"))
        shutil.copytree(self._project, folder)
        cache.mkdir()
        return Machine(folder, cache, env)


def started(name: str, command: Sequence[str | Path], folder: Path, ready: Callable[[str], object]) -> Program:
    """A program of which READY has found something in its log."""
    program = Program(name, command, folder, {**os.environ, "PYTHONPATH": str(ROOT)})
    until = time.monotonic() + 60
    while not ready(program.log.read_text("utf-8", "replace")):
        assert program.running, program.tail()
        assert time.monotonic() < until, program.tail()
        time.sleep(0.05)
    return program


@contextlib.contextmanager
def scheduling(folder: Path) -> Iterator[str]:
    """The address of a Dask scheduler, as `--executor` takes it, which has no worker yet."""
    port = free_port()
    words = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    program = started("scheduler", [FLEET, *words], folder, lambda log: "Scheduler at" in log)
    yield f"dask://127.0.0.1:{port}"
    program.process.kill()
    program.process.wait()


@contextlib.contextmanager
def working(
    folder: Path, scheduler: str, count: int = 2, package: Path = ROOT, env: Mapping[str, str] | None = None
) -> Iterator[list[Program]]:
    """COUNT workers of SCHEDULER, of the gpustack in PACKAGE, with ENV, started as docs/scale.md says; each a process
    in a folder of its own."""
    words = ["--no-dashboard", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", "--local-directory", "scratch"]
    given = {"PYTHONPATH": str(package), PROFILE: "False", **(env or {})}
    setting = [f"{name}={value}" for name, value in given.items()]
    programs = []
    for number in range(count):
        home = folder / f"worker{number}"
        home.mkdir(exist_ok=True)
        command: list[str | Path] = ["/usr/bin/env", "-C", home, *setting, FLEET, "-m", "distributed.cli.dask_worker"]
        address = scheduler.replace("dask", "tcp")
        programs.append(started(f"worker{number}", [*command, address, *words], home, REGISTERED.search))
    yield programs
    for program in programs:
        program.process.kill()
        program.process.wait()


@contextlib.contextmanager
def dask(folder: Path, workers: int) -> Iterator[str]:
    """The address of a Dask scheduler with WORKERS."""
    with scheduling(folder) as address, working(folder, address, workers):
        yield address


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def code_in(machine: Machine, code: str, *words: str) -> Ran:
    """Run the Python program CODE on MACHINE."""
    done = subprocess.run(
        [FLEET, "-c", code, *words],
        cwd=machine.folder,
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
