"""Files that a change touches beside policies and what they render to: what CI runs, what it runs with, what is let
pass, and all that nobody knows.

Solves: a pull request that changes what steers the review judges itself, and no list of such files is ever complete:
bots, engines, editors and shells each read files of their own. So what is known is the other half: what gpustack reads
and judges, and text that nothing reads (`inert`). `diff` tells every other file that a change touches.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from ..catalog import _data, kinds
from ..model import GpustackError, few
from ..policy.loading.decisions import ACCEPTANCES
from .diff.objects import mapping
from .diff.sides import LOADER
from .images import lock
from .impact import repository
from .impact.effects import Effect, digest
from .impact.tiers import PLANNED, POWER, ROUTINE, UNCLASSIFIED

_LISTS = _data.read(Path(__file__).with_suffix(".yaml"))
FOLDERS: tuple[str, ...] = (*_LISTS["folders"], f"{kinds.FOLDER}/")
"""Folders of which every file steers."""
FILES: tuple[str, ...] = tuple(_LISTS["files"])
"""Files that are known to steer, by their paths from the project on; * is anything but a slash. Below .github and
.gitlab all are meant. `init` asks for owners of them."""
_FILES = re.compile("|".join(re.escape(each.lower()).replace(r"\*", "[^/]*") for each in FILES))
_FOLLOWED, _ORDERS = (frozenset(_LISTS[each]) for each in ("followed", "orders"))
_JUDGED, _KNOWN_TEXT, _OTHER_TEXT = (re.compile("|".join(_LISTS[each])) for each in ("judged", "text", "other_text"))
Content = tuple[bytes | None, bytes | None]
"""A file before and after; None where there is none. What is not a plain file begins with a word that says so."""


MARKS = {b"link\n": "as a link it shows what is somewhere else", b"executable\n": "it can be executed, or could be"}
"""What the content of a file begins with that isn't plain, and what that means."""


def steers(path: str) -> bool:
    """Whether the file PATH, from the project on, steers the review."""
    low = path.lower()  # on some file systems Makefile and makefile are one
    return low.startswith(FOLDERS) or bool(_FILES.fullmatch(low))


def inert(path: str, out: str = "dist") -> bool:
    """Whether a change of the file PATH, from the project on, is judged elsewhere or can't steer anything. OUT is the
    rendered folder, all of which must be what policies render to."""
    if path.startswith(f"{out}/"):
        return True
    return _text(path) == ROUTINE or (_visible(path) and bool(_JUDGED.fullmatch(path)) and not steers(path))


def _visible(path: str) -> bool:
    return not any(part.startswith(".") for part in path.split("/"))


def _text(path: str) -> int | None:
    """The tier of a change of PATH where that is text for people by its place and name; None where it may be more."""
    *folders, name = path.lower().split("/")
    followed = name.partition(".")[0] in _ORDERS or not _FOLLOWED.isdisjoint(folders)
    if followed or steers(path) or not _visible(path):
        return None
    if _KNOWN_TEXT.fullmatch(path):
        return ROUTINE
    return UNCLASSIFIED if _OTHER_TEXT.fullmatch(path) else None


def around(path: str) -> bool:
    """Whether the file PATH, in a folder above the project (../), is where something that steers it may be: right in
    such a folder, in a hidden one there, or in one of CI. All else there is other people's."""
    if not path.startswith("../"):
        return False
    first, _, rest = _from_above(path).partition("/")
    return not rest or first.startswith(".") or f"{first.lower()}/" in FOLDERS or steers(_from_above(path))


def inert_above(path: str) -> bool:
    """Whether a change of the file PATH, above the project, can't steer anything: it is text."""
    return _text(_from_above(path)) == ROUTINE


def _from_above(path: str) -> str:
    """PATH without the steps up."""
    return re.sub(r"^(?:\.\./)+", "", path)


def effects(touched: Mapping[str, Content]) -> Iterator[Effect]:
    """What it does that the files TOUCHED differ."""
    for path, (before, after) in sorted(touched.items()):
        tier, what = _judged(path, before, after)
        yield repository.effect("IMP002", tier, path, what, before=_digest(before), after=_digest(after))


def _digest(content: bytes | None) -> str:
    return digest(None if content is None else content.decode("utf-8", "surrogateescape"))


def _judged(path: str, before: bytes | None, after: bytes | None) -> tuple[int, str]:
    step = "is new" if before is None else "is removed" if after is None else "is another"
    if path == ACCEPTANCES:
        return UNCLASSIFIED, f"{step}: it says what somebody accepts"
    if path == lock.FILE:
        return _lock(before, after)
    for mark, what in MARKS.items():
        if any(side is not None and side.startswith(mark) for side in (before, after)):
            return POWER, f"{step}: {what}"
    if _text(path) is not None:
        return UNCLASSIFIED, f"{step}: it is text"
    return POWER, f"{step}: {_why(path)}"


def _why(path: str) -> str:
    if path.lower().startswith(f"{kinds.FOLDER}/"):
        return "it says which objects of other software are valid, and whether they have a namespace"
    if steers(_from_above(path)):
        return "it steers the review, or what runs it"
    if path.startswith(".") or "/." in path or "/" not in path:
        return "tools look for files in such places, and no list of them is complete"
    return "gpustack doesn't read it, and nobody knows what does"


def _lock(before: bytes | None, after: bytes | None) -> tuple[int, str]:
    """What becomes of the digests: another version of an image gets its own, one that stays keeps its."""
    try:
        old, new = (lock.read(mapping(yaml.load(side, LOADER)), lock.FILE) if side else {} for side in (before, after))  # noqa: S506 - a safe loader
    except (GpustackError, yaml.YAMLError, ValueError, RecursionError):
        return POWER, "can't be read"
    moved = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if moved:
        return POWER, f"another digest for {few(moved, 3)}, which keeps its name"
    if after is None:
        return POWER, "is removed"
    return PLANNED, f"{len(new.keys() - old.keys())} images are new, {len(old.keys() - new.keys())} are gone"
