"""Edits of a policy: functions that change a document in place. A path is the keys and indices that lead to a value."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from typing import Any

Step = str | int
Path = list[Step]
Document = dict[str, Any]
Edit = Callable[[Document], None]


def changed(document: Document, edits: Iterable[Edit]) -> Document:
    """A copy of DOCUMENT with EDITS done."""
    made = copy.deepcopy(document)
    for edit in edits:
        edit(made)
    return made


def holder(document: Any, path: Path) -> Any:
    """What holds the last step of PATH in DOCUMENT; maps that lack are made."""
    for step in path[:-1]:
        if isinstance(document, dict) and document.get(step) is None:
            document[step] = {}
        document = document[step]
    return document


def put(path: Path, what: Any) -> Edit:
    """Write WHAT at PATH."""

    def edit(document: Document) -> None:
        holder(document, path)[path[-1]] = what

    return edit


def drop(path: Path) -> Edit:
    """Take PATH out, and what is empty then."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        del at[path[-1]]
        if not at and len(path) > 2:
            drop(path[:-1])(document)

    return edit


def named(path: Path, entry: Any) -> Edit:
    """Add ENTRY to the list at PATH, in place of one of its name."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        kept = [each for each in at.get(path[-1]) or [] if "name" not in each or each["name"] != entry.get("name")]
        at[path[-1]] = [*kept, entry]

    return edit


def move(path: Path, to: Path) -> Edit:
    """What stands at PATH, at TO instead."""

    def edit(document: Document) -> None:
        what = holder(document, path)[path[-1]]
        drop(path)(document)
        put(to, what)(document)

    return edit


def rename(path: Path, name: str) -> Edit:
    """Call the last key of PATH by NAME."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        made = {name if key == path[-1] else key: what for key, what in at.items()}
        at.clear()
        at.update(made)

    return edit


def reword(path: Path, inside: tuple[int, int], word: str) -> Edit:
    """Write WORD for the one at the line and column INSIDE of the text at PATH."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        lines = at[path[-1]].split("\n")
        line, column = inside[0] - 1, inside[1] - 1
        rest = re.sub(r"^(?:\"[^\"]*\"|[^\s:,{}\[\]]+)", lambda _: word, lines[line][column:])
        at[path[-1]] = "\n".join([*lines[:line], lines[line][:column] + rest, *lines[line + 1 :]])

    return edit


def both(*edits: Edit) -> Edit:
    """EDITS, one after the other."""

    def edit(document: Document) -> None:
        for each in edits:
            each(document)

    return edit


def without_line(path: Path, line: int) -> Edit:
    """Take a LINE out of the text at PATH."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        lines = at[path[-1]].split("\n")
        at[path[-1]] = "\n".join([*lines[: line - 1], *lines[line:]])

    return edit


def word(path: Path, what: str, text: str) -> Edit:
    """TEXT for the longest word of the text at PATH that WHAT names."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        told = set(re.findall(r"\w+", what))
        old = max(told & set(re.findall(r"\w+", at[path[-1]])), key=len)
        at[path[-1]] = re.sub(rf"\b{old}\b", text, at[path[-1]])

    return edit


def everywhere(path: Path, text: str) -> Edit:
    """TEXT in place of what stands at PATH, wherever it stands in the object."""

    def renamed(part: Any, old: Any) -> Any:
        if isinstance(part, dict):
            return {text if key == old else key: renamed(item, old) for key, item in part.items()}
        return [renamed(item, old) for item in part] if isinstance(part, list) else text if part == old else part

    def edit(document: Document) -> None:
        objects = holder(document, path[:3])
        old = holder(document, path)[path[-1]] if isinstance(path[-1], int) or path[-1] == "name" else path[-1]
        objects[path[2]] = renamed(objects[path[2]], old)

    return edit


def replace(path: Path, old: str, new: str) -> Edit:
    """Write NEW for OLD in the text at PATH."""

    def edit(document: Document) -> None:
        at = holder(document, path)
        assert old in at[path[-1]]
        at[path[-1]] = at[path[-1]].replace(old, new)

    return edit
