"""Stacks compiled on other machines: the workers of a Dask scheduler that is there already.

An item is the text of a spec, its result what the rules say; what was rendered stays in the cache that all machines
share (shared.py). So nothing of a clone has to be where a worker is, except what the policy repository brings along
(brought.py), which is sent with the work and is data. A worker with another version of gpustack, or of a team's
constructs, would have other results: each looks whether it is of the store that the results are for.

A worker that dies has its work done by another. A scheduler that goes away ends the run, and what is in the cache by
then isn't computed again. Scheduler and workers do what whoever reaches them says: Dask's own TLS guards them.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..catalog.kinds import FOLDER
from ..model import GpustackError, MissingToolError
from ..policy.loading.brought import LIMITS, LIST, brought_by
from .cache import Store, salt
from .refusals import said
from .shared import Shared, plainly

if TYPE_CHECKING:
    from .sources import Project

T = TypeVar("T")
R = TypeVar("R")

SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
"""How an address begins here, and how Dask's own does."""
WAIT = "20s"
"""For the scheduler's first answer."""
ALONE = 300.0
"""Seconds for which a scheduler may be without workers: those of a cluster that begins with none come in minutes."""
PARTS = 8
"""Pieces of work for each worker: one that is slow, or dies, holds up one of them."""
RETRIES = 2

_one_at_a_time = threading.Lock()


def dask_address(scheduler: str) -> str:
    """The address of SCHEDULER as Dask writes it, "" where it isn't dask://HOST:PORT or dask+tls://HOST:PORT."""
    scheme, _, place = scheduler.partition("://")
    host, _, port = place.rpartition(":")
    return f"{SCHEMES[scheme]}://{place}" if scheme in SCHEMES and host and port.isdecimal() else ""


def mapped(scheduler: str, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """FUNCTION of each of ITEMS, which begin with their project, in order. MissingToolError: nobody does the work."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingToolError(said("GPU980", address=scheduler, reason=error)) from None
    project: Project = items[0][0]  # type: ignore[index]
    carried = carried_by(project.root)
    logging.disable()  # Dask and asyncio log what is raised here as well, with tracebacks
    try:
        with Client(dask_address(scheduler), timeout=WAIT, set_as_default=False) as client:
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
            parts: list[Sequence[T]] = []
            while rest := items[sum(map(len, parts)) :]:  # the last ones are small: nobody waits long for them
                parts.append(rest[: min(16, -(-len(rest) // (PARTS * max(1, workers))))])
            for future in client.map(functools.partial(_work, function, carried), parts, pure=False, retries=RETRIES):
                while not future.done():
                    with contextlib.suppress(TimeoutError):
                        future.result(timeout=ALONE)
                    if not future.done() and not client.scheduler_info(n_workers=-1)["workers"]:
                        raise TimeoutError(f"no worker in {ALONE:.0f} s")  # Dask itself would wait for ever
                yield from future.result()
    except GpustackError:
        raise
    except Exception as error:  # whatever the network, a scheduler or a worker trips over
        raise MissingToolError(said("GPU982", scheduler=scheduler, reason=plainly(error))) from error
    finally:
        logging.disable(logging.NOTSET)


def carried_by(root: Path) -> dict[str, bytes]:
    """The files of the policy repository ROOT by which its policies mean something, and the list of its base."""
    brought = brought_by(root)
    files = {f"{FOLDER}/{name}": data for name, data in brought.kinds.files.items()}
    if brought.constructs:
        files[LIST] = (root / LIST).read_bytes()
        if root in LIMITS:
            files[""] = LIMITS[root]
    return files


def _work(function: Callable[[T], R], carried: Mapping[str, bytes], items: Sequence[T]) -> list[R]:
    """On a worker: FUNCTION of each of ITEMS. Constructs and Node serve one thread at a time."""
    with _one_at_a_time:
        root = _unpacked(tuple(sorted(carried.items())))
        return [function(_moved(item, root)) for item in items]


def _moved(item: Any, root: Path) -> Any:
    """ITEM with its project in ROOT. Raises MissingToolError where this machine renders otherwise than the asker's."""
    project: Project = item[0]
    if salt(brought_by(root).digest) != project.store.salt:
        raise MissingToolError(said("GPU983"))
    store = _store(root, project.store.salt, project.store.shared)
    return (dataclasses.replace(project, root=root, store=store, jobs=1, scheduler=""), *item[1:])


@functools.lru_cache(maxsize=4)
def _store(root: Path, salt: str, shared: Shared | None) -> Store:
    """What this process has computed, in a folder of its own: that of who asks is on another machine."""
    return Store(root / ".cache", salt, shared)


@functools.lru_cache(maxsize=4)
def _unpacked(carried: tuple[tuple[str, bytes], ...]) -> Path:
    """A folder of this process that holds the files CARRIED."""
    root = Path(tempfile.mkdtemp(prefix="gpustack-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for name, data in carried:
        if name:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        else:
            LIMITS[root] = data
    return root
