"""Standard output and standard error as the verbs see them, whatever is behind them.

Solves: both may be closed, full, or a pipe whose reader left, and Python fails on each in another way: silently, at the
print, at the flush, or after the exit code is decided. What is lost on standard output is told once, as `LostError`,
and no verb reports success then. Standard error only comments on a verdict: what can't be said there is dropped, and
the verdict stays.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO


class LostError(Exception):
    """Standard output can't be written. Not an OSError: nobody who handles those of files is to take it for one."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Stream(io.TextIOBase):
    """Writes to the stream UNDER, which is None where the program was started with a closed one. DESCRIPTOR says which
    it is: what standard output (1) can't take is LostError, what standard error can't is dropped."""

    def __init__(self, under: TextIO | None, descriptor: int) -> None:
        super().__init__()
        self.under, self.descriptor = under, descriptor

    def lost(self, error: OSError) -> None:
        """What happens where the system refuses to take text."""
        if self.descriptor == 1:
            raise LostError(OSError(error.errno, error.strerror, "standard output")) from error
        silence(self.descriptor)

    def write(self, text: str) -> int:
        try:
            if self.under is None:
                raise OSError(errno.EBADF, "the stream is closed")
            self.under.write(text)
        except OSError as error:
            self.lost(error)
        return len(text)

    def flush(self) -> None:
        try:
            if self.under is not None:
                self.under.flush()
        except OSError as error:
            self.lost(error)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.under is not None and self.under.isatty()

    def fileno(self) -> int:
        return self.under.fileno() if self.under is not None else self.descriptor


def silence(descriptor: int) -> None:
    """Let DESCRIPTOR go nowhere: what is still buffered for it must not fail once more when Python ends."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Put both streams in place of Python's. Streams that somebody put there (a test, another program) stay."""
    occupy()
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that can't show a character gets its number; files and programs get the same bytes in every
            # locale, unless somebody says which.
            said = stream.isatty() or os.environ.get("PYTHONIOENCODING")
            stream.reconfigure(errors="backslashreplace", encoding=None if said else "utf-8")
    if before[0] is None or isinstance(before[0], io.TextIOWrapper):
        sys.stdout = Stream(before[0], 1)
    if before[1] is None or isinstance(before[1], io.TextIOWrapper):
        sys.stderr = Stream(before[1], 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def occupy() -> None:
    """Open the null device in the place of each standard stream that is closed: the next file that is opened, or that a
    program we start opens, would take that place, and what is meant for the stream would go into the file."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
