"""What dist.py asks of the file system: look at a folder, carry files over, exchange two folders, lock one.

Nothing here knows what gpustack writes. Systems differ in what they can: where two folders can't be exchanged in one
call (Linux can), the old one steps aside for a moment; where a hard link can't be made, a file is copied; where a
folder can't be locked (a network file system may refuse), the work goes on without.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ..text.regular import read_regular

NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EINVAL, errno.ENXIO, errno.ENODEV}
"""What the system answers where no regular file is: nothing, a link, a pipe, a socket, a device without a driver."""


Seen = list[tuple[str, int]]
"""Files as they look from outside: name, size, modification time and inode in one; the change time. Of an
empty folder its name.
"""


def walk(root: Path) -> Iterator[str]:
    """The names of every file and symbolic link below ROOT, if there is one, from there on; links are not followed,
    ROOT's own included.

    Raises OSError where a folder can't be read: what isn't seen would not be carried over.
    """
    if root.is_symlink() or not root.exists():
        return
    for folder, folders, names in os.walk(root, onerror=_raise):
        below = f"{folder}/"[len(str(root)) + 1 :]
        yield from (f"{below}{name}" for name in names)
        yield from (f"{below}{name}" for name in folders if os.path.islink(f"{folder}/{name}"))  # noqa: PTH114 - a str


def regular_files(root: Path) -> set[str]:
    """The names of the regular files below ROOT, from there on: nothing behind a link counts, ROOT's own included.

    Raises OSError as `walk` does.
    """
    if root.is_symlink() or not root.is_dir():
        return set()
    names: set[str] = set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{below}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    names.add(f"{below}{entry.name}")
    return names


def read(path: Path | str) -> bytes | None:
    """The content of PATH, None where no regular file is: engines and reviewers see what a link says, not what is
    behind it.
    """
    try:
        return read_regular(path, follow=False)
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise


def _raise(error: OSError) -> None:
    raise error


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

    Elsewhere the old folder steps ASIDE for a moment; `recover` puts it back if the process dies in that moment.
    """
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

    Where it can't be made or locked (a network file system may refuse), the render goes on without.
    """
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
