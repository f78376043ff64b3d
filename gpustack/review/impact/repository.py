"""IMP0xx: what is in the repository beside policies: it belongs to no cluster, and no rule finds it in changes.

The pages are rules like all others; whoever looks at the files makes the effects (`effect`).
"""

from collections.abc import Iterator

from .effects import Effect
from .rule import RULES, Hit, rule
from .subject import Subject


def _told_by_others(rule_id: str, title: str, *tiers: int) -> None:
    """A rule that finds nothing itself, so that its page is one of all."""

    def nothing(subject: Subject) -> Iterator[Hit]:
        del subject
        yield from ()

    nothing.__doc__ = title
    rule(rule_id, *tiers)(nothing)


_told_by_others("IMP001", "Something below the rendered folder isn't rendered.", 0)
_told_by_others("IMP002", "A file changes that steers the review, or that nobody knows.", 1, 3, 4)
_told_by_others("IMP003", "A change goes around what rings are for.", 1)
_told_by_others("IMP005", "What is merged of a cluster is in its artifact alone.", 1)
_told_by_others("IMP004", "A change goes through the rings.", 5)
_told_by_others("IMP006", "Another version of gpustack renders clusters.", 5)


def effect(rule_id: str, tier: int, where: str, what: str, *, before: str = "", after: str = "") -> Effect:
    """An effect of RULE_ID on the file WHERE, in no cluster; BEFORE and AFTER are digests of the file."""
    return Effect(rule_id, tier, where, what, RULES[rule_id].page.remedy, (), before=before, after=after)
