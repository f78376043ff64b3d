"""A rule's page: its title is the function's docstring, the rest stands in a data file beside the module (mig.yaml).

    GPU301:
      why: |
        A paragraph or two: why it matters, where the fact is from.
      bad: |
        a part of a policy's spec that the rule speaks up about
      good: |
        the same without the mistake
      what: >-
        what is wrong with $field, in the words of a finding
      reason: >-
        why it matters
      remedy: >-
        set $path to $better
      cases:
        other: {what: where the rule finds several things, its texts by the case that a hit names}

Only who shows a page or a finding reads it. `what`, `reason` and `remedy` are what findings of the rule say where a hit
of it doesn't. A `$name` in them is a word of the hit; `$path` is its path, `$field` the same without `spec.`, `$pools`
the node pools of hits that are told as one; `$$` is a dollar. Snippets stand in the spec FRAME of
tests/checks/frame.py: what they say replaces its sections, but for `cluster`, to which they add.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .rule import Rule, texts

_SOURCE = re.compile(r"\s+\([a-z-]+\.md\b[^)]*\)")
"""Where a fact is from, for those who work on the code."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is told of a rule. Snippets are YAML."""

    title: str
    why: str
    bad: str
    good: str


def page(rule: Rule) -> Page:
    """The page of RULE. Raises ValueError where a part of it is lacking."""
    title, why, bad, good = parts(rule.check, rule.id, "why", "bad", "good")
    return Page(title, _SOURCE.sub("", why).strip(), bad, good)


def parts(check: Callable[..., Any], name: str, *wanted: str) -> list[str]:
    """The title of the page of CHECK, whose id is NAME, and those of its parts that are WANTED.

    Raises ValueError where one is lacking."""
    path, said = Path(inspect.getfile(check)).with_suffix(".yaml"), texts(check, name)
    if lacking := [part for part in wanted if not said.get(part)]:
        raise ValueError(f"{path}: the page of {name} ({check.__name__}) lacks {' and '.join(lacking)}")
    if not check.__doc__:
        raise ValueError(f"{path.with_suffix('.py')}: {check.__name__} ({name}) has no docstring, its page's title")
    return [" ".join(check.__doc__.split()), *(said[part] for part in wanted)]
