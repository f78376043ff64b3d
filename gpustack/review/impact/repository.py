"""IMP0xx: what is in the repository beside policies: it belongs to no cluster, and no rule finds it in changes.

The pages are rules like all others; whoever looks at the files makes the effects (`effect`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .effects import Effect
from .rule import RULES, Hit, rule
from .subject import Subject


@rule("IMP001", 0)
def not_rendered(subject: Subject) -> Iterator[Hit]:
    """Something below the rendered folder isn't rendered."""
    del subject
    yield from ()


@rule("IMP002", 1, 3, 4)
def steers_the_review(subject: Subject) -> Iterator[Hit]:
    """A file changes that steers the review, or that nobody knows."""
    del subject
    yield from ()


@rule("IMP003", 1)
def around_rings(subject: Subject) -> Iterator[Hit]:
    """A change goes around what rings are for."""
    del subject
    yield from ()


@rule("IMP004", 5)
def by_rings(subject: Subject) -> Iterator[Hit]:
    """A change goes through the rings."""
    del subject
    yield from ()


def effect(rule_id: str, tier: int, where: str, what: str, *, before: str = "", after: str = "") -> Effect:
    """An effect of RULE_ID on the file WHERE, in no cluster; BEFORE and AFTER are digests of the file."""
    return Effect(rule_id, tier, where, what, RULES[rule_id].page.remedy, (), before=before, after=after)
