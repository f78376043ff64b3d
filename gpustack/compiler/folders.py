"""What dist.py asks of the file system: look at a folder, carry files over, exchange two folders, lock one.

Nothing here knows what gpustack writes. Systems differ in what they can: where two folders can't be exchanged in one
call (Linux can), the old one steps aside for a moment; where a hard link can't be made, a file is copied; where a
folder can't be locked (a network file system may refuse), the work goes on without.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..text.regular import read_regular

NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EINVAL, errno.ENXIO, errno.ENODEV}
"""What the system answers where no regular file is: nothing, a link, a pipe, a socket, a device without a driver."""


Seen = list[tuple[str, int]]
"""Files from outside: name, size, modification time and inode in one; the change time. Of an empty folder its name."""


@dataclass(frozen=True, slots=True)
class Thing:
    """What is at a path: a file, a folder, a link or something special; whether a file can be executed."""

    kind: Literal["file", "folder", "link", "special"]
    executable: bool = False


A_FILE, A_PROGRAM, A_FOLDER, A_LINK = Thing("file"), Thing("file", executable=True), Thing("folder"), Thing("link")


def thing(state: os.stat_result) -> Thing:
    """What a path with STATE is."""
    kind = stat.S_IFMT(state.st_mode)
    if kind == stat.S_IFREG:
        return A_PROGRAM if state.st_mode & 0o7111 else A_FILE
    if kind == stat.S_IFDIR:
        return A_FOLDER
    return A_LINK if kind == stat.S_IFLNK else Thing("special")


def look(
    root: Path, below: str = "", plain: Set[str] = frozenset(), but: Set[str] = frozenset(), *, deep: bool = True
) -> dict[str, Thing]:
    """All that is in the folder BELOW of ROOT, BELOW itself included, by the path from ROOT; not DEEP, what is right in
    it. Links are not followed, ROOT's own included. Files that are known to be PLAIN are not looked at again; the paths
    BUT, and what is below them, not at all.

    Raises OSError for a folder that can't be read: what isn't seen can't be judged, and would not be carried over."""
    there: dict[str, Thing] = {}
    if below:
        try:
            there[below] = thing(os.lstat(root / below))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        if there[below].kind != "folder":
            return there
    elif root.is_symlink() or not root.is_dir():
        return {}
    waiting = [below]
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if name in but:
                    continue
                known = name in plain and entry.is_file(follow_symlinks=False)
                there[name] = A_FILE if known else thing(entry.stat(follow_symlinks=False))
                if deep and there[name] is A_FOLDER:
                    waiting.append(name)
    return there


def regular_files(root: Path) -> set[str]:
    """The names of the regular files below ROOT, nothing behind a link. Raises OSError as `look` does."""
    return {name for name, seen in look(root).items() if seen.kind == "file"}


def read(path: Path | str) -> bytes | None:
    """The content of PATH, None where no regular file is: engines and reviewers see links, not what is behind."""
    try:
        return read_regular(path, follow=False)
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise


def scan(root: Path | str) -> Seen:
    """How each file below ROOT looks, and which folders are empty. Raises OSError."""
    seen: Seen = []
    folders, start = [str(root)], len(str(root))
    while folders:
        folder = folders.pop()
        held = len(folders) + len(seen)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    state = entry.stat(follow_symlinks=False)
                    steady = f"{entry.path[start:]}:{state.st_size}:{state.st_mtime_ns}:{state.st_ino}"
                    seen.append((steady, state.st_ctime_ns))
        if held == len(folders) + len(seen):
            seen.append((f"{folder[start:]}/", 0))
    return sorted(seen)


def carry(old: str, new: str) -> None:
    """Take a file over into a new folder, which is there; a copy where the file system has no hard links."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise
        shutil.copy2(old, new, follow_symlinks=False)


def exchange(fresh: Path, root: Path, aside: Path) -> None:
    """Put FRESH in ROOT's place; afterwards FRESH holds what was there. Atomic where the system can exchange two
    folders.

    Elsewhere the old folder steps ASIDE for a moment; `recover` puts it back if the process dies in that moment."""
    if not root.exists():
        fresh.rename(root)
    elif not atomic_exchange(fresh, root):
        root.rename(aside)
        fresh.rename(root)
        shutil.rmtree(aside, ignore_errors=True)


def atomic_exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one system call; False where the system or the file system can't."""
    if sys.platform != "linux":
        return False
    here, rename_exchange = -100, 2
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(here, os.fsencode(first), here, os.fsencode(second), rename_exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
        return False
    raise OSError(code, os.strerror(code), str(second))


def recover(aside: Path, root: Path) -> None:
    """Put back the folder that a killed render had moved ASIDE, where the new one did not come to ROOT any more."""
    if root.exists():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.rename(root)


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of the folder OUT, waiting for whoever has it.

    Where it can't be made or locked (a network file system may refuse), the render goes on without."""
    descriptor = None
    with contextlib.suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(out, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def leads_out(path: str) -> bool:
    """Whether PATH, from a folder of ours on, may lead out of it."""
    return path.startswith("/") or ".." in path.split("/")


def above(name: str) -> Iterator[str]:
    """The folders that NAME, with slashes, stands in."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
