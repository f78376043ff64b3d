"""For people: every finding with its line, and a last line that counts."""

from ...compiler.judge import also
from ..text import text
from . import Report

WORDS = {"error": "errors", "warning": "warnings", "note": "notes", "waived": "waived"}


def write(report: Report) -> str:
    """The findings, then one line with how many there are."""
    clusters = len(report.lint.clusters)
    counts = [f"{count} {name if count == 1 else WORDS[name]}" for name, count in report.counts.items() if count]
    last = f"{clusters} cluster{'' if clusters == 1 else 's'}: {', '.join(counts) or 'nothing to say'}"
    return "\n".join([*(text(also(item)) for item in report.lint.findings), last]) + "\n"
