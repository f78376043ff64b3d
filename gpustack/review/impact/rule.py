"""What a rule of impact is, and the registry of all of them.

The docstring of a rule is the title of its page in docs/impact.md. Why it matters, and what a reviewer can do, stand
under `why` and `do` in the data file beside its module, and are read for the rules that find something.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

from ...checks.pages import parts
from .subject import Subject

Range = tuple[int, int]
"""The fewest and the most of something."""

_SOURCE = re.compile(r"\s+\((?:[a-z-]+\.md\b|[A-Z][0-9]+\b|#)[^)]*\)")
"""Where a fact is from, for those who work on the code."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One effect in one cluster: WHERE (an object or a pool, "" for the cluster), and WHAT happens, as a sentence.

    `nodes` is on how many nodes, None where that isn't known or has no meaning. It stands apart so that the effects of
    many clusters can be told as one. `remedy` replaces what the rule's page says. `tier` is the one that holds here, of
    those that the rule names; None for the first of them. `about` are the objects where it is about several."""

    where: str
    what: str
    nodes: Range | None = None
    remedy: str = ""
    tier: int | None = None
    about: tuple[str, ...] = ()


Check = Callable[[Subject], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Rule:
    """A registered rule. `tiers` are those that its hits may have; the first is that of a hit that says none. With
    `parts` it has nothing to say of a cluster that comes or goes as a whole."""

    id: str
    tiers: tuple[int, ...]
    check: Check
    parts: bool = False

    def hits(self, subject: Subject) -> Iterator[Hit]:
        return iter(()) if self.parts and subject.whole else self.check(subject)

    @cached_property
    def page(self) -> Page:
        """What is told of it. Raises ValueError where a part is lacking."""
        title, *said = parts(self.check, self.id, "why", "do")
        why, remedy = (" ".join(_SOURCE.sub("", part).split()) for part in said)
        return Page(title.rstrip("."), why, remedy)


RULES: dict[str, Rule] = {}
"""The rules of the modules that were imported."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by its id. A module with rules is one beside which their pages stand."""
    for pages in Path(__file__).parent.glob("*.yaml"):
        import_module(f"{__package__}.{pages.stem}")
    return tuple(RULES[name] for name in sorted(RULES))


def rule(id: str, *tiers: int, parts: bool = False) -> Callable[[Check], Check]:  # noqa: A002 - its name in what is found
    """Register a function as rule ID; TIERS and PARTS as in `Rule`. Ids are stable: one that goes stays unused."""

    def register(check: Check) -> Check:
        if id in RULES:
            raise ValueError(f"two rules are called {id}: {RULES[id].check.__name__} and {check.__name__}")
        RULES[id] = Rule(id, tiers, check, parts)
        return check

    return register
