"""What the rules say of the policies, and what those rules mean: whoever reads the report hasn't got docs/."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ...checks import errors, pages, rule
from ...model import Finding
from ..diff.ranges import summary
from ..impact.rule import all_rules
from ..templates import each, part
from .frame import Section, prose, rule_link, table, text

_LINK = re.compile(r'href="#((?:GPU|IMP)\d+)"')


def section(findings: Sequence[tuple[Finding, tuple[str, ...]]], total: int) -> Section:
    """The section of FINDINGS, each finding with the clusters that it is about."""
    rows = [
        [
            rule_link(one.rule),
            text(f"{one.severity}, waived by {one.waived}" if one.waived else one.severity),
            f"{text(one.location or one.path or '')}",
            part("prose", body=prose(one.what)),
            part("prose", body=prose(one.remedy)),
            text(summary(clusters, total)) if clusters else "",
        ]
        for one, clusters in findings
    ]
    columns = ["Rule", "Severity", "Where", "What", "What to do", "Clusters"]
    return Section("findings", "Findings", table(f"{len(rows)} findings", columns, rows) if rows else "")


def meanings(parts: Iterable[Section]) -> Section:
    """The section of the rules that PARTS link to."""
    named = {name for one in parts for name in _LINK.findall(one.body)}
    made = []
    for name, title, said in _known() if named else ():
        if name in named:
            body = each("paragraph", (prose(said) for said in said.split("\n\n") if said))
            made.append(part("meaning", id=name, title=prose(title), body=body))
    return Section("rules", "What the rules mean", "".join(made))


def _known() -> Iterator[tuple[str, str, str]]:
    """The id of each rule, its title and its page."""
    yield from ((name, what, "") for name, what in errors.RAISED.items())
    yield from ((one.id, page.title, page.why) for one in rule.all_rules() for page in [pages.page(one)])
    yield from ((one.id, one.page.title, f"{one.page.why}\n\nWhat to do: {one.page.remedy}") for one in all_rules())
