"""Says in plain words what libyaml could not read.

Solves: "did not find expected key, line 31 column 2" is true and of no help. The table maps libyaml's sentences to what
people did; marks of a merge conflict and tabs are looked for first, because libyaml blames what comes after them.
Imported only when a file can't be read.
"""

from __future__ import annotations

import re

import yaml

from gpustack.model import Finding, InputError, Location
from gpustack.text.source import place, split_lines
from gpustack.text.yaml12 import MAX_DEPTH

_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7}) |^={7}$")
_INDENTING_TAB = re.compile(r"[ -]*\t")

_Words = tuple[str, str, str]

_PROBLEMS: tuple[tuple[str, _Words], ...] = (
    (
        "mapping values are not allowed",
        (
            "a colon stands where no key can be",
            "YAML takes `word: ` for a key, and a key can't start here",
            "put the value in quotes if the colon belongs to it; else check the indentation here and a line above",
        ),
    ),
    (
        "did not find expected key",
        (
            "the line does not fit the mapping around it",
            "it is indented differently from the keys before it, or follows a value that has already ended",
            "align it with the other keys; a quote within a single-quoted value is written twice ('it''s')",
        ),
    ),
    (
        "did not find expected '-' indicator",
        (
            "the line does not fit the list around it",
            "it stands at the indentation of the list's dashes and has no dash",
            "add the dash, or align the line with what it belongs to",
        ),
    ),
    (
        "expected <document start>",
        (
            "something follows that is not part of the document",
            "the document has ended on the lines above: at a closing bracket, or at a value of its own",
            "delete what follows, or correct the lines above",
        ),
    ),
    (
        "could not find expected ':'",
        ("a key has no colon after it", "a line among keys needs the form `key: value`", "add the colon, or a dash"),
    ),
    (
        "block sequence entries are not allowed",
        (
            "a list starts where none can be",
            "the dash of a list can't stand on the same line as its key",
            "put each entry on a line of its own, or write the list in brackets: [a, b]",
        ),
    ),
    (
        "did not find expected ',' or",
        ("a bracket or brace is not closed, or a comma is missing", "", "close it, or add the comma"),
    ),
    (
        "did not find expected node content",
        ("a value is missing inside brackets or braces", "", "write the value, or close the bracket or brace"),
    ),
    (
        "unexpected end of stream",
        ("a quoted value is not closed", "the file ends before the closing quote", "close the quote"),
    ),
    (
        "unexpected document indicator",
        ("a quoted value is not closed", "a line of dashes or dots ends the document within it", "close the quote"),
    ),
    (
        "cannot start any token",
        (
            "a value can't start with this character",
            "the characters @ ` % are reserved in YAML",
            "put the value in quotes",
        ),
    ),
    (
        "unknown escape character",
        (
            "an escape in double quotes is unknown",
            "within double quotes, a backslash starts an escape",
            "write the backslash twice, or use single quotes, where it has no meaning",
        ),
    ),
    (
        "undefined alias",
        (
            "an alias names an anchor that is not defined above it",
            "",
            "define the anchor (&name) first; quote a value that starts with *",
        ),
    ),
    (
        "second occurrence",
        ("the same anchor is defined twice", "an alias could mean either", "give one of them another name"),
    ),
    (
        "undefined tag handle",
        ("a value starts with a tag that is not defined", "", "put the value in quotes if the ! belongs to it"),
    ),
    (
        "incompatible YAML document",
        ("the file asks for a version of YAML that does not exist", "", "delete the %YAML line: YAML 1.2 is read"),
    ),
)


def explain(error: yaml.YAMLError, text: str, file: str) -> InputError:
    """Return the InputError to raise for ERROR, which the parser raised on TEXT."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    where = place(text, file, line, column)
    conflict = _conflict(text, file)
    if conflict:
        return _error(
            "a merge conflict is not resolved",
            conflict,
            "Git left its markers in the file",
            "choose what is to stay and delete the marker lines",
        )
    written = split_lines(text)[(where.line or 1) - 1]
    if "\t" in written[: where.column] and _INDENTING_TAB.match(written):
        tab = Location(file, where.line, written.index("\t") + 1, where.text)
        return _error(
            f"line {where.line} is indented with a tab",
            tab,
            "YAML allows only spaces for indentation",
            "replace the tab by spaces",
        )
    if "nesting depth" in problem:
        return _error(
            f"values are nested more than {MAX_DEPTH} levels deep",
            where,
            "no policy is that deep",
            "check for brackets that are never closed, or flatten the value",
            rule="GPU006",
        )
    what, why, remedy = next(
        (words for part, words in _PROBLEMS if part in problem),
        (
            "this is not valid YAML",
            f"the parser says: {' '.join(problem.split())}",
            "correct the line, or put the value in quotes",
        ),
    )
    start = getattr(error, "context_mark", None)
    if start and start.line + 1 < line and ("quote" in what or "bracket" in what or "anchor" in what):
        began = f"{'the first is' if 'anchor' in what else 'it starts'} on line {start.line + 1}"
        why = f"{why}; {began}" if why else began
        if "quote" in what:
            where = place(text, file, start.line + 1, start.column + 1)
    return _error(what, where, why, remedy)


def _conflict(text: str, file: str) -> Location | None:
    for number, line in enumerate(split_lines(text), 1):
        if _CONFLICT.match(line):
            return Location(file, number, 1, line)
    return None


def _error(what: str, where: Location, why: str, remedy: str, rule: str = "GPU003") -> InputError:
    return InputError(Finding(rule, "error", what, location=where, why=why, remedy=remedy))
