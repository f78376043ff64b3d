"""The first promise of text/emit.py: every reader takes a text for the value that it was written from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.text.emit import JSON, emit_value
from tests.readers.go_reader import GoReader, go_reader
from tests.readers.python_readers import PYTHON_READERS, same
from tests.readers.strategies import VALUE
from tests.readers.traps import TRAPS

PLACES: dict[str, Callable[[str], JSON]] = {
    "alone": lambda text: text,
    "value": lambda text: {"data": text},
    "item": lambda text: {"args": [text, text]},
    "item of a list in a list": lambda text: [[text], "a"],
    "value in an item": lambda text: {"env": [{"name": "a", "value": text}, {text: "a"}]},
    "key of a string": lambda text: {text: "a"},
    "key of a mapping": lambda text: {"a": {text: {text: 1}}},
    "key of a list": lambda text: {text: [text]},
}


@pytest.fixture(scope="session")
def go() -> GoReader:
    """Kubernetes' own reader; where it can't be had the tests fail and say what to do."""
    return go_reader()


def parsed(reader: str, text: str) -> Any:
    """What READER makes of TEXT, or the error that it ends in."""
    try:
        return PYTHON_READERS[reader](text)
    except Exception as error:  # noqa: BLE001 - whatever a reader throws is an answer that is not the value
        return error


def misread(values: list[Any], read: list[Any]) -> list[tuple[Any, Any]]:
    """The values that a reader took for others, each with what it took them for."""
    return [(value, other) for value, other in zip(values, read, strict=True) if not same(other, value)]


@pytest.mark.parametrize("place", PLACES)
def test_go_reads_every_trap_as_the_string_it_is(go: GoReader, place: str) -> None:
    """Kubernetes' reader and go-yaml v3 take every string of the list of traps, at every place, for that string."""
    values = [PLACES[place](trap) for trap in TRAPS]
    texts = [emit_value(value) for value in values]
    for v3 in (False, True):
        assert misread(values, go.read(texts, v3=v3)) == []


@pytest.mark.parametrize("reader", PYTHON_READERS)
def test_python_reads_every_trap_as_the_string_it_is(reader: str) -> None:
    """PyYAML (libyaml and Python, YAML 1.1) and ruamel (YAML 1.2) take every trap for that string."""
    values = [{"a": [trap, {trap: trap, "b": 1}], trap: "c"} for trap in TRAPS]
    assert misread(values, [parsed(reader, emit_value(value)) for value in values]) == []


@settings(max_examples=25, deadline=None)
@given(values=st.lists(VALUE, min_size=20, max_size=60))
def test_go_reads_any_value_as_itself(go: GoReader, values: list[Any]) -> None:
    """Any JSON value survives Kubernetes' own reader and go-yaml v3; one process reads many."""
    texts = [emit_value(value) for value in values]
    for v3 in (False, True):
        assert misread(values, go.read(texts, v3=v3)) == []


@settings(max_examples=250, deadline=None)
@given(value=VALUE)
def test_python_reads_any_value_as_itself(value: Any) -> None:
    """Any JSON value survives PyYAML and ruamel, and what they read is written as the same text again."""
    text = emit_value(value)
    for reader in PYTHON_READERS:
        read = parsed(reader, text)
        assert same(read, value), reader
        assert emit_value(read) == text, reader


def test_readers_take_the_deepest_nesting(go: GoReader) -> None:
    """64 levels of mappings in lists, the most that is written, is no more than any reader takes."""
    value: Any = "a"
    for _ in range(63):
        value = {"a": [value]}
    text = emit_value(value)
    assert go.read([text]) == go.read([text], v3=True) == [value]
    assert all(parsed(reader, text) == value for reader in PYTHON_READERS)


@settings(max_examples=200, deadline=None)
@given(value=VALUE)
def test_a_text_is_one_document_without_marks(value: Any) -> None:
    """A text ends with one newline, is not empty and has no line that separates documents, so streams can be cut."""
    text = emit_value(value)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert not any(line.startswith(("---", "...", "%")) for line in text.split("\n"))
