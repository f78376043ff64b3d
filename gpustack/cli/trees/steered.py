"""Files beside policies and what they render to, as they are merged and as they are proposed.

What is proposed is the work tree, and what Git has staged where the work tree shows it differently or not at all: a
file that is committed and not checked out is proposed all the same. What Git is told to ignore isn't, but for the
folders and files that are known to steer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from ...text.regular import read_regular
from .repository import Entry, Git, blob_name

if TYPE_CHECKING:
    from ...review.steering import Content

MARKS = {"120000": b"link\n", "100755": b"executable\n"}
"""What the content of a file that isn't plain begins with here, as review/steering.py knows it."""
PLAIN = "100644"
Shown = tuple[str, bytes]
"""The mode of a file of the work tree, as Git has it, and its content."""


def touched(git: Git, merged: Mapping[str, Entry], staged: Mapping[str, Entry], out: str) -> dict[str, Content]:
    """The files that are not as they are MERGED and that nobody else judges, by their paths from the current folder.
    STAGED is what is in the index, OUT the rendered folder."""
    from ...review.steering import inert

    rendered = f"{out}/"
    committed = (path for side in (merged, staged) for path in side if not path.startswith(rendered))
    known = {*committed, *git.others(out), *_known()}
    paths = {path for path in known if not inert(path, out) or _odd(path, merged.get(path), staged.get(path))}
    return _compared(git, paths, merged, staged, git.overlooked("."))


def _odd(path: str, *committed: Entry | None) -> bool:
    """Whether PATH is not a plain file on one side, or can be executed: then its name doesn't say what it does."""
    modes = {entry.mode for entry in committed if entry is not None and entry.blob}
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return not modes <= {PLAIN}
    executed = bool(mode & stat.S_IXUSR) and not any(entry is not None for entry in committed)
    return not modes <= {PLAIN} or not stat.S_ISREG(mode) or executed


def touched_above(git: Git, commit: str) -> dict[str, Content]:
    """The files above the current folder, up to the repository's top, that may steer it and are not as COMMIT has them,
    by their paths from there. Of what lies beside the project, other teams' folders, nothing is said."""
    from ...review.steering import around, inert_above

    ups = ["../" * count for count in range(1, git.prefix.count("/") + 1)]
    if not ups:
        return {}
    names = [f"{up}{entry.name}" for up in ups for entry in os.scandir(up) if entry.name != ".git"]
    changed = git.restaged(commit, ups[-1])
    wanted = [name for name in names if around(name if os.path.isfile(name) else f"{name}/x")]  # noqa: PTH113 - a str
    paths = {path for path in (*changed, *git.tracked(*wanted)) if around(path)}
    merged = git.entries(commit, *paths)
    staged = {path: entry for path in paths if (entry := changed.get(path, merged.get(path)))}
    paths = {path for path in paths if not inert_above(path) or _odd(path, merged.get(path), staged.get(path))}
    return _compared(git, paths, merged, staged, git.overlooked(ups[-1]))


def _compared(
    git: Git, paths: Iterable[str], merged: Mapping[str, Entry], staged: Mapping[str, Entry], overlooked: Set[str]
) -> dict[str, Content]:
    """Those of PATHS that aren't as MERGED, with both contents. Git was told not to look at what is OVERLOOKED."""
    changed: dict[str, tuple[Entry | None, Entry | Shown | None]] = {}
    for path in sorted(paths):
        then = _plain(merged.get(path))
        entry = staged.get(path)
        now = then if entry and not entry.blob else _plain(entry)  # what is being merged isn't proposed yet
        shown = _read(path, now)
        if (shown is None and path in overlooked) or _is(git, shown, then):
            if now != then:
                changed[path] = then, now
        elif not (now == then and _is(git, shown, then, lines=True)):
            changed[path] = then, shown
    entries = [each for pair in changed.values() for each in pair if isinstance(each, Entry)]
    content = dict(git.contents(entry.blob for entry in entries))

    def text(side: Entry | Shown | None) -> bytes | None:
        if side is None:
            return None
        mode, data = (side.mode, content[side.blob]) if isinstance(side, Entry) else side
        return MARKS.get(mode, b"") + data

    return {path: (text(then), text(after)) for path, (then, after) in changed.items()}


def _plain(entry: Entry | None) -> Entry | None:
    """ENTRY; None for a submodule, which is told as that (strays.py)."""
    return None if entry is None or entry.mode == "160000" else entry


def _is(git: Git, shown: Shown | None, entry: Entry | None, *, lines: bool = False) -> bool:
    """Whether what is SHOWN is ENTRY, with LINES also where its lines only end differently, as some are checked out."""
    if shown is None or entry is None:
        return shown is None and entry is None
    mode, data = shown
    return entry == Entry(mode, blob_name(git.algorithm, data.replace(b"\r\n", b"\n") if lines else data))


def _known() -> Iterator[str]:
    """The files of the current folder that are known to steer, ignored ones too."""
    from ...review.steering import FOLDERS, steers

    for entry in sorted(os.scandir("."), key=lambda one: one.name):
        known = [each for each in FOLDERS if each.startswith(f"{entry.name.lower()}/")]
        if entry.is_dir(follow_symlinks=False) and known:
            for folder, _, files in os.walk(entry.name):
                paths = (Path(folder, name).as_posix() for name in sorted(files))
                yield from (path for path in paths if path.lower().startswith(tuple(known)))
        elif steers(entry.name):
            yield entry.name
    yield from (name for name in ("docs/CODEOWNERS", "policies/waivers.yaml") if os.path.lexists(name))


def _read(path: str, staged: Entry | None) -> Shown | None:
    """What PATH is in the work tree, None for nothing; executable as it is STAGED, as not every file system knows."""
    try:
        if Path(path).is_symlink():
            return "120000", os.fsencode(Path(path).readlink())
        content = read_regular(path, follow=False)
        if staged and staged.mode.startswith("100"):
            return staged.mode, content
        return "100755" if Path(path).stat().st_mode & stat.S_IXUSR else "100644", content
    except OSError:
        return None
