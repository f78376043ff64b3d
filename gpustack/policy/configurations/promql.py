"""Which metrics and labels a Prometheus expression names, and where.

Solves: an alert on a metric that nobody serves never fires, and nobody notices. Names and their places are read here,
of whatever looks like them; whether Prometheus can read the expression at all says a parser of the language (`wrong`).
"""

import functools
import re
from dataclasses import dataclass

Place = tuple[int, int]

_TOKEN = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)"
    r"|(?P<duration>\[[^\]]*\]|\b[0-9][0-9a-zA-Z_.]*)"
    r"|(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)"
    r"|(?P<sign>=~|!~|!=|==|[<>]=|.)",
    re.DOTALL,
)
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
KEYWORDS = {"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan", "start", "end"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, where its name starts, and the function that is called on it ("" for none)."""

    name: str
    place: Place
    function: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label, where its name starts, and the text it is compared with, None where it only groups."""

    name: str
    place: Place
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """What an expression names, in its order."""

    metrics: tuple[Metric, ...]
    labels: tuple[Label, ...]


@functools.lru_cache(maxsize=1024)
def named(expression: str) -> Named:
    """The metrics and labels of EXPRESSION. Of a text that isn't PromQL, whatever looks like them."""
    tokens = _tokens(expression)
    metrics: list[Metric] = []
    labels: list[Label] = []
    functions: list[str] = []
    position = 0
    while position < len(tokens):
        kind, text, place = tokens[position]
        following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        position += 1
        if kind == "name" and text.lower() in GROUPING and following == "(":
            position = _grouped(tokens, position + 1, labels)
        elif kind == "name" and following == "(":
            functions.append(text.lower())
            position += 1
        elif kind == "name" and text.lower() not in KEYWORDS | GROUPING and following not in {"by", "without"}:
            metrics.append(Metric(text, place, functions[-1] if functions else ""))
        elif text == "{":
            position = _matched(tokens, position, labels, metrics, functions[-1] if functions else "")
        elif text == "(":
            functions.append("")
        elif text == ")" and functions:
            functions.pop()
    return Named(tuple(metrics), tuple(labels))


_Token = tuple[str, str, Place]


def _tokens(expression: str) -> list[_Token]:
    tokens = []
    line, start = 1, 0
    for match in _TOKEN.finditer(expression):
        kind, text = str(match.lastgroup), match.group()
        if kind != "space":
            tokens.append((kind, text, (line, match.start() - start + 1)))
        if "\n" in text:
            line, start = line + text.count("\n"), match.start() + text.rindex("\n") + 1
    return tokens


def _grouped(tokens: list[_Token], position: int, labels: list[Label]) -> int:
    """Read the labels of by (...) and its like; returns the position after it."""
    while position < len(tokens) and tokens[position][1] != ")":
        kind, text, place = tokens[position]
        if kind == "name":
            labels.append(Label(text, place))
        position += 1
    return position + 1


def _matched(tokens: list[_Token], position: int, labels: list[Label], metrics: list[Metric], function: str) -> int:
    """Read the matchers of {...}; returns the position after it. A metric may be named here, too."""
    while position < len(tokens) and tokens[position][1] != "}":
        kind, text, place = tokens[position]
        sign = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        value = tokens[position + 2][1].strip("\"'`") if position + 2 < len(tokens) else ""
        if kind == "name" and sign in {"=", "!=", "=~", "!~"}:
            if text == "__name__" and sign == "=":
                metrics.append(Metric(value, tokens[position + 2][2], function))
            elif text != "__name__":
                labels.append(Label(text, place, value))
            position += 2
        elif kind == "text" and sign in {",", "}"}:  # the quoted name of UTF-8 metrics
            metrics.append(Metric(text.strip("\"'`"), place, function))
        position += 1
    return position + 1


LONGEST = 8000
"""Characters of an expression that is parsed: the parser recurses, and nobody reads more."""
_RENAMED = re.compile(r"\bholt_winters(?=\s*\()")
"""A function that has another name since Prometheus 3."""
_NOT_RE2 = re.compile(r"\(\?[a-zA-Z-]*x[a-zA-Z-]*[:)]|\{\s*[0-9]{4,}|\{[0-9]*,\s*[0-9]{4,}")
"""What the parser takes in a regular expression and Go doesn't: comments, and more than 999 times."""


@functools.lru_cache(maxsize=1024)
def wrong(expression: str) -> str:
    """Why Prometheus can't read EXPRESSION, in words; "" where it can."""
    import promql_parser  # only where a policy brings expressions along

    if len(expression) > LONGEST:
        return f"it has more than {LONGEST} characters"
    if _NOT_RE2.search(expression):
        return "it has a regular expression that Prometheus doesn't take"
    try:
        promql_parser.parse(_RENAMED.sub("double_exponential_smoothing", expression))
    except ValueError as error:
        return " ".join(str(error).split())
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the parser, which is written in Rust; no class to import
            raise
        return "no parser reads it"
    return ""
