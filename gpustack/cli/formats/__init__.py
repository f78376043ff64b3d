"""Findings of any verb, in the formats that other programs read: a module each, with `write(report) -> str`. What
`diff` and `images` print beside findings has formats of its own: `diff/` and `images.py`.

They return text; `tell` prints it.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from ...compiler.lint import Lint
from ...model import SEVERITIES, Finding

FORMATS = {
    "text": "for people: the line, why it matters and what to do",
    "json": "all that there is to know, versioned",
    "sarif": "SARIF 2.1.0, which code scanning services show",
    "github": "annotations of GitHub Actions",
    "junit": "JUnit, which CI servers show: a test suite for each cluster",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and how the verb ends: `failing` are the severities of what makes it fail. `looked`: when a
    cluster was looked at, RFC 3339, "" where none was; `rendered`: the digest of what is rendered for each."""

    lint: Lint
    failing: tuple[str, ...]
    verb: str = "lint"
    looked: str = ""
    rendered: Mapping[str, str] = field(default_factory=dict)

    @property
    def code(self) -> int:
        if self.lint.unusable:
            return 4
        return 2 if any(self.fails(item.finding) for item in self.lint.findings) else 0

    def fails(self, finding: Finding) -> bool:
        """Whether FINDING is one that the verb fails for."""
        return finding.severity in self.failing

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity; those that were waived count for themselves."""
        counts = Counter("waived" if item.finding.waived else item.finding.severity for item in self.lint.findings)
        return {name: counts[name] for name in (*SEVERITIES, "waived")}


def write(name: str, report: Report) -> str:
    """REPORT in the format NAME, one of FORMATS, with a line end."""
    text: str = import_module(f"{__name__}.{name}").write(report)
    return text


def tell(name: str, report: Report) -> int:
    """Print REPORT in the format NAME; the exit code."""
    from ..text import say

    text = write(name, report)
    if name == "text":
        say(text.removesuffix("\n"))
    else:
        sys.stdout.write(text)
    return report.code
