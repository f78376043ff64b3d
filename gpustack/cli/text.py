"""Findings as text: place and sentence first, then the line itself, why it matters and what to do."""

import json
import operator
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, TextIO

from ..model import Finding, printable

__all__ = ["answer", "as_json", "document", "plain", "print_findings", "printable", "say", "text", "whole"]

WIDTH = 160
_CODE = re.compile(r" *\d* \| ")
"""How a line of a file that `text` quotes begins, and the one with the mark below it."""


class Code(str):
    """A line that somebody may copy: it is not for `say`."""

    __slots__ = ()


def print_findings(findings: Iterable[Finding], stream: TextIO) -> None:
    for finding in findings:
        say(text(finding), stream)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print TEXT for people to STREAM, standard output by default: prose is broken at the width of a terminal, lines of
    files that are quoted in it are not. Tables and code go to `print`."""
    stream = stream or sys.stdout
    columns = columns_of(stream)
    lines = (line if _CODE.match(line) else folded(line, columns) for line in text.split("\n"))
    print("\n".join(lines), file=stream)


def answer(how: str, code: int, told: dict[str, Any], lines: Iterable[str]) -> int:
    """Print what is TOLD where HOW is json, else the LINES that say it to people; CODE."""
    if how == "json":
        print(as_json({"version": 1, "exit": code, **told}))
        return code
    for line in lines:
        (print if isinstance(line, Code) else say)(printable(line))
    return code


def columns_of(stream: TextIO) -> int:
    """The columns of the terminal behind STREAM, as COLUMNS or the terminal itself says. 0 for a pipe, a file and CI,
    whose logs are searched line by line: nothing is broken there."""
    if not stream.isatty() or os.environ.get("CI"):
        return 0
    return max(80, shutil.get_terminal_size().columns)  # a narrower one breaks lines itself


def folded(line: str, columns: int) -> str:
    """LINE broken between words at COLUMNS, 0 for nowhere; what is in backticks, a path and an address stay whole."""
    if not columns or len(line) <= columns:
        return line
    whole = re.sub(r"`[^`]*`", lambda span: span[0].replace(" ", "\0"), line)  # no line that is printable has one
    below = " " * (len(line) - len(line.lstrip(" ")) + 4)
    parts = textwrap.wrap(
        whole, columns, subsequent_indent=below, break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )
    return "\n".join(parts).replace("\0", " ")


def text(finding: Finding) -> str:
    """A finding as a person reads it; a location that editors and CI systems can jump to comes first."""
    location = finding.location
    place = f"{location}: " if location else ""
    lines = [f"{place}{finding.severity} {finding.rule}: {finding.what}"]
    if location and location.text is not None and location.line is not None:
        number, column = f"{location.line:5}", location.column or 1
        start, shown = excerpt(column, location.text)
        lines += [f"{number} | {shown.expandtabs(1)}", f"{' ' * len(number)} | {' ' * (column - 1 - start)}^"]
    lines += [f"  {line}" for line in reasons(finding, "" if location and location.line else finding.path)]
    return "\n".join(printable(line) for line in lines)


def reasons(finding: Finding, at: str) -> list[str]:
    """What is said of FINDING below what is wrong, with the path that it is AT where nothing else says that."""
    parts = {"at": at, "why": finding.why, "do": finding.remedy, "waived by": finding.waived}
    return [f"{word}: {said}" for word, said in parts.items() if said]


def whole(value: Any) -> Any:
    """VALUE without halves of characters, which stand for bytes of a file's name that are not UTF-8: no encoding has
    them, and readers of JSON refuse them. They become the escapes that `printable` makes of them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list | tuple) else value


def as_json(value: Any) -> str:
    """VALUE as every verb writes JSON. What a CI system would take for a command in its log has an escape in it."""
    return json.dumps(whole(value), indent=1).replace("##", "#\\u0023")


def excerpt(column: int, text: str) -> tuple[int, str]:
    """As much of TEXT around COLUMN as is worth showing, and how much is left out before it: it may be a whole file."""
    start = max(0, column - WIDTH // 2) if len(text) > WIDTH else 0
    return start, text[start : start + WIDTH]


def document(code: int, findings: list[dict[str, object]], **more: Any) -> str:
    """The JSON document that a verb prints: its exit code, MORE, and findings (`plain`). Keys are only ever added."""
    return as_json({"version": 1, "exit": code, **more, "findings": findings})


def plain(finding: Finding) -> dict[str, object]:
    """A finding for --format json."""
    said, place = picked(finding, "rule severity what path"), picked(finding.location, "file line column")
    return {**said, **place, **picked(finding, "why remedy"), "waived": finding.waived or None}


def picked(item: object, names: str) -> dict[str, Any]:
    """What ITEM says of itself by NAMES, words, or KEY=ATTRIBUTE to tell it by another name; all None if ITEM is."""
    words = (word.partition("=") for word in names.split())
    pairs = ((key, attribute or key) for key, _, attribute in words)
    return {key: None if item is None else operator.attrgetter(attribute)(item) for key, attribute in pairs}
