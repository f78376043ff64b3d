"""What the rules mean that the page names: their pages in docs/, which whoever reads the report hasn't got."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...checks import errors, pages, rule
from ..impact.rule import all_rules
from .frame import Section, prose

_LINK = re.compile(r'href="#((?:GPU|IMP)\d+)"')


def section(parts: Iterable[Section]) -> Section:
    """The section of the rules that PARTS link to."""
    named = {name for part in parts for name in _LINK.findall(part.body)}
    made = []
    for name, title, said in _known() if named else ():
        body = "".join(f"<p>{prose(part)}</p>\n" for part in said.split("\n\n") if part)
        if name in named:
            made.append(f'<article id="{name}" data-row><h3>{name}: {prose(title)}</h3>\n{body}</article>\n')
    return Section("rules", "What the rules mean", "".join(made))


def _known() -> Iterator[tuple[str, str, str]]:
    """The id of each rule, its title and its page."""
    yield from ((name, what, "") for name, what in errors.RAISED.items())
    yield from ((one.id, page.title, page.why) for one in rule.all_rules() for page in [pages.page(one)])
    yield from ((one.id, one.page.title, f"{one.page.why}\n\nWhat to do: {one.page.remedy}") for one in all_rules())
