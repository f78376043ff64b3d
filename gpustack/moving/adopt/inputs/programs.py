"""Releases that stand as literals in programs: Pulumi, cdk8s and CDK in TypeScript, Python or Go, jsonnet, Starlark.

No program is run. The call or the object that names the chart is read as data, as far as it is written out: what is
computed stays as ${...}, and is asked for like any other variable. Where nothing is written out, the program is told.
"""

import ast
import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..documents import Item, named_by
from . import releases
from .context import chart_named

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)|(?P<text>([\"'])\3\3.*?\3\3\3|([\"'`])(?:\\.|(?!\4)[^\\])*\4)"
    r"|(?P<number>\d+(?:\.\d+)?\b)|(?P<name>[A-Za-z_$][\w$.]*)|(?P<sign>\+:|:=|==|=>|\.\.\.|.)",
    re.DOTALL,
)
_PAIRS = {"{": "}", "[": "]", "(": ")"}
_ENDS = {",", ";", "", *_PAIRS.values()}
_CONSTANTS = {"true": True, "false": False, "True": True, "False": False, **dict.fromkeys(("null", "None", "nil"))}
DEEPEST = 60
"""Brackets within each other in what is read."""
STEPS = 400_000
"""Words of a program that are read, each as often as something that begins before it is."""
_SERIAL = re.compile(r"(?:.*\.)?(?:stringify|dumps?|safe_dump|jsonencode|yamlencode|toJson|manifest(?:Json|YamlDoc))")
"""Functions that make a text of data; JSON is YAML."""
_PLAIN = re.compile(r".*\b(?:String|Bool|Boolean|Int|Number|str|bool|int)")
"""Functions that make a value of a language one of a library."""


@dataclass
class Reader:
    """TEXT in TOKENS, and how far it is read; names that are KNOWN, and ANSWERS to what isn't."""

    text: str
    tokens: list[re.Match[str]]
    answers: Mapping[str, str]
    at: int = 0
    known: dict[str, Any] = field(default_factory=dict)
    left: int = STEPS

    def spend(self, steps: int = 1) -> None:
        """Count STEPS. Raises OverflowError where more are made than any program needs."""
        self.left -= steps
        if self.left < 0:
            raise OverflowError

    def sign(self, ahead: int = 0) -> str:
        """The next word, or the one so far AHEAD; "" behind the end."""
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""

    def value(self) -> Any:
        """The value that begins here; what isn't written out as it is written."""
        if self.sign(1) == "(" and _SERIAL.fullmatch(self.sign()):
            return self.text_of()
        start, made = self.at, list[Any]()
        while self.sign() not in _ENDS:
            self.spend()
            token = self.tokens[self.at]
            if token[0] in _PAIRS:
                made.append(self.group())
                continue
            self.at += 1
            word = token[0]
            if token["text"]:
                made.append(spelt(word))
            elif token["number"]:
                made.append(float(word) if "." in word else int(word))
            elif word in _CONSTANTS or word in self.known:
                made.append(_CONSTANTS.get(word, self.known.get(word)))
        read = self.tokens[start : self.at]
        words = self.text[read[0].start() : read[-1].end()] if read else ""
        whole = made and (self.at == start + 1 or isinstance(made[-1], dict) or (len(made) == 1 and words[0] == "["))
        if whole or (made and isinstance(made[-1], list) and words.endswith("]") and "." not in words[:1]):
            return made[-1]
        if made and isinstance(made[-1], list) and len(made[-1]) == 1 and _PLAIN.fullmatch(words.partition("(")[0]):
            return made[-1][0]
        return self.answers.get(named_by(f"${{{words}}}"), f"${{{words}}}")

    def text_of(self) -> str:
        """The text that the call here makes of its first argument."""
        self.at += 2
        data, depth = self.value(), 1
        while depth and self.sign():
            self.spend()
            depth += (self.sign() in _PAIRS) - (self.sign() in _PAIRS.values())
            self.at += 1
        return data if isinstance(data, str) else json.dumps(data)

    def group(self) -> Any:
        """What stands in brackets here: a map where anything has a key in it, else a list."""
        end, empty, pairs, items = _PAIRS[self.sign()], self.sign() == "{", dict[str, Any](), list[Any]()
        self.at += 1
        while self.sign() not in {end, ""}:
            self.spend()
            before, token = self.at, self.tokens[self.at]
            if (token["name"] or token["text"]) and self.sign(1) in {":", "=", "+:"}:
                self.at += 2
                pairs[spelt(token[0]) if token["text"] else token[0]] = self.value()
            elif token[0] not in _ENDS:
                items.append(self.value())
            self.at += self.at == before or self.sign() in {",", ";"}
        self.at += 1
        if not pairs:
            return {} if empty and not items else items
        inner = [each for each in items if isinstance(each, dict)]
        more = {f"...{index}": each for index, each in enumerate(items) if str(each).startswith("${...")}
        charts = [each for each in items if isinstance(each, str) and chart_named(each)]
        return {
            **pairs,
            **more,
            **({"chart": charts[-1]} if charts and "chart" not in pairs else {}),
            **dict(*inner[:1]),
        }


def spelt(text: str) -> str:
    """The text that the literal TEXT of a program is."""
    try:
        return str(ast.literal_eval(f'"""{text[1:-1]}"""' if text.startswith("`") else text))
    except (SyntaxError, ValueError):
        return text.strip("\"'`")


def read_of(text: str, answers: Mapping[str, str]) -> Reader:
    """A reader of TEXT, which knows the names that are set once, to what is written out."""
    reader = Reader(text, [each for each in _TOKEN.finditer(text) if not each["skip"]], answers)
    depth = itertools.accumulate((each[0] in _PAIRS) - (each[0] in _PAIRS.values()) for each in reader.tokens)
    if max(depth, default=0) > DEEPEST:
        reader.tokens = []
    set_to, words = dict[str, list[Any]](), [each[0] for each in reader.tokens]
    for at, (before, token, sign) in enumerate(zip(["", *words], reader.tokens, words[1:], strict=False)):
        if token["name"] and sign in {"=", ":="} and before not in {"(", ","}:  # not an argument by name
            reader.at = at + 2
            set_to.setdefault(token[0], []).append(reader.value())
    reader.at, once = 0, {name: each[0] for name, each in set_to.items() if len(each) == 1}
    reader.known = {name: each for name, each in once.items() if not str(each).startswith("${")}
    return reader


def evaluated(items: list[Item], answers: Mapping[str, str]) -> Iterator[Item]:
    """The releases that programs among ITEMS have written out, with the names of ANSWERS filled in."""
    for item in (each for each in items if isinstance(each.data, str) and "gpu-operator" in each.text):
        with contextlib.suppress(OverflowError):
            yield from list(written_out(item, answers))


def written_out(item: Item, answers: Mapping[str, str]) -> Iterator[Item]:
    """The releases that the program ITEM has written out. Raises OverflowError where it is made to hinder."""
    reader = read_of(item.text, answers)
    open_, spans = list[int](), list[tuple[int, int]]()
    for at, token in enumerate(reader.tokens):
        if token[0] in _PAIRS:
            open_.append(at)
        elif token[0] in _PAIRS.values() and open_:
            spans.append((open_.pop(), at))
    done, tried = -1, set[int]()
    for at, token in enumerate(reader.tokens):
        if not token["text"] or at < done or not chart_named(spelt(token[0])):
            continue
        reader.spend(len(spans))
        around = sorted((end - start, start, end) for start, end in spans if start < at < end)
        for _, start, end in itertools.islice(around, 3):
            if start in tried:
                continue
            tried.add(start)
            reader.at = start
            line = item.text.count("\n", 0, reader.tokens[start].start()) + 1
            found = Item(item.file, item.text, joined(reader.group()), line=line)
            if releases.recognised(found):
                done = end
                yield found
                break


def joined(data: Any) -> Any:
    """DATA of a call: its map with the chart that stands beside it."""
    charts = [each for each in data if isinstance(each, str) and chart_named(each)] if isinstance(data, list) else []
    return [{"chart": charts[-1], **each} for each in data if isinstance(each, dict)] if charts else data
