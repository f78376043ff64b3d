"""The one seam for fleet work: map a picklable pure function over items.

A pool of processes, or, for functions whose results are left in the store, the workers of a Dask scheduler
(distant.py). So nothing above assumes one machine: functions take and return plain values.

Workers are forked where the system allows it and neither Node nor a shared cache was asked yet (no second start-up,
shared memory), and die with their parent, so a killed render leaves nothing running behind it.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from ..model import GpustackError
from ..policy.loading.brought import LIMITS
from .refusals import said

T = TypeVar("T")
R = TypeVar("R")

SMALL = 12
"""Below this many items a second process costs more than it brings (a worker that needs cdk8s starts its own Node)."""


def available_cpus() -> int:
    """The processors that this process may use; containers and taskset count."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Executor(AbstractContextManager["Executor"]):
    """Maps functions over items with up to `jobs` processes; results come in the order of the items."""

    def __init__(self, jobs: int | None = None, items: int | None = None, scheduler: str = "") -> None:
        """No more processes than ITEMS, the most that any `map` will be given. SCHEDULER: Dask's address, or ""."""
        self.scheduler = scheduler
        jobs = jobs or available_cpus()
        self.jobs = jobs if items is None else max(1, min(jobs, items))
        self._pool: ProcessPoolExecutor | None = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:  # else its thread and the end of Python may both close its pipe
            self._pool.shutdown(wait=kind is None or issubclass(kind, Exception), cancel_futures=True)

    def alone(self, count: int) -> bool:
        """Whether `map` works COUNT items off in this process."""
        return self.jobs == 1 or count < SMALL

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, worth: int = 1, warm: bool = False, far: bool = False
    ) -> Iterator[R]:
        """FUNCTION of each item. An exception of one ends the iteration with it.

        FAR: another machine may do it: items begin with their project, and results that matter are in its store.
        WORTH: so many items are worth a process; with less than twice as many, one does it all. WARM: processes that
        are there already know what FUNCTION needs, so they work however few items off, and none is started for it.
        Raises GpustackError when a worker was killed, which is what systems do when memory runs out."""
        if far and self.scheduler and items:
            from .distant import mapped

            yield from mapped(self.scheduler, function, items)
            return
        if (self._pool is None if warm else self.alone(len(items))) or not items:
            yield from map(function, items)
            return
        self._pool = self._pool or _processes(self.jobs)
        chunk = len(items) if len(items) < 2 * worth else max(1, min(16, len(items) // (4 * self.jobs)))
        yield from _results(self._pool.map(function, items, chunksize=chunk))

    def ahead(self, function: Callable[[T], R], item: T) -> Iterator[R]:
        """FUNCTION of ITEM, which is begun now, beside what this process does. Raises as `map`."""
        self._pool = self._pool or _processes(self.jobs)
        return _results(self._pool.map(function, [item]))


def _results(results: Iterator[R]) -> Iterator[R]:
    try:
        yield from results
    except BrokenProcessPool as error:
        raise GpustackError(said("GPU909")) from error


def _processes(count: int) -> ProcessPoolExecutor:
    # A forked worker would talk to its parent's Node, and all of them at once, where there is one already; and it would
    # have the connections to a shared cache, but none of the threads that serve them.
    alone = sys.platform == "linux" and sys.modules.keys().isdisjoint({"jsii", "fsspec"})
    context = multiprocessing.get_context("fork" if alone else "spawn")
    return ProcessPoolExecutor(count, context, initializer=_begin, initargs=(os.getpid(), LIMITS))


def _begin(parent: int, limits: dict[Path, bytes]) -> None:
    """Leave Ctrl-C to the parent, end when it ends, however it ends, and know the LIMITS of its constructs."""
    LIMITS.update(limits)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
