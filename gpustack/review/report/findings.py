"""What the rules have to say about the policies."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Finding
from ..diff.ranges import summary
from .frame import Section, prose, rule_link, table, text


def section(findings: Sequence[tuple[Finding, tuple[str, ...]]], total: int) -> Section:
    """The section of FINDINGS, each finding with the clusters that it is about."""
    rows = [
        [
            rule_link(one.rule),
            text(f"{one.severity}, waived by {one.waived}" if one.waived else one.severity),
            f"{text(one.location or one.path or '')}",
            f'<span class="prose">{prose(one.what)}</span>',
            f'<span class="prose">{prose(one.remedy)}</span>',
            text(summary(clusters, total)) if clusters else "",
        ]
        for one, clusters in findings
    ]
    columns = ["Rule", "Severity", "Where", "What", "What to do", "Clusters"]
    return Section("findings", "Findings", table(f"{len(rows)} findings", columns, rows) if rows else "")
