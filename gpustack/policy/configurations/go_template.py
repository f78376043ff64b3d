"""Whether a text is a template that Prometheus can read: the labels and annotations of an alert.

Solves: for one bad template in one alert the Prometheus operator refuses the whole PrometheusRule, and all alerts of
the object are gone. What Go's text/template reads is read here, with the functions that Prometheus has; whether a
template makes sense is not asked.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FUNCTIONS = {
    *"and or not call html index slice js len print printf println urlquery eq ge gt le lt ne query first".split(),
    *"label value strvalue args reReplaceAll safeHtml match title toUpper toLower graphLink tableLink".split(),
    *"sortByLabel stripPort stripDomain humanize humanize1024 humanizeDuration humanizePercentage".split(),
    *"humanizeTimestamp toTime toDuration now pathPrefix externalURL parseDuration urlQueryEscape tmpl".split(),
}
KNOWN = {"$", "$labels", "$externalLabels", "$externalURL", "$value"}
"""Variables that Prometheus sets."""
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<literal>\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|'(?:[^'\\\n]|\\.)+'|[+-]?[0-9][0-9a-zA-Z_.]*)"
    r"|(?P<variable>\$\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<sign>:=|[.=,|()])"
)
SIGNS = {":=", "=", ",", "|", "(", ")"}
_COMMENT = re.compile(r"(?:- ?)?/\*.*?\*/(?: ?-)?", re.DOTALL)
Tokens = list[tuple[str, str]]


class _Wrong(Exception):  # noqa: N818 - the text says what is wrong
    """What is wrong with a template."""


@dataclass
class _Reader:
    """What is open at a place of a template, and the variables that are known there."""

    opened: list[tuple[str, set[str]]] = field(default_factory=list)
    variables: set[str] = field(default_factory=lambda: set(KNOWN))

    def action(self, tokens: Tokens) -> None:
        """One pair of braces with TOKENS in it."""
        kind, word = tokens[0] if tokens else ("", "")
        if not tokens:
            raise _Wrong("nothing stands between {{ and }}")
        if kind == "name" and word in {"if", "range", "with", "define", "block"}:
            self.opened.append((word, set(self.variables)))
            self.head(word, tokens[1:])
        elif word == "end":
            if not self.opened or len(tokens) > 1:
                raise _Wrong("{{end}} ends nothing" if not self.opened else "something follows end")
            self.variables = self.opened.pop()[1]
        elif word == "else":
            if not self.opened or self.opened[-1][0] not in {"if", "range", "with"}:
                raise _Wrong("{{else}} is in no if, range or with")
            if tokens[1:] and tokens[1][1] not in {"if", "with"}:
                raise _Wrong("something follows else")
            if tokens[1:]:
                self.pipeline(tokens[2:])
        elif word in {"break", "continue"}:
            if not any(each == "range" for each, _ in self.opened) or len(tokens) > 1:
                raise _Wrong(f"{word} is in no range")
        elif word == "template":
            self.head(word, tokens[1:])
        else:
            self.pipeline(tokens)

    def head(self, word: str, tokens: Tokens) -> None:
        """What follows WORD, which opens something."""
        if word in {"define", "block", "template"}:
            if not tokens or tokens[0][0] != "literal" or (word == "define" and len(tokens) > 1):
                raise _Wrong(f"{word} has no name in quotes")
            tokens = tokens[1:]
            if not tokens and word != "block":
                return
        self.pipeline(tokens)

    def pipeline(self, tokens: Tokens) -> None:
        """Values and calls, one feeding the next."""
        texts = [text for _, text in tokens]
        if ":=" in texts or "=" in texts:
            at = texts.index(":=" if ":=" in texts else "=")
            names = tokens[:at:2]
            if not names or any(kind != "variable" for kind, _ in names) or any(t != "," for t in texts[1:at:2]):
                raise _Wrong(f"what stands before {texts[at]} is not a variable")
            self.commands(tokens[at + 1 :])
            if texts[at] == ":=":
                self.variables |= {name for _, name in names}
            elif not {name for _, name in names} <= self.variables:
                raise _Wrong("a variable is set that isn't there")
            return
        self.commands(tokens)

    def commands(self, tokens: Tokens) -> None:
        """TOKENS between pipes, with what is in parentheses."""
        depth, first, stage = 0, True, 0
        for kind, text in tokens:
            if text == "(":
                depth, first = depth + 1, True
                continue
            if text == ")":
                depth -= 1
                if depth < 0 or first:
                    raise _Wrong("parentheses don't match")
                continue
            if text == "|":
                if first:
                    raise _Wrong("nothing stands before |")
                first, stage = True, stage + 1
                continue
            if kind == "sign" and text != ".":
                raise _Wrong(f"unexpected {text!r}")
            if kind == "name" and text not in FUNCTIONS | {"true", "false", "nil"}:
                raise _Wrong(f"there is no function {text}")
            if kind == "variable" and text not in self.variables:
                raise _Wrong(f"there is no variable {text}")
            if first and stage and kind == "literal":
                raise _Wrong(f"{text} is not a function, and gets a value by |")
            first = False
        if first or depth:
            raise _Wrong("parentheses don't match" if depth else "a value is missing")


def wrong(text: str) -> str:
    """What is wrong with the template TEXT, in words; "" where Prometheus can read it."""
    reader = _Reader()
    try:
        for tokens in _actions(text):
            reader.action(tokens)
    except _Wrong as error:
        return str(error)
    return f"{reader.opened[-1][0]} has no end" if reader.opened else ""


def called(text: str) -> set[str]:
    """The names of the functions and keywords in the actions of TEXT; those in front of what can't be read."""
    names: set[str] = set()
    with contextlib.suppress(_Wrong):
        for tokens in _actions(text):
            names |= {word for kind, word in tokens if kind == "name"}
    return names


def _actions(text: str) -> Iterator[Tokens]:
    """What stands in each pair of braces of TEXT, but for comments."""
    position = 0
    while (start := text.find("{{", position)) >= 0:
        tokens, position = _tokens(text, start + 2)
        if tokens is not None:
            yield tokens


def _tokens(text: str, position: int) -> tuple[Tokens | None, int]:
    """What stands in TEXT from POSITION to the end of the braces, None for a comment; and the position behind them."""
    if comment := _COMMENT.match(text, position):
        if not text.startswith("}}", comment.end()):
            raise _Wrong("a comment isn't the only thing between {{ and }}")
        return None, comment.end() + 2
    if re.match(r"-\s", text[position : position + 2]):
        position += 1
    tokens: Tokens = []
    spaced = False
    while True:
        if text.startswith("}}", position):
            return tokens, position + 2
        if spaced and text.startswith("-}}", position):
            return tokens, position + 3
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position : position + 1]
            raise _Wrong(f"unexpected {rest!r} between {{{{ and }}}}" if rest else "{{ is never closed")
        operand = match.lastgroup not in {"space", "field"} and match.group() not in SIGNS
        if operand and tokens and not spaced and tokens[-1][1] not in SIGNS - {")"}:
            raise _Wrong(f"no space before {match.group()!r}")
        spaced = match.lastgroup == "space"
        if match.lastgroup != "space":
            tokens.append((str(match.lastgroup), match.group()))
        position = match.end()
