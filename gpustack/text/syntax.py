"""Says in plain words what libyaml could not read.

Solves: "did not find expected key, line 31 column 2" is true and of no help. The table beside this module maps
libyaml's sentences to what people did; marks of a merge conflict and tabs are looked for first, because libyaml blames
what comes after them. Imported only when a file can't be read.
"""

import re
from pathlib import Path

import yaml

from gpustack.model import InputError, Location
from gpustack.text.refusals import refusal
from gpustack.text.source import place, split_lines
from gpustack.text.yaml12 import MAX_DEPTH

_CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7}) |^={7}$")
_INDENTING_TAB = re.compile(r"[ -]*\t")

_PROBLEMS: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def explain(error: yaml.YAMLError, text: str, file: str) -> InputError:
    """Return the InputError to raise for ERROR, which the parser raised on TEXT."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    where = place(text, file, line, column)
    conflict = _conflict(text, file)
    if conflict:
        return refusal("GPU003", "conflict", conflict)
    written = split_lines(text)[(where.line or 1) - 1]
    if "\t" in written[: where.column] and _INDENTING_TAB.match(written):
        tab = Location(file, where.line, written.index("\t") + 1, where.text)
        return refusal("GPU003", "tab", tab, line=where.line)
    if "nesting depth" in problem:
        return refusal("GPU006", "deep", where, most=MAX_DEPTH)
    words = next((words for words in _PROBLEMS if words["problem"] in problem), None) or {
        "what": "this is not valid YAML",
        "why": f"the parser says: {' '.join(problem.split())}",
        "remedy": "correct the line, or put the value in quotes",
    }
    what, why = words["what"], words.get("why", "")
    start = getattr(error, "context_mark", None)
    if start and start.line + 1 < line and ("quote" in what or "bracket" in what or "anchor" in what):
        began = f"{'the first is' if 'anchor' in what else 'it starts'} on line {start.line + 1}"
        why = f"{why}; {began}" if why else began
        if "quote" in what:
            where = place(text, file, start.line + 1, start.column + 1)
    return refusal("GPU003", "parser", where, what=what, why=why, remedy=words["remedy"])


def _conflict(text: str, file: str) -> Location | None:
    for number, line in enumerate(split_lines(text), 1):
        if _CONFLICT.match(line):
            return Location(file, number, 1, line)
    return None
