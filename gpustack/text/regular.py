"""Opens regular files and nothing else.

Solves: whoever may put a file into policies/, dist/ or the cache may put a named pipe there as well, and a program that
opens one waits for a writer that never comes. A look before opening is not enough, as the file may be another by then;
so it is opened without waiting, and what was opened is looked at.
"""

import errno
import io
import os
import pathlib
import stat

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def open_regular(path: pathlib.Path | str, *, follow: bool = True) -> io.BufferedReader:
    """Open PATH for reading bytes. Raises OSError where it is not a regular file or, without FOLLOW, is a link."""
    descriptor = os.open(path, _FLAGS | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor, not a path


def read_regular(path: pathlib.Path | str, *, follow: bool = True, limit: int = -1) -> bytes:
    """The content of PATH, at most LIMIT bytes. Raises OSError as `open_regular` does."""
    with open_regular(path, follow=follow) as file:
        return file.read(limit)
