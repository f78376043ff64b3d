"""For people: every finding with its line, and a last line that counts."""

from ...compiler.judge import also
from ..common import counted
from ..text import text
from . import Report


def write(report: Report) -> str:
    """The findings, then one line with how many there are."""
    known = ((name, count) for name, count in report.counts.items() if count)
    counts = [f"{count} waived" if name == "waived" else counted(count, name) for name, count in known]
    last = f"{counted(len(report.lint.clusters), 'cluster')}: {', '.join(counts) or 'nothing to say'}"
    return "\n".join([*(text(also(item)) for item in report.lint.findings), last]) + "\n"
