"""The exporter's list of metrics, read as the exporter reads it: by the rules of Go's CSV reader, row by row.

Solves: a comma in a help text, or a comment that is indented, stops the exporter on every node, and what it says about
that stands in the log of a pod. What it accepts is in dcgm.yaml (csv_types) and NVIDIA/dcgm-exporter,
internal/pkg/counters/counter_config.go. Python's csv module was rejected: it takes rows that Go's refuses.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from gpustack.catalog import dcgm
from gpustack.policy.configurations.embedded import START, Place, Problem

FIELDS = 3
STOPS = "the exporter stops at start, on every node"


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: field, type and help text without the spaces around them, and where each of the three stands."""

    name: str
    type: str
    help: str
    places: tuple[Place, ...]

    @property
    def profiling(self) -> bool:
        """Whether the field is measured by the GPU's profiling unit."""
        return self.name.upper().startswith("DCGM_FI_PROF_")


@dataclass(frozen=True, slots=True)
class Metrics:
    """The rows that can be read, and what stops the exporter."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()


@functools.lru_cache(maxsize=64)
def read_metrics(text: str, tag: str = "") -> Metrics:
    """Read TEXT, the list for the exporter whose image has TAG. Never raises: what is wrong is in `problems`."""
    rows: list[Row] = []
    problems: list[Problem] = []
    for record in _records(text):
        row = record if isinstance(record, Problem) else _row(record)
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append(row)
            problems += _wrong(row, tag)
    if not rows and not problems:
        what, remedy = "the list has no metric", "add a row such as DCGM_FI_DEV_GPU_TEMP, gauge, Temperature"
        problems.append(Problem(START, what, "the exporter would serve nothing", remedy))
    return Metrics(tuple(rows), tuple(problems))


Record = list[tuple[str, Place]]
"""The fields of a row, as they stand, and where each begins."""


def _records(text: str) -> Iterator[Record | Problem]:
    """The rows of TEXT. A comment has its # in column one, an empty line has nothing at all in it."""
    lines = text.replace("\r\n", "\n").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line or line.startswith("#"):
            continue
        record: Record = []
        column = 0
        while True:
            place = (number, column + 1)
            if not line.startswith('"', column):
                end = line.find(",", column)
                value = line[column:] if end < 0 else line[column:end]
                if '"' in value:
                    early = value.strip().startswith('"')
                    what = "a quote after a space" if early else 'a " inside a text without quotes'
                    remedy = 'leave out the space before the "' if early else "leave out the quotes, or use single ones"
                    why = f"a quoted text begins right behind the comma; {STOPS}"
                    yield Problem((number, column + value.index('"') + 1), what, why, remedy)
                    break
            else:
                closed = _quoted(lines, number, column)
                if isinstance(closed, Problem):
                    yield closed
                    break
                value, number, end = closed
                line = lines[number - 1]
            record.append((value, place))
            if end < 0:
                yield record
                break
            column = end + 1


def _quoted(lines: list[str], number: int, column: int) -> tuple[str, int, int] | Problem:
    """The field that starts with a quote at COLUMN (from 0) of line NUMBER (from 1): its text, the line on which it
    ends, and the column of the comma behind it, -1 where the row ends."""
    start, value = (number, column + 1), ""
    column += 1
    while number <= len(lines):
        line = lines[number - 1]
        end = line.find('"', column)
        if end < 0:
            value += line[column:] + "\n"
            number, column = number + 1, 0
            continue
        value += line[column:end]
        if line.startswith('"', end + 1):
            value, column = value + '"', end + 2
        elif line.startswith(",", end + 1) or end + 1 == len(line):
            return value, number, end + 1 if end + 1 < len(line) else -1
        else:
            what, remedy = "something follows the closing quote", "end the row or write a comma after the quote"
            return Problem((number, end + 2), what, STOPS, remedy)
    return Problem(start, "the quote is not closed", STOPS, 'write " at the end of the help text')


def _row(record: Record) -> Row | Problem:
    values = [value.strip(" ") for value, _ in record]
    places = tuple((line, column + len(value) - len(value.lstrip(" "))) for value, (line, column) in record)
    if values[0].startswith("#"):
        why = f"a comment has its # in column one, so this is a row; {STOPS}"
        return Problem(places[0], "an indented # begins no comment", why, "move the # to the start of the line")
    if len(values) == FIELDS:
        return Row(values[0], values[1], values[2], places)
    written = f"the row has {len(values)} field{'s' if len(values) > 1 else ''}, not 3"
    if len(values) > FIELDS:
        remedy = "leave out commas in the help text, or put the text in double quotes, without a space before them"
        return Problem(places[FIELDS], f"{written}: a comma in the help text divides it", STOPS, remedy)
    if not "".join(values).strip():
        remedy = "delete the spaces, so that the line is empty"
        return Problem((places[0][0], 1), "a line of spaces is a row", f"{written}; {STOPS}", remedy)
    return Problem(places[0], written, STOPS, "write field, type and help text, with commas between them")


def _wrong(row: Row, tag: str) -> Iterator[Problem]:
    """What stops the exporter about ROW. It looks at the type only of fields that are not its own."""
    if row.name not in dcgm.exported(tag):
        newer = "the exporter of this cluster is older than the name; " if row.name in dcgm.exported() else ""
        meant = " or ".join(dcgm.meant_by(row.name, tag)) or "a field that DCGM has"
        yield Problem(row.places[0], f"DCGM has no field {row.name or '(empty)'}", newer + STOPS, f"write {meant}")
    elif row.type not in dcgm.csv_types() and not row.name.startswith("DCGM_EXP_"):
        tab = "; tabs around it are part of it" if row.type.strip() in dcgm.csv_types() else ""
        remedy = f"write {', '.join(dcgm.csv_types()[:-1])} or {dcgm.csv_types()[-1]}"
        yield Problem(row.places[1], f"{row.type.strip() or 'nothing'} is not a type of a metric{tab}", STOPS, remedy)
