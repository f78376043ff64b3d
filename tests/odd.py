"""Things that may lie where a file is expected."""

from __future__ import annotations

import os
import socket
from pathlib import Path

ODD = ("pipe", "socket", "folder", "device", "link to a pipe", "link to nothing", "link to itself")


def make_odd(path: Path, what: str) -> None:
    """Put WHAT of ODD in the place of PATH."""
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(path.name)
        finally:
            os.chdir(here)
    elif what == "folder":
        path.mkdir()
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "link to a pipe":
        os.mkfifo(path.with_name(f"{path.name}.pipe"))
        path.symlink_to(f"{path.name}.pipe")
    else:
        path.symlink_to(path.name if what == "link to itself" else "nothing")
