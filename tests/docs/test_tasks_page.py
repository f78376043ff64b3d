"""docs/tasks.md leads from what people want to every page, and docs/glossary.md says what words mean."""

from __future__ import annotations

import re

import pytest

from gpustack.model import STAGES
from gpustack.review.impact.tiers import TIERS
from tests.project import ROOT

TASKS = (ROOT / "docs/tasks.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text("utf-8")
ROWS = re.findall(r"^\| (?!I want|-)(.+?) \| (.+) \|$", TASKS, re.MULTILINE)
WANTED = (
    "move in from the operator",
    "add a cluster",
    "add a GPU pool",
    "share GPUs",
    "cut MIG",
    "roll a driver",
    "review a pull request",
    "roll out in rings",
    "find out why a pod is pending",
    "build for an air-gapped site",
    "leave again",
)
"""What people come for most."""


@pytest.mark.parametrize("task", WANTED)
def test_a_task_has_a_row(task: str) -> None:
    """There is one row that begins so, and it leads somewhere. That links lead to what exists is test_verbs_page's."""
    (where,) = (links for name, links in ROWS if name.startswith(task))
    assert re.search(r"\]\([^)]+\)", where)


def test_every_row_leads_somewhere() -> None:
    """No row is without a link, and no task stands there twice."""
    assert [name for name, where in ROWS if "](" not in where] == []
    assert len({name for name, _ in ROWS}) == len(ROWS)


def test_no_page_is_without_a_task() -> None:
    """Each page of docs/ itself is where some task leads to."""
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"tasks.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)", TASKS))


def test_words_can_be_found() -> None:
    """Words stand in order, and each once."""
    sections = [re.findall(r"^\*\*(.+?)\.\*\*", part, re.MULTILINE) for part in GLOSSARY.split("\n## ")[1:]]
    assert all(len(words) > 5 for words in sections)
    for words in sections:
        assert words == sorted(set(words), key=str.lower)


def test_lists_in_the_glossary_are_complete() -> None:
    """Stages are those that are rendered, in their order; tiers are counted as they are."""
    (stages,) = re.findall(r"^\*\*Stage\.\*\* (.+?)\n\n", GLOSSARY, re.MULTILINE | re.DOTALL)
    assert re.findall(r"`([a-z]+)`", stages) == list(STAGES)
    assert f"from 0 ({TIERS[0].name}) to {len(TIERS) - 1} ({TIERS[-1].name})" in GLOSSARY
