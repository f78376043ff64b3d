"""Runs a program and says what it took: seconds on the clock, seconds of processors, and memory, children included.

A program that starts others (workers, Node) is only measured when they are. On Linux the bench adopts what is left
behind (PR_SET_CHILD_SUBREAPER) and waits for all of it, so that their processor time is counted too. Memory is sampled,
in a run of its own: looking at it costs time. PSS shares a page that several processes have among them, as forked
workers do; RSS counts it once for each. (A cgroup's memory.peak also has the children, but with them the file system's
cache of all that was written.)
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.02
LINUX = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took: `wall` and `cpu` (user and system) in seconds; `pss` and `rss` in bytes, 0 where not sampled."""

    wall: float
    cpu: float
    pss: int = 0
    rss: int = 0


class FailedError(Exception):
    """A program that was to be measured ended with an error: its output."""


def adopt_orphans() -> None:
    """Make this process the parent of what its children leave behind. Does nothing where the system can't."""
    if LINUX:
        pr_set_child_subreaper = 36
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1)


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    memory: bool = False,
    good: Sequence[int] = (0,),
) -> tuple[Cost, str]:
    """Run COMMAND in FOLDER until it and all that it started have ended; returns its cost and what it printed.

    Raises FailedError when its exit code is none of GOOD: half a run is no measurement.
    """
    before = _cpu()
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    watch = _Watch(process.pid) if memory else None
    output, _ = process.communicate()
    wall = time.perf_counter() - start
    if watch:
        watch.stop()
    _reap()
    if process.returncode not in good:
        raise FailedError(f"{' '.join(command)} ended with {process.returncode}:\n{output}")
    pss, rss = (watch.pss, watch.rss) if watch else (0, 0)
    return Cost(wall, _cpu() - before, pss, rss), output


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap() -> None:
    """Wait for adopted processes: their time counts from then on."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


class _Watch(threading.Thread):
    """Samples the memory of all processes of a session."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self.pss = self.rss = 0
        self._session = session
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        while LINUX and not self._ended.is_set():
            pss = rss = 0
            for process in _session(self._session):
                with contextlib.suppress(OSError):
                    found = _rollup(process)
                    pss, rss = pss + found["Pss"], rss + found["Rss"]
            self.pss, self.rss = max(self.pss, pss), max(self.rss, rss)
            self._ended.wait(SAMPLE_SECONDS)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _session(session: int) -> Iterator[Path]:
    """The folders in /proc of all processes of SESSION."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are all that is needed
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == session:
                    yield Path("/proc", name)


def _rollup(process: Path) -> dict[str, int]:
    """Pss and Rss of PROCESS in bytes."""
    found = {"Pss": 0, "Rss": 0}
    for line in (process / "smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0]) * 1024
    return found
