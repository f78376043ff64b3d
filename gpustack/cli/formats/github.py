"""Annotations of GitHub Actions: workflow commands that a step prints, one line each.

GitHub shows ten errors, ten warnings and ten notices of a step; the log has all.
"""

from ...compiler.judge import also
from ...model import Finding
from ..text import printable, reasons
from . import Report

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def write(report: Report) -> str:
    """A line per finding, "" for none."""
    return "".join(f"{annotation(also(item))}\n" for item in report.lint.findings)


def annotation(finding: Finding) -> str:
    """FINDING as a workflow command."""
    place = finding.location
    fields = {"file": place.file, "line": place.line, "col": place.column} if place else {}
    properties = [f"{key}={escaped(printable(str(value)), ':,')}" for key, value in fields.items() if value is not None]
    properties.append(f"title={escaped(f'gpustack {finding.rule}', ':,')}")
    said = [finding.what, *reasons(finding, "" if place else finding.path)]
    text = "\n".join(printable(line) for part in said for line in part.splitlines())
    return f"::{COMMANDS[finding.severity]} {','.join(properties)}::{escaped(text)}"


def escaped(text: str, more: str = "") -> str:
    """TEXT with % and line ends, and the characters MORE, written as %XX: a command ends with its line."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)
