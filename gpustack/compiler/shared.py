"""The cache that several machines share: an object store, or a folder that all of them have, asked by fsspec.

It stands behind the folder of each machine (cache.py): what that lacks is fetched from here, many values at a time, and
kept there. A value carries its checksum, so one that is damaged, cut off or of another key is absent. Nothing here may
make a render wrong, only slower: a store that fails, or answers too late, is given up for the rest of the process.

Whoever can write to it says what is rendered, as with every cache. So it is read, and written to only where that is
said: jobs of pull requests get a login that reads.
"""

import datetime
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ..model import InputError, MissingToolError
from ..text.programs import of_work_tree
from .refusals import said

R = TypeVar("R")

SECONDS = 20.0
"""What an answer may take, however many values are asked for: some hundred stacks take a second."""
AT_ONCE = 500
"""Values that are asked for in one go: what they hold is in memory meanwhile."""
FOLDERS = ("file", "local")
PATIENCE = {"max_retries": 2, "retry_timeout": datetime.timedelta(seconds=SECONDS / 2)}
PROBE = "gpustack"
"""A name that is asked for to see whether anybody answers; names of what is put to see whether that works begin so."""
RENDERS = ("cdk8s", "constructs", "jsii", "jsonschema-rs", "msgspec", "promql-parser", "pydantic", "ruamel.yaml")
"""Distributions that a render is made with: machines that have others share nothing."""

_given_up: set[str] = set()


@dataclass(unsafe_hash=True)
class Shared:
    """The store at ADDRESS, such as s3://bucket/folder; `writes`: what is new goes there too (cache.py asks)."""

    address: str
    writes: bool = False

    def trouble(self) -> str:
        """Why the store can't be used, "" where it can. Raises InputError for an address that nothing here reads, and
        MissingToolError for a kind of store that nothing that is installed here knows."""
        try:
            root = self._within(self._probed)
        except ImportError as error:
            raise MissingToolError(said("GPU980", address=self.address, reason=error)) from None
        except ValueError as error:
            raise InputError(said("GPU981", address=self.address, reason=error)) from None
        except Exception as error:  # noqa: BLE001 - each kind of store has errors of its own
            return plainly(error)
        if self.address.partition("://")[0] in FOLDERS and of_work_tree(root):
            return "it is in the work tree, where a pull request can put entries"
        return ""

    def refuses(self) -> str:
        """Why nothing that is new can go there, "" where it can; from then on nobody tries where it can't."""
        try:
            self._within(partial(self._put, {f"{PROBE}-{time.time_ns() % 64}": b""}))
        except Exception as error:  # noqa: BLE001 - as above
            self.writes = False
            return plainly(error)
        return ""

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Those of NAMES that are there, each with its content."""
        wanted = sorted(set(names))
        for start in range(0, len(wanted), AT_ONCE):
            for name, answer in (self._asked(partial(self._fetched, wanted[start : start + AT_ONCE])) or {}).items():
                if isinstance(answer, bytes):
                    yield name, answer
                elif not isinstance(answer, bytes | FileNotFoundError | PermissionError):
                    _given_up.add(self.address)  # some stores say "forbidden" of what isn't there

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Put CONTENTS there, by name. Another machine that puts the same at the same time does no harm."""
        self._asked(partial(self._put, contents))

    def _asked(self, call: Callable[[], R]) -> R | None:
        """What CALL returns; None, now and from then on, where the store fails."""
        if self.address in _given_up:
            return None
        try:
            return self._within(call)
        except Exception:  # noqa: BLE001 - as above
            _given_up.add(self.address)
            return None

    def _within(self, call: Callable[[], R]) -> R:
        """What CALL returns or raises, or TimeoutError once it takes too long: nobody waits for it then."""
        from ..registry.waiting import started

        running = started(call)
        if not wait((running,), SECONDS).done:
            raise TimeoutError(f"no answer in {SECONDS:.0f} s")
        return running.result()

    def _system(self) -> tuple[Any, str]:
        """fsspec's file system for the address, which keeps one for each process, and how paths of ours begin there."""
        import fsspec

        if not self.address.partition("://")[2].strip("/"):
            raise ValueError("it names no bucket and no folder")
        if self.address.partition("://")[0] in FOLDERS:
            system, root = fsspec.core.url_to_fs(self.address, auto_mkdir=True)
        else:
            from obstore.fsspec import register

            register()  # fsspec's own for S3 needs other versions of what cdk8s needs
            system, root = fsspec.core.url_to_fs(self.address, retry_config=PATIENCE)
        return system, str(root).rstrip("/")

    def _probed(self) -> str:
        system, root = self._system()
        system.exists(f"{root}/{PROBE}")
        return root

    def _fetched(self, names: Sequence[str]) -> dict[str, Any]:
        """For each of NAMES its content, or the exception that its request ended with."""
        system, root = self._system()
        answers = system.cat([f"{root}/{name}" for name in names], on_error="return")
        return {path[len(root) + 1 :]: answer for path, answer in answers.items()}

    def _put(self, contents: Mapping[str, bytes]) -> None:
        system, root = self._system()
        system.pipe({f"{root}/{name}": data for name, data in contents.items()})


def plainly(error: Exception) -> str:
    """ERROR in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def made_with() -> str:
    """The versions of what renders here, as part of the name of what is shared."""
    from importlib.metadata import version

    return " ".join(version(name) for name in RENDERS)
