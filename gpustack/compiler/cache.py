"""What was computed once is not computed again: a content-addressed store on disk.

A key names everything that a value depends on, so nothing is ever invalidated; the salt of the store is the digest of
gpustack's own files (code, catalogue, schema index), so another version, or an edited checkout, simply has another
store. A damaged, cut-off or misplaced entry fails its checksum and counts as absent. A disk that can't be written makes
a render slower, never wrong: `put` gives up silently, and whoever misses a value computes it.

Rejected: pickles (a cache folder is not a place to run code from), sqlite (one lock for all workers), and modification
times (a checkout or a copied folder lies about them).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text.programs import of_work_tree
from ..text.regular import open_regular

if TYPE_CHECKING:
    from .shared import Shared

KEPT_SALTS = 4
SHARED = frozenset({"component", "stack"})
"""Kinds of values that mean the same on every machine; others know of files, and of times, of one."""
MEMORY_BYTES = 16 * 1024 * 1024
FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""How a new entry is opened: neither through a link to elsewhere nor into a pipe that nobody reads."""


def digest(*parts: str | bytes) -> str:
    """The sha256 of PARTS, each with its length, so that ("ab", "c") and ("a", "bc") differ."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(b"%d:" % len(data))
        sha.update(data)
    return sha.hexdigest()


@cache
def own_digest() -> str:
    """The digest of gpustack itself: every file that can change what is rendered."""
    from ..catalog.kubernetes import schema_root

    return files_digest(Path(__file__).parents[1], schema_root() / "index.json")


def files_digest(package: Path, index: Path) -> str:
    """The digest of the gpustack in PACKAGE, whose schemas INDEX lists: the same installed and in a clone."""
    sha = hashlib.sha256(index.read_bytes() if index.is_file() else b"")
    for path in own_files(str(package)):
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - 900 files at each start: Path doubles the time
            data = file.read()
        sha.update(f"{path.removeprefix(str(package))}:{len(data)}:".encode("utf-8", "surrogateescape"))
        sha.update(data)
    return sha.hexdigest()


def salt(more: str) -> str:
    """The salt of a store for a project that brings MORE along by which results differ: a digest, or "" for nothing."""
    return digest(own_digest(), more) if more else own_digest()


def own_files(folder: str) -> Iterator[str]:
    """Code and data below FOLDER in a stable order, without byte code and without a wheel's copy of the schemas and of
    what gpustack needs.

    What an editor leaves for a moment (hidden files, links to nothing) is not part of it."""
    with os.scandir(folder) as entries:
        known = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    for entry in known:
        if entry.is_file():
            yield entry.path
        elif entry.is_dir(follow_symlinks=False) and entry.name not in {"__pycache__", "schemas", "requirements"}:
            yield from own_files(entry.path)


@cache
def _of_machines(salt: str) -> str:
    """The folder of what machines share that render with one version of everything."""
    from .shared import made_with

    return digest(salt, made_with())[:32]


def ours_alone(state: os.stat_result) -> bool:
    """Whether the file or folder with STATE belongs to us, or to root, and nobody else can write to it."""
    return state.st_uid in {os.geteuid(), 0} and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def untrusted(root: Path) -> str:
    """Why the store in ROOT must not be read, as the end of a sentence; "" where it may.

    The checksum of an entry tells damage, not who wrote it: whoever can write to the folder says what is rendered."""
    if of_work_tree(root):
        return "is in the work tree, where a pull request can put entries"
    try:
        state = root.stat()
    except OSError:
        return ""
    if not stat.S_ISDIR(state.st_mode) or ours_alone(state):
        return ""
    return "belongs to another user" if state.st_uid not in {os.geteuid(), 0} else "can be written by other users"


class Store:
    """Values (JSON objects) by kind and key, below `root`/<salt>/. Keeps recently used ones in memory.

    What is not here may be `shared` with other machines: `bring` fetches it, `hand_on` gives what was put since."""

    def __init__(self, root: Path, salt: str, shared: Shared | None = None) -> None:
        self.root, self.salt, self.shared = root, salt, shared
        self._folder = root / salt[:32]
        self._memory: dict[tuple[str, str], dict[str, Any]] = {}
        self._size = 0
        self._fresh: dict[tuple[str, str], bytes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (Store, (self.root, self.salt, self.shared))

    def _path(self, kind: str, key: str) -> str:
        return f"{self._folder}/{kind}/{key[:2]}/{key[2:]}"

    def _seal(self, kind: str, key: str, payload: bytes) -> bytes:
        """The checksum of an entry, with its key in it: an entry that was copied says nothing about another key."""
        return digest(self.salt, kind, key, payload).encode()

    def holds(self, kind: str) -> bool:
        """Whether there is any value of KIND on disk."""
        return os.path.isdir(f"{self._folder}/{kind}")  # noqa: PTH112 - a str: put and get build paths of them

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The value, or None when there is none or it is damaged. Callers must not change what they get."""
        if held := self._memory.get((kind, key)):
            return held
        try:
            with open_regular(self._path(kind, key)) as file:
                if not ours_alone(os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        return self._opened(kind, key, data)

    def _opened(self, kind: str, key: str, data: bytes) -> dict[str, Any] | None:
        """The value in the entry DATA, None where it is damaged."""
        if self._seal(kind, key, data[65:]) != data[:64]:
            return None
        try:
            value = json.loads(data[65:])
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        self._remember(kind, key, value, len(data))
        return value

    def bring(self, kind: str, keys: Iterable[str]) -> None:
        """Fetch those of KEYS that are not here and that others may have."""
        if self.shared is None:
            return
        absent = {self._name(kind, key): key for key in keys if self.get(kind, key) is None}
        for name, data in self.shared.read(absent):
            key = absent[name]
            if self._seal(kind, key, data[65:]) == data[:64] and not self._keep(kind, key, data):
                self._opened(kind, key, data)

    def hand_on(self) -> None:
        """Give others what was put here since the last time, as far as it means the same to them."""
        if self._fresh and self.shared is not None:
            self.shared.write({self._name(*which): data for which, data in self._fresh.items()})
        self._fresh.clear()

    def _name(self, kind: str, key: str) -> str:
        """An entry's name among those that are shared."""
        return f"{_of_machines(self.salt)}/{kind}/{key[:2]}/{key[2:]}"

    def put(self, kind: str, key: str, value: dict[str, Any]) -> None:
        """Store VALUE. Another process that stores the same key at the same time does no harm."""
        payload = _written(value)
        self._remember(kind, key, value, len(payload))
        data = self._seal(kind, key, payload) + b"\n" + payload
        self._keep(kind, key, data)
        if self.shared is not None and self.shared.writes and kind in SHARED:
            self._fresh[kind, key] = data

    def _keep(self, kind: str, key: str, data: bytes) -> bool:
        """Write the entry DATA to disk; whether that was possible."""
        path = self._path(kind, key)
        with contextlib.suppress(OSError):
            folder = os.path.dirname(path)  # noqa: PTH120 - a hot path
            temporary = f"{path}.{os.getpid()}"
            try:
                descriptor = os.open(temporary, FRESH, 0o600)
            except FileNotFoundError:
                way = [above for above in Path(folder).parents if self.root in above.parents]
                for each in (self.root, *reversed(way), Path(folder)):  # for us alone, whatever the umask is
                    each.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(temporary, FRESH, 0o600)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                    file.write(data)
                os.replace(temporary, path)  # noqa: PTH105 - as above
                return True
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)  # noqa: PTH108 - as above
        return False

    def _remember(self, kind: str, key: str, value: dict[str, Any], size: int) -> None:
        if self._size + size > MEMORY_BYTES:
            self._memory.clear()
            self._size = 0
        self._memory[kind, key] = value
        self._size += size

    def prune(self) -> None:
        """Forget stores of other versions, all but the most recently used ones."""
        with contextlib.suppress(OSError):
            os.utime(self._folder)
            stores = (entry for entry in os.scandir(self.root) if entry.is_dir() and len(entry.name) == 32)
            for entry in sorted(stores, key=lambda entry: entry.stat().st_mtime)[:-KEPT_SALTS]:
                shutil.rmtree(entry.path, ignore_errors=True)


def _written(value: dict[str, Any]) -> bytes:
    """VALUE as JSON, by pydantic's writer: a third of Python's time, but it refuses names that are not UTF-8."""
    from pydantic_core import PydanticSerializationError, to_json  # which nobody waits for who only reads

    try:
        return to_json(value)
    except PydanticSerializationError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for a store of this run alone (`--no-cache`): workers still hand results to each other through it."""
    with tempfile.TemporaryDirectory(prefix="gpustack-") as folder:
        yield Path(folder)
