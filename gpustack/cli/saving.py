"""Writes the one file that somebody asked for: a report, a picture, the lock.

It is replaced as one: whoever looks at it finds the old text or the new one, also when the disk is full, the program is
killed, or two of them write it. A link in its place is replaced as well and leads nowhere: it may have come with a
clone. A device is written to, and so is a pipe that somebody reads; nobody waits for a reader.
"""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from ..compiler.beside import SCRATCH
from ..model import OutputError

_FLAGS = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)


def save(path: Path, text: str, what: str, remedy: str) -> None:
    """Write TEXT to PATH, and the folders above it. Raises OutputError, which calls it WHAT and says the REMEDY."""
    content = text.encode("utf-8", "backslashreplace")
    try:
        if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir() raises for a name that is too long
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        if special(path):
            overwrite(path, content)
        else:
            replace(path, content)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise OutputError.of("GPU924", f"{what} {path} can't be written: {reason}", remedy=remedy) from None


def special(path: Path) -> bool:
    """Whether PATH is a device, a pipe or the like. What the system keeps in /dev and /proc is never replaced: it may
    be a link to our own output, which is a file today."""
    absolute = os.path.abspath(path)
    if absolute.startswith(("/dev/", "/proc/")) and not absolute.startswith("/dev/shm/"):  # noqa: S108 - plain memory
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def replace(path: Path, content: bytes) -> None:
    """Write CONTENT beside PATH and put it there."""
    fresh = path.with_name(f"{SCRATCH}{secrets.token_hex(8)}")
    try:
        descriptor = os.open(fresh, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    except PermissionError:
        if path.is_symlink() or not path.exists():
            raise
        overwrite(path, content)  # the folder takes no new file, but this one may be ours: a mounted one, perhaps
        return
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            if path.exists() and not path.is_symlink():
                with contextlib.suppress(OSError):  # another's file, or a system without
                    os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def overwrite(path: Path, content: bytes) -> None:
    """Write CONTENT into what is at PATH, without waiting for whoever reads it to come."""
    descriptor = os.open(path, _FLAGS | os.O_NONBLOCK | os.O_TRUNC)
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        file.write(content)
