"""YAML 1.2 on libyaml: text -> graph of nodes.

Solves: PyYAML reads YAML 1.1, where `no` is false, 12:30 is 750 and 1_000 is a thousand, and where a repeated key
silently wins. Only its C parser is used here, which knows no types; what the nodes mean is decided in `construct.py`.

Nothing is constructed before the graph is known to be small: nesting is bounded on the text before the recursive C
composer sees it, and what aliases expand to is counted on the graph.
"""

import contextlib
import gc
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NoReturn

import yaml
from yaml._yaml import CParser

from gpustack.model import Location
from gpustack.text.refusals import refuse
from gpustack.text.source import place

MAX_DEPTH = 200
"""Levels of nesting. A CRD's schema in extraObjects has about 40."""

MAX_EXPANDED = 1_000_000
"""Values that a document with aliases may stand for, every alias written out."""

LARGE = 256 * 1024
"""Characters from which a text is worth special care."""

PLAIN, QUOTED, COLLECTION = "plain", "quoted", "collection"
"""What stands in a node's tag when the author wrote no tag."""

# Every block level starts in a column of its own, but for a list at the column of its key: two levels a column.
_DEEP_PREFIX = re.compile(r"(?:\A|[\r\n])[ \t?:-]{48}")
_MAX_BRACKETS = MAX_DEPTH - 2 * 49

Node = Any
"""A yaml.ScalarNode, SequenceNode or MappingNode."""


class _Parser(CParser):
    """libyaml with the tag of a node left as the author wrote it."""

    def resolve(self, kind: type, value: str, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else QUOTED
        return COLLECTION

    def descend_resolver(self, parent: object, index: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


def compose(text: str, file: str) -> list[Node]:
    """Return the root node of each document in TEXT that holds anything.

    Raises InputError where TEXT is not YAML, or is nested deeper than MAX_DEPTH."""
    try:
        if text.count("[") + text.count("{") > _MAX_BRACKETS or _DEEP_PREFIX.search(text):
            _check_depth(text, file)
        with _without_collector(len(text)):
            return _documents(text)
    except yaml.YAMLError as error:
        from gpustack.text.syntax import explain

        raise explain(error, text, file) from None


def events(text: str) -> Iterator[Any]:
    """The parser's events for TEXT, which take no stack. Raises yaml.YAMLError where they end too early."""
    parser = _Parser(text)
    while parser.check_event():
        yield parser.get_event()


def _documents(text: str) -> list[Node]:
    parser = _Parser(text)
    documents = []
    while parser.check_node():
        node: Node = parser.get_node()
        if node.tag != PLAIN or node.value:
            documents.append(node)
    return documents


@contextlib.contextmanager
def _without_collector(size: int) -> Iterator[None]:
    """Pause the garbage collector for a text of SIZE characters, if that is much: a graph of a million nodes holds no
    garbage, and looking for it again and again takes ten times as long as parsing."""
    if size < LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def check_expansion(node: Node, text: str, file: str) -> None:
    """Refuse a graph in which an alias lies within its own anchor, or whose aliases stand for too much."""
    if "*" not in text:
        return
    known: dict[int, tuple[int, int]] = {}
    open_nodes: set[int] = set()

    def measure(node: Node) -> tuple[int, int]:
        """Return the number of values below NODE with aliases written out, and the levels of nesting."""
        if isinstance(node, yaml.ScalarNode):
            return 1, 0
        key = id(node)
        if key in known:
            return known[key]
        if key in open_nodes:
            refuse("GPU006", "endless", mark(node, text, file))
        open_nodes.add(key)
        size, depth = 1, 0
        for child in node.value if isinstance(node, yaml.SequenceNode) else chain.from_iterable(node.value):
            child_size, child_depth = measure(child)
            size, depth = size + child_size, max(depth, child_depth)
        open_nodes.discard(key)
        if size > MAX_EXPANDED:
            refuse("GPU006", "aliases", mark(node, text, file), most=f"{MAX_EXPANDED:,}")
        if depth >= MAX_DEPTH:
            too_deep(mark(node, text, file))
        known[key] = size, depth + 1
        return known[key]

    measure(node)


def mark(node: Any, text: str, file: str) -> Location:
    """Return where NODE starts."""
    start = node.start_mark
    return place(text, file, start.line + 1, start.column + 1)


def too_deep(where: Location) -> NoReturn:
    """Refuse a text that is nested too deep at WHERE."""
    refuse("GPU006", "deep", where, most=MAX_DEPTH)


def _check_depth(text: str, file: str) -> None:
    """Follow the parser's events (which take no stack) and refuse TEXT at the first level that is too deep."""
    depth = 0
    for event in events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                too_deep(mark(event, text, file))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
