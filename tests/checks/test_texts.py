"""What a hit leaves to its rule's page is there: the case that it names, and a word for each name in the texts."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pytest

import gpustack
from gpustack.catalog import _data
from gpustack.checks.rule import rule_modules
from gpustack.cluster.drivers import FIELDS
from tests.checks.spec_rules import said

PACKAGE = Path(gpustack.__file__).parent
OWN = {"inside", "at_key", "since", "until"}
"""Words of `hit` that no text names."""
OF_A_DRIVER = frozenset(("version", "product", "system", "pool_name", *(f"{field}_path" for field in FIELDS)))
MORE: dict[str, frozenset[str]] = {"hit": frozenset(), "about": OF_A_DRIVER}
"""What makes a hit with a page's texts, and the words that it has by itself."""
GIVEN = {"path", "field", "pools"}
"""Names that every text may have."""
OF_THE_OPERATOR = "extraObjects: [{apiVersion: nvidia.com/v1alpha1, kind: NVIDIADriver, metadata: {name: $path}}]"


class Call(NamedTuple):
    """A call of `hit` in FUNCTION, which is of RULE or helps rules ("")."""

    function: str
    rule: str
    case: str
    words: frozenset[str]


@functools.cache
def pages(module: str) -> dict[str, dict[str, Any]]:
    """The pages of the rules in MODULE."""
    found: dict[str, dict[str, Any]] = _data.read(PACKAGE / f"{module.replace('.', '/')}.yaml")
    return found


def calls(module: str) -> Iterator[Call]:
    """The calls in MODULE."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        marks = [mark for mark in function.decorator_list if isinstance(mark, ast.Call)]
        ids = [argument.value for mark in marks for argument in mark.args[:1] if isinstance(argument, ast.Constant)]
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MORE:
                more = MORE[node.func.id]
                words = frozenset(word.arg for word in node.keywords if word.arg) | more
                given = node.args[2:] if more else node.args[1:]
                for case in ast.walk(given[0]) if given else [ast.Constant("")]:
                    if isinstance(case, ast.Constant) and isinstance(case.value, str):
                        yield Call(function.name, str(ids[0]) if ids else "", case.value, words - OWN)


def texts(page: dict[str, Any], case: str) -> dict[str, str]:
    """What PAGE says of CASE, by part."""
    said = {**page, **page["cases"][case]} if case else page
    return {part: said[part] for part in ("what", "reason", "remedy") if part in said}


def names(text: str) -> set[str]:
    """The names in TEXT. Raises ValueError for a dollar that begins none."""
    template = Template(text)
    assert template.is_valid(), text
    return set(template.get_identifiers())


def lacking(call: Call, page: dict[str, Any]) -> set[str]:
    """What CALL lacks that PAGE asks of it: the case, or words."""
    if call.case and call.case not in page.get("cases", {}):
        return {call.case}
    said = texts(page, call.case)
    return {"what"} - said.keys() | {name for text in said.values() for name in names(text)} - call.words - GIVEN


@pytest.mark.parametrize("module", [*rule_modules()])
def test_hits_find_their_texts(module: str) -> None:
    """A hit names a case that there is, or none, and has a word for each name in its texts."""
    for call in calls(module):
        asked = [pages(module)[call.rule]] if call.rule else list(pages(module).values())
        assert not min((lacking(call, page) for page in asked), key=len), call


@pytest.mark.parametrize("module", [*rule_modules()])
def test_cases_are_named(module: str) -> None:
    """No case of a page is left over, and each dollar in a text begins a name or is written twice."""
    cases = {case for page in pages(module).values() for case in page.get("cases", {})}
    assert cases == {call.case for call in calls(module)} - {""}
    for page in pages(module).values():
        for text in (text for case in ("", *page.get("cases", {})) for text in texts(page, case).values()):
            assert names(text) is not None


def test_words_are_plain_text() -> None:
    """A word stands in a text as it is, also one that looks like a name: policies say what they like."""
    (found,) = said("GPU208", OF_THE_OPERATOR)
    assert found.what == "the NVIDIADriver $path is an object of the GPU operator, which isn't here"
