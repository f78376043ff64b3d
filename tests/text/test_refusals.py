"""The tables of refusals: nobody leaves a text of them untold, and who refuses something finds its texts and words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest

from gpustack.cli import refusals as cli
from gpustack.compiler import refusals as compiler
from gpustack.policy.language import forms as language
from gpustack.policy.loading import foreign
from gpustack.text import refusals as text
from gpustack.text.refusals import Texts

OF_FOREIGN = {"kinds", "files", "places"}
"""Tables of their own beside the texts."""
ROOMS = [pytest.param(room.TEXTS, id=room.__name__) for room in (cli, compiler, text, language)]


def strings(tree: ast.AST) -> Iterator[str]:
    """The texts that stand in the code TREE."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def trees(texts: Texts) -> list[ast.Module]:
    """The code of the room whose table TEXTS is. Loading refuses in the words of the language as well."""
    room = texts.path.parents[1 if texts is language.TEXTS else 0]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in room.rglob("*.py")]


def told(texts: Texts, call: ast.Call) -> Iterator[dict[str, str]]:
    """What CALL, a refusal, may say."""
    entry: dict[str, Any] = texts.table[next(strings(call.args[0]))]
    named = list(strings(call.args[1])) if len(call.args) > 1 else [""]
    if "what" in entry:
        assert named == [""]
        yield entry
    elif isinstance(call.args[1], ast.Constant):
        yield entry[named[0]]
    else:
        yield from (entry[name] for name in named if name in entry)


@pytest.mark.parametrize("texts", ROOMS)
def test_each_refusal_is_in_the_table_with_its_words(texts: Texts) -> None:
    """A case that isn't there, or a word that a text needs and nobody gives, would be a traceback instead."""
    nodes = [node for tree in trees(texts) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    names = {"refuse_as"} if texts is language.TEXTS else {"said", "refuse", "refusal"}
    calls = [node for node in nodes if getattr(node.func, "id", "") in names and isinstance(node.args[0], ast.Constant)]
    assert {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)} == set(texts.table)
    for call in calls:
        given = {keyword.arg for keyword in call.keywords} | ({"file"} if len(call.args) > 2 else set())
        for said in told(texts, call):
            words = {word for sentence in said.values() for word in Template(sentence).get_identifiers()}
            assert None in given or words <= given, ast.unparse(call)


@pytest.mark.parametrize("texts", [*ROOMS, pytest.param(foreign.TEXTS, id="foreign")])
def test_each_text_is_told_by_somebody(texts: Texts) -> None:
    """The tables have no case that no code names."""
    code = trees(texts) if texts is not foreign.TEXTS else [ast.parse(Path(foreign.__file__).read_text("utf-8"))]
    entries = [entry for name, entry in texts.table.items() if name not in OF_FOREIGN and "what" not in entry]
    assert {case for entry in entries for case in entry} <= {text for tree in code for text in strings(tree)}
