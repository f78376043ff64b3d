"""The table of refusals: nothing in it is told by nobody, and whoever refuses something finds its texts and words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Template

import yaml

from gpustack.policy.loading import foreign
from gpustack.text import refusals

TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(refusals.__file__).parent.glob("*.py")]


def strings(tree: ast.AST) -> Iterator[str]:
    """The texts that stand in the code TREE."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_each_refusal_is_in_the_table_with_its_words() -> None:
    """A case that isn't there, or a word that a text needs and nobody gives, would be a traceback instead."""
    calls = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call)]
    told = [call for call in calls if getattr(call.func, "id", "") in {"refuse", "refusal"} and len(call.args) == 3]
    assert len(told) > 10
    for call in told:
        cases = refusals.table().get(next(strings(call.args[0]), ""), {})
        named = [case for case in strings(call.args[1]) if case in cases]
        assert named or not isinstance(call.args[1], ast.Constant), ast.unparse(call)
        given = {keyword.arg for keyword in call.keywords} | {"file"}
        for text in (text for case in named for text in cases[case].values()):
            assert None in given or set(Template(text).get_identifiers()) <= given, ast.unparse(call)


def test_each_text_is_told_by_somebody() -> None:
    """The tables have no case that no code names."""
    named = {text for tree in TREES for text in strings(tree)}
    assert {case for cases in refusals.table().values() for case in cases} <= named
    source = Path(foreign.__file__)
    cases = yaml.safe_load(source.with_suffix(".yaml").read_text(encoding="utf-8"))["cases"]
    assert set(cases) <= set(strings(ast.parse(source.read_text(encoding="utf-8"))))
