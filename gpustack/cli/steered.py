"""Files that steer the review, as they are merged and as they are proposed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import GpustackError
from ..policy.regular import read_regular

if TYPE_CHECKING:
    from ..review.steering import Content
    from .git import Git


def touched(git: Git, commit: str) -> dict[str, Content]:
    """The files that steer the review and are not what they are at COMMIT, by their paths from the current folder. A
    link is none: where one takes a file's place, the file is gone.
    """
    there = dict(_merged(git, commit))
    content = dict(git.contents(there.values()))
    here = {path: _read(path) for path in _proposed()}
    both = {path: (content.get(there.get(path, "")), here.get(path)) for path in sorted({*there, *here})}
    return {path: pair for path, pair in both.items() if pair[0] != pair[1]}


def _merged(git: Git, commit: str) -> Iterator[tuple[str, str]]:
    """The steering files at COMMIT, and the names of their contents."""
    from ..review.steering import FOLDERS, steers

    top = git.ask(
        "ls-tree", "-z", "--full-tree", "--name-only", commit, *([git.prefix] if git.prefix else []), about=commit
    )
    names = [name.removeprefix(git.prefix) for name in top.split("\0") if name]
    parts = [name for name in names if steers(name)]
    parts += [name for name in names if f"{name.lower()}/" in FOLDERS]
    for part in (*parts, "docs/CODEOWNERS", "policies/waivers.yaml"):
        yield from git.files(commit, part).items()


def _proposed() -> Iterator[str]:
    """The steering files of the current folder."""
    from ..review.steering import FOLDERS, steers

    for entry in sorted(os.scandir("."), key=lambda one: one.name):
        if entry.is_dir(follow_symlinks=False) and f"{entry.name.lower()}/" in FOLDERS:
            for folder, _, files in os.walk(entry.name):
                yield from (Path(folder, name).as_posix() for name in sorted(files))
        elif steers(entry.name):
            yield entry.name
    yield from (name for name in ("docs/CODEOWNERS", "policies/waivers.yaml") if os.path.lexists(name))


def _read(path: str) -> bytes | None:
    """What is in PATH; None for what is no regular file."""
    if Path(path).is_symlink():
        return None
    try:
        return read_regular(Path(path))
    except (GpustackError, OSError):
        return None
