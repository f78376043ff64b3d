"""The store: what is put in comes out, or nothing does."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.compiler import cache
from gpustack.compiler.cache import KEPT_SALTS, Store, digest, own_digest, own_files, private_folder
from gpustack.compiler.shared import AT_ONCE, Shared
from tests.odd import ODD, make_odd

SALT = "a" * 64
VALUE: dict[str, Any] = {"files": [["a", "b\n"]], "odd": "\u2028ä\udcff"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store in a folder of its own."""
    return Store(tmp_path / "cache", SALT)


def entry(store: Store) -> Path:
    """The only file of the store."""
    (found,) = (path for path in store.root.rglob("*") if path.is_file())
    return found


def fresh(store: Store) -> Store:
    """The same store as another process sees it: with nothing in memory."""
    return Store(store.root, store.salt)


def test_keeps(store: Store) -> None:
    """A value is found by kind and key, in this process and in another; anything else is not."""
    store.put("kind", "key1", VALUE)
    for seen in (store, fresh(store), pickle.loads(pickle.dumps(store))):  # noqa: S301 - our own bytes
        assert seen.get("kind", "key1") == VALUE
        assert seen.get("kind", "key2") is None
        assert seen.get("other", "key1") is None
    assert Store(store.root, "b" * 64).get("kind", "key1") is None


def test_pickled_stores_carry_no_values(store: Store) -> None:
    """What a worker gets is the place of the store, not everything that the parent has read."""
    store.put("kind", "key1", {"big": "x" * 100_000})
    assert len(pickle.dumps(store)) < 1000


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in the checksum": lambda data: data[:30],
    "checksum alone": lambda data: data[:65],
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b" ",
    "other bytes": lambda data: b"\x00" * len(data),
    "other separator": lambda data: data[:64] + data[65:],
}


@pytest.mark.parametrize("payload", [b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_value_is_absence(store: Store, payload: bytes) -> None:
    """Whoever can write to a store can make checksums, and breaks nothing by what isn't a value."""
    store.put("kind", "key1", VALUE)
    entry(store).write_bytes(store._seal("kind", "key1", payload) + b"\n" + payload)
    assert fresh(store).get("kind", "key1") is None


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_absence(store: Store, how: str) -> None:
    """An entry that is not whole counts as absent, and can be put again."""
    store.put("kind", "key1", VALUE)
    entry(store).write_bytes(DAMAGE[how](entry(store).read_bytes()))
    seen = fresh(store)
    assert seen.get("kind", "key1") is None
    seen.put("kind", "key1", VALUE)
    assert fresh(store).get("kind", "key1") == VALUE


@pytest.mark.parametrize(
    ("kind", "key", "salt"), [("kind", "key2", SALT), ("other", "key1", SALT), ("kind", "key1", "b" * 64)]
)
def test_an_entry_belongs_to_its_key(store: Store, kind: str, key: str, salt: str) -> None:
    """An entry that was copied to another key, kind or version is absent there: it says nothing about that."""
    store.put("kind", "key1", VALUE)
    copy = store.root / salt[:32] / kind / key[:2] / key[2:]
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(entry(store).read_bytes())
    assert Store(store.root, salt).get(kind, key) is None
    assert fresh(store).get("kind", "key1") == VALUE


@pytest.mark.parametrize("what", ODD)
def test_entries_that_are_no_files(store: Store, what: str) -> None:
    """A pipe, a device or another thing in the place of an entry is a miss, and nobody waits for it."""
    store.put("kind", "key1", VALUE)
    make_odd(entry(store), what)
    seen = fresh(store)
    assert seen.get("kind", "key1") is None
    seen.put("kind", "key1", VALUE)
    assert fresh(store).get("kind", "key1") == (None if what == "folder" else VALUE)


@pytest.mark.parametrize("what", ["pipe", "link"])
def test_nothing_is_written_elsewhere(store: Store, tmp_path: Path, what: str) -> None:
    """Where a pipe or a link has the name under which an entry is begun, the entry is not stored."""
    store.put("kind", "key1", VALUE)
    begun = entry(store).with_name(f"{entry(store).name}.{os.getpid()}")
    (tmp_path / "mine").write_text("x")
    os.mkfifo(begun) if what == "pipe" else begun.symlink_to(tmp_path / "mine")
    store.put("kind", "key1", {"other": 1})
    assert fresh(store).get("kind", "key1") == VALUE
    assert (tmp_path / "mine").read_text() == "x"


def test_every_flipped_bit_is_absence(store: Store) -> None:
    """No single flipped bit of an entry passes for a value."""
    store.put("kind", "key1", {})
    file = entry(store)
    good = file.read_bytes()
    for place in range(len(good) * 8):
        data = bytearray(good)
        data[place // 8] ^= 1 << place % 8
        file.write_bytes(data)
        found = fresh(store).get("kind", "key1")
        # The byte between checksum and value says nothing.
        assert found is None or place // 8 == 64


@pytest.mark.parametrize("step", ["open", "write", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses(store: Store, monkeypatch: pytest.MonkeyPatch, step: str, code: int) -> None:
    """A full or read-only disk, at whatever step, costs this process nothing but the entry, and leaves no half file."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    class Full(io.BytesIO):
        write = refuse

    def full(descriptor: int, mode: str) -> Full:
        os.close(descriptor)
        return Full()

    with monkeypatch.context() as patch:
        if step == "open":
            patch.setattr(os, "open", refuse)
        elif step == "replace":
            patch.setattr(os, "replace", refuse)
        else:
            patch.setattr(cache, "open", full, raising=False)
        store.put("kind", "key1", VALUE)
    assert store.get("kind", "key1") == VALUE
    assert fresh(store).get("kind", "key1") is None
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    """A cache that is a file, or an entry that is a folder, is a miss and nothing else."""
    (tmp_path / "file").write_text("x")
    store = Store(tmp_path / "file", SALT)
    store.put("kind", "key1", VALUE)
    assert fresh(store).get("kind", "key1") is None
    other = Store(tmp_path / "cache", SALT)
    (tmp_path / "cache" / SALT[:32] / "kind" / "ke" / "y1").mkdir(parents=True)
    other.put("kind", "key1", VALUE)
    assert fresh(other).get("kind", "key1") is None


def test_entries_are_private(store: Store) -> None:
    """Policies may hold what not everybody on the machine may read."""
    for key in ("key1", "key2"):
        store.put("kind", key, VALUE)
    files = [path for path in store.root.rglob("*") if path.is_file()]
    assert len(files) == 2
    for path in (*files, files[0].parent):
        assert path.stat().st_mode & 0o077 == 0, path


def test_memory_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept in memory is forgotten when it gets much, and is still on disk."""
    monkeypatch.setattr(cache, "MEMORY_BYTES", 10_000)
    for number in range(100):
        store.put("kind", f"key{number}", {"x": "y" * 500})
        assert sum(len(json.dumps(value)) for value in store._memory.values()) <= 10_000
    assert store.get("kind", "key0") == {"x": "y" * 500}


def test_other_versions_are_forgotten(tmp_path: Path) -> None:
    """The stores of the last versions stay, older ones go, and what is no store of ours is left alone."""
    for number in range(KEPT_SALTS + 3):
        Store(tmp_path, f"{number}" * 64).put("kind", "key1", VALUE)
        os.utime(tmp_path / (f"{number}" * 32), (number, number))
    (tmp_path / "somebody").mkdir()
    (tmp_path / "file").write_text("x")
    Store(tmp_path, "0" * 64).prune()  # the oldest is the one in use
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"0" * 32, "somebody", "file", *(f"{number}" * 32 for number in range(4, KEPT_SALTS + 3))}
    Store(tmp_path / "nowhere", SALT).prune()


def test_private_store() -> None:
    """The store of --no-cache lives as long as the run."""
    with private_folder() as root:
        store = Store(root, SALT)
        store.put("kind", "key1", VALUE)
        assert fresh(store).get("kind", "key1") == VALUE
    assert not root.exists()


@given(st.lists(st.text()), st.lists(st.text()))
def test_digest_tells_lists_apart(first: list[str], second: list[str]) -> None:
    """Two lists of parts have one digest only if they are equal: parts don't run together."""
    assert (digest(*first) == digest(*second)) is (first == second)
    assert digest(*first) == digest(*(part.encode() for part in first))


def test_digest_of_odd_text() -> None:
    """File names may hold bytes that are no text."""
    assert digest("\udcff") != digest("\udcfe")


def test_own_files(tmp_path: Path) -> None:
    """Every file of the package counts; what Python, editors and wheels put beside them doesn't."""
    for name in (
        "a.py",
        "data/b.yaml",
        "data/sub/c.sh",
        "__pycache__/a.pyc",
        "schemas/x.json",
        ".hidden",
        "data/.x.swp",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".#lock").symlink_to("nowhere")
    (tmp_path / "#link.py").symlink_to("nowhere")
    found = [Path(path).relative_to(tmp_path).as_posix() for path in own_files(str(tmp_path))]
    assert found == ["a.py", "data/b.yaml", "data/sub/c.sh"]


def test_own_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The salt changes with the content, the name and the place of any file of ours."""
    package = tmp_path / "gpustack"
    (package / "compiler").mkdir(parents=True)
    monkeypatch.setattr(cache, "__file__", str(package / "compiler/cache.py"))
    seen = set()

    def look() -> None:
        own_digest.cache_clear()
        seen.add(own_digest())

    with contextlib.ExitStack() as stack:
        stack.callback(own_digest.cache_clear)
        look()
        (package / "a.yaml").write_text("a: 1")
        look()
        (package / "a.yaml").write_text("a: 2")
        look()
        (package / "a.yaml").rename(package / "b.yaml")
        look()
        (package / "b.yaml").rename(package / "compiler/b.yaml")
        look()
    assert len(seen) == 5


class Others(Shared):
    """A shared cache in memory."""

    def __init__(self, writes: bool) -> None:
        super().__init__("memory://cache", writes)
        self.held: dict[str, bytes] = {}

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        yield from [(name, self.held[name]) for name in names if name in self.held]

    def write(self, contents: Mapping[str, bytes]) -> None:
        self.held.update(contents)


def test_what_others_have_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is asked for, one part of it is in memory: the next one is asked for when that is kept."""
    asked: list[int] = []

    def fetched(_: Shared, names: list[str]) -> dict[str, bytes]:
        asked.append(len(names))
        return dict.fromkeys(names, b"data")

    monkeypatch.setattr(Shared, "_fetched", fetched)
    answers = Shared("memory://parts").read(f"{number:05}" for number in range(2 * AT_ONCE + 1))
    assert [next(answers)[0] for _ in range(AT_ONCE)] == [f"{number:05}" for number in range(AT_ONCE)]
    assert asked == [AT_ONCE]
    assert len(list(answers)) == AT_ONCE + 1
    assert asked == [AT_ONCE, AT_ONCE, 1]


def test_what_others_are_given(tmp_path: Path) -> None:
    """What means the same everywhere, and nothing that is about files here; once, and where it was said alone."""
    others = Others(writes=True)
    store = Store(tmp_path, SALT, others)
    for kind in ("stack", "component", "source", "place", "state"):
        store.put(kind, "key1", VALUE)
    store.hand_on()
    assert sorted(name.split("/")[1] for name in others.held) == ["component", "stack"]
    others.held.clear()
    store.hand_on()
    assert others.held == {}
    silent = Others(writes=False)
    reader = Store(tmp_path, SALT, silent)
    reader.put("stack", "key2", VALUE)
    reader.hand_on()
    assert silent.held == {}
