"""The pages of rules are made from the rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import gpustack
from gpustack.checks.errors import RAISED
from gpustack.checks.rule import Rule, all_rules
from gpustack.review.impact import rule as impact
from tools.rule_pages import RULES, raising, rule_pages

PAGES = {path.name: (path, wanted) for path, wanted in rule_pages()}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_current(name: str) -> None:
    """docs/rules has what docstrings and data files say: python tools/make_docs.py writes it anew."""
    path, wanted = PAGES[name]
    assert path.read_text(encoding="utf-8") == wanted


def test_pages_are_of_rules() -> None:
    """There is no page of a rule that is gone."""
    assert {path.name for path in RULES.iterdir()} == PAGES.keys()


@pytest.mark.parametrize(
    ("rooms", "rules", "parts"),
    [
        (("checks", "tenants"), all_rules(), ("why", "bad", "good")),
        (("review",), impact.all_rules(), ("why", "do")),
    ],
)
def test_data_files_are_of_rules(
    rooms: Sequence[str], rules: Sequence[Rule | impact.Rule], parts: tuple[str, ...]
) -> None:
    """Beside a module with rules stands a file with a page for each of them, and no other: none twice (this reader
    refuses it), and nothing in it that nobody reads."""
    wanted: dict[Path, set[str]] = {}
    for rule in rules:
        wanted.setdefault(Path(inspect.getfile(rule.check)).with_suffix(".yaml"), set()).add(rule.id)
    files = [path for room in rooms for path in (Path(gpustack.__file__).parent / room).rglob("*.yaml")]
    read = {path: YAML(typ="safe").load(path) for path in files if path.stem != "errors"}
    pages = {path: said for path, said in read.items() if any(re.fullmatch(r"[A-Z]{3}[0-9]{3}", key) for key in said)}
    assert {path: set(said) for path, said in pages.items()} == wanted
    told = ("what", "reason", "remedy", "cases")  # what findings say, where their hits don't
    assert {tuple(part for part in one if part not in told) for said in pages.values() for one in said.values()} == {
        parts
    }
    texts = [text for said in pages.values() for one in said.values() for text in each_text(one)]
    assert all(isinstance(text, str) and text.strip() for text in texts)


def each_text(said: dict[str, Any]) -> Iterator[Any]:
    """The texts of a page or a case."""
    for name, text in said.items():
        yield from (part for case in text.values() for part in case.values()) if name == "cases" else (text,)


def test_the_list_says_who_raises_what() -> None:
    """Each id that is not a rule is in the list, with at least one file that raises it."""
    assert raising().keys() == RAISED.keys()
    assert all(raising().values())
