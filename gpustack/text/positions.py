"""Where a value of a document stands in its text.

Solves: a diagnostic needs the line and column of a value, and the data has forgotten them. Keeping them for every value
would cost each good run what only a bad one needs. So the text is composed a second time, by ruamel.yaml, when the
first question about it is asked; the graph of nodes has all positions and is kept for the questions that follow.

ruamel.yaml takes half a minute for 4 MB, so a text that no person writes by hand is composed by the C parser that read
it. The tests compare the positions of the two.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from gpustack.model import GpustackError, Location, Path
from gpustack.text.source import place, split_lines
from gpustack.text.yaml12 import PLAIN, check_expansion, compose

BY_HAND = 256 * 1024
"""Characters up to which a text is composed by ruamel.yaml."""

Node = Any
"""A node of either parser: both have `id` (mapping, sequence, scalar), `value`, `style` and `start_mark`."""


def locate(text: str, file: str, path: Path, *, key: bool = False) -> Location:
    """Return where the value at PATH starts in TEXT (with `key`, where its key starts).

    Without such a path, the place is that of the nearest ancestor there is (of its key, if it has one), and the top of
    the file for a text that can't be read. An alias leads to its anchor, a key from `<<` to where it is written."""
    entry = _find(text, path)
    if entry is None:
        return place(text, file, 1, 1)
    key_node, value, depth = entry
    node = key_node if key_node is not None and (key or depth < len(path)) else value
    return place(text, file, node.start_mark.line + 1, node.start_mark.column + 1)


def written(text: str, path: Path) -> str | None:
    """Return the scalar at PATH as its author wrote it, quotes aside ("1.30", not 1.3), or None if there is none."""
    entry = _find(text, path)
    if entry is None or entry[2] < len(path) or entry[1].id != "scalar":
        return None
    return str(entry[1].value)


def inside_scalar(text: str, file: str, path: Path, line: int, column: int = 1) -> Location:
    """Return where LINE and COLUMN (from 1) of the text in the scalar at PATH stand in TEXT;
    where there is no such line, that of the scalar."""
    entry = _find(text, path)
    node = entry[1] if entry else None
    if node is None or node.id != "scalar":
        return locate(text, file, path)
    content = str(node.value).replace("\a", "").split("\n")  # ruamel.yaml marks where a folded text was folded
    if not 1 <= line <= len(content):
        return locate(text, file, path)
    if node.style != "|":
        at = _folded(text, node, content, line, column)
        return place(text, file, *at) if at else locate(text, file, path)
    lines = split_lines(text)
    number = node.start_mark.line + 1 + line
    if number > len(lines):
        return locate(text, file, path)
    indent = len(lines[number - 1]) - len(content[line - 1])
    return place(text, file, number, indent + column)


def _folded(text: str, node: Node, content: list[str], line: int, column: int) -> tuple[int, int] | None:
    """Where LINE and COLUMN of CONTENT, the lines of the scalar NODE, stand in TEXT; None where that can't be told.

    How a quoted or folded text is broken into lines is up to who wrote it, but that changes white space alone. So the
    place is found by counting the other characters."""
    before = sum(not char.isspace() for char in "".join((*content[: line - 1], content[line - 1][: column - 1])))
    for at, char in _written(text, node):
        if not char.isspace():
            if not before:
                return at
            before -= 1
    return None


def _written(text: str, node: Node) -> Iterator[tuple[tuple[int, int], str]]:
    """The characters of the scalar NODE as they stand in TEXT, each with its line and column, escapes resolved."""
    start, end, style = node.start_mark, node.end_mark, node.style
    lines = split_lines(text)[start.line : end.line + 1]
    places = [
        ((start.line + row + 1, col + 1), char) for row, line in enumerate(lines) for col, char in enumerate(line)
    ]
    first = (start.line + 1, start.column + 1)  # of an anchor or a tag, where there is one
    opening = next((i for i, (at, char) in enumerate(places) if at >= first and char == style), None)
    if style not in ('"', "'", ">") or opening is None:
        return
    body = places[opening + 1 :]
    if style == ">":  # its first line is a header
        body = [item for item in body if item[0][0] > places[opening][0][0]]
    position = 0
    while position < len(body):
        at, char = body[position]
        after = body[position + 1][1] if body[position + 1 : position + 2] and body[position + 1][0][0] == at[0] else ""
        if style == '"' and char == "\\":
            digits = {"x": 2, "u": 4, "U": 8}.get(after, 0)
            code = "".join(item[1] for item in body[position + 2 : position + 2 + digits])
            char = chr(int(code, 16)) if digits else " " if after in "ntrvf_NLP \t" else after
            position += 1 + len(after) + digits
        elif style == char == after == "'":
            position += 2
        elif style != ">" and char == style:
            return
        else:
            position += 1
        yield at, char


def _find(text: str, path: Path) -> tuple[Node | None, Node, int] | None:
    """Follow PATH as far as it goes: the last key (None in a list) and value, and the number of steps taken."""
    root = _root(text)
    return follow(*root, path) if root else None


def follow(node: Node, known: dict[int, _Keys], path: Path) -> tuple[Node | None, Node, int]:
    """PATH from NODE on, as far as it goes: the last key (None in a list) and value, and the number of steps taken.
    KNOWN keeps the keys of mappings for the next time."""
    key: Node | None = None
    for depth, step in enumerate(path):
        child = _child(node, step, known)
        if child is None:
            return key, node, depth
        key, node = child
    return key, node, len(path)


_Keys = dict[str, tuple[Node, Node]]


@functools.lru_cache(maxsize=8)
def _root(text: str) -> tuple[Node, dict[int, _Keys]] | None:
    """Return the graph of TEXT, and the place for the keys of its mappings, by the identity of the node."""
    try:
        nodes = compose(text, "")
        if not nodes:
            return None
        check_expansion(nodes[0], text, "")
    except GpustackError:
        return None
    return (_by_ruamel(text) if len(text) <= BY_HAND else None) or nodes[0], {}


def _by_ruamel(text: str) -> Node | None:
    """Return the graph of TEXT as ruamel.yaml composes it, None where it refuses what the other parser took."""
    import ruamel.yaml

    try:
        return ruamel.yaml.YAML(pure=True).compose(text)
    except (ruamel.yaml.error.YAMLError, ValueError, RecursionError):
        return None


def _child(node: Node, step: str | int, known: dict[int, _Keys]) -> tuple[Node | None, Node] | None:
    if node.id == "sequence":
        if isinstance(step, int) and 0 <= step < len(node.value):
            return None, node.value[step]
        return None
    return _keys(node, known).get(str(step)) if node.id == "mapping" else None


def _keys(node: Node, known: dict[int, _Keys]) -> _Keys:
    """Return key node and value node of each key of the mapping NODE, those from `<<` included."""
    if id(node) not in known:
        own: _Keys = {}
        merged: _Keys = {}
        for key, value in node.value:
            if key.value == "<<" and (key.tag == PLAIN or str(key.tag).endswith(":merge")):
                for inherited in reversed(value.value if value.id == "sequence" else [value]):
                    merged |= _keys(inherited, known) if inherited.id == "mapping" else {}
            elif key.id == "scalar":
                own[str(key.value)] = key, value
        known[id(node)] = merged | own
    return known[id(node)]
