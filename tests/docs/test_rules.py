"""The pages of rules are made from the rules."""

from __future__ import annotations

import pytest

from gpustack.checks.errors import RAISED
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


def test_the_list_says_who_raises_what() -> None:
    """Each id that is not a rule is in the list, with at least one file that raises it."""
    assert raising().keys() == RAISED.keys()
    assert all(raising().values())
