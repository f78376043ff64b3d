"""What is not a regular file is never read, and nobody waits for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpustack.text.regular import open_regular, read_regular
from tests.odd import ODD, make_odd


@pytest.mark.parametrize("what", ODD)
def test_odd_things(tmp_path: Path, what: str) -> None:
    """A pipe, a socket, a device, a folder or a link to one of them is an OSError at once, followed or not."""
    path = tmp_path / "x"
    make_odd(path, what)
    for follow in (True, False):
        with pytest.raises(OSError, match=r".+"):
            read_regular(path, follow=follow)


def test_regular_files(tmp_path: Path) -> None:
    """A regular file is read, to its end or to the limit; a link to one where links are followed."""
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    (tmp_path / "link").symlink_to(file)
    assert (read_regular(file), read_regular(file, limit=2), read_regular(tmp_path / "link")) == (b"abc", b"ab", b"abc")
    with pytest.raises(OSError, match="symbolic"):
        read_regular(tmp_path / "link", follow=False)
    with open_regular(file) as opened:
        assert os.get_inheritable(opened.fileno()) is False
