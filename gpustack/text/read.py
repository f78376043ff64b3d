"""A policy or layer file as plain data, or an error that says where it can't be read and why.

Solves: everything after this module may take for granted that a document is a mapping of strings to plain values that
JSON can hold, of a bounded size, read the way YAML 1.2 says. `source.py` fetches the text, `yaml12.py` and
`construct.py` know the language; this module puts them together. Positions are not kept: `positions.py` finds them
again where they are needed.
"""

import hashlib
import pathlib
from dataclasses import dataclass, field
from typing import Any

from gpustack.text.construct import Builder
from gpustack.text.refusals import refuse
from gpustack.text.source import decode, load_bytes, place, split_lines
from gpustack.text.yaml12 import Node, check_expansion, compose, mark


@dataclass(frozen=True, slots=True)
class Document:
    """One file: the name to show, its text (without byte order mark), its data (read only) and its SHA-256."""

    file: str
    text: str = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    digest: str


def read(path: pathlib.Path, display: str) -> Document:
    """Read the policy or layer file PATH; DISPLAY is its name in messages.

    Raises InputError (GPU001 to GPU010) for whatever is not a single YAML 1.2 mapping of strings to plain values."""
    raw = load_bytes(path, display)
    text = decode(raw, display)
    return Document(display, text, parse(text, display), hashlib.sha256(raw).hexdigest())


def parse(text: str, file: str) -> dict[str, Any]:
    """Return the mapping that TEXT holds. Raises InputError, see `read`."""
    parsed = value(text, file)
    if parsed is None:
        refuse("GPU008", "empty", place(text, file, 1, 1))
    root, data = parsed
    if not isinstance(data, dict):
        refuse("GPU008", "list" if isinstance(data, list) else "value", mark(root, text, file))
    return data


def value(text: str, file: str, twice: list[tuple[str, int]] | None = None) -> tuple[Node, Any] | None:
    """The value in TEXT and its node, None if it holds none; TWICE as Builder takes it. InputError, see `read`."""
    nodes = compose(text, file)
    if not nodes:
        return None
    if len(nodes) > 1:
        _refuse_second(nodes[1], text, file)
    check_expansion(nodes[0], text, file)
    return nodes[0], Builder(text, file, twice=twice).build(nodes[0])


def _refuse_second(node: Node, text: str, file: str) -> None:
    """Refuse a second document; it starts at the `---` above its first value, if there is one."""
    lines = split_lines(text)
    first = node.start_mark.line
    start = next((i for i in range(first, -1, -1) if lines[i].startswith("---")), first)
    refuse("GPU007", "second", place(text, file, start + 1, 1), line=start + 1)
