"""Which lines of a file hold the values of a Secret: nobody is shown these.

Solves: a message quotes the line that it is about, reports carry it to CI systems and the cache keeps it. A Secret that
somebody put into a policy, where it is refused, or that stands among tenants' manifests, would be in all of them. So
whoever makes a place of a line (source.place) asks here first.

The parser's events tell where values begin and end, also in a text that is refused later. Of a text that is not YAML
and has a Secret in it no line is shown. Nor is one of a policy's section `secrets`, which names where values are:
whoever misreads it writes the value there.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

_SECTION = re.compile(r"""(?:^|[\s{,])["']?secrets["']?\s*:""")
_KIND = re.compile(r"""kind["']?\s*:\s*["']?Secret\b""")
_VALUES = re.compile(r"""\b(?:stringData|data)["']?\s*:""")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a whole object."""

Span = tuple[int, int]
"""The first and the last line of a value, from 0."""


def may_have(text: str) -> bool:
    """Whether there may be a Secret with values in TEXT."""
    if "stringData" in text or "encryptedData" in text or _SECTION.search(text):
        return True
    return bool(_KIND.search(text)) and bool(_VALUES.search(text))


def hides(text: str, number: int) -> bool:
    """Whether line NUMBER (from 1) of TEXT may hold a value of a Secret."""
    if not may_have(text):
        return False
    spans = _spans(text)
    return spans is None or any(first <= number - 1 <= last for first, last in spans)


@dataclass(slots=True)
class _Open:
    """A mapping or list that has not ended: the key that its next value is for, and what is known of it."""

    first: int
    mapping: bool
    last: int = 0
    key: str | None = None
    secret: bool = False
    values: list[Span] = field(default_factory=list)


@functools.lru_cache(maxsize=4)
def _spans(text: str) -> tuple[Span, ...] | None:
    """Where the values of Secrets stand in TEXT; None where nobody can tell."""
    from .yaml12 import events

    walk = _Walk()
    try:
        for event in events(text):
            walk.take(event)
    except yaml.YAMLError:
        return None
    return tuple(walk.spans)


class _Walk:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.open: list[_Open] = []
        self.anchors: dict[str, Span] = {}
        self.names: list[str | None] = []

    def take(self, event: Any) -> None:
        start, end = event.start_mark.line, event.end_mark.line
        width = event.end_mark.column - event.start_mark.column
        if isinstance(event, yaml.CollectionStartEvent):
            self.open.append(_Open(start, isinstance(event, yaml.MappingStartEvent), start))
            self.names.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self.open.pop()  # at a bracket, which has a width, or where something else begins
            if ended.secret:
                self.spans += ended.values
            self.value(None, (ended.first, end if width > 0 else ended.last), self.names.pop())
        elif isinstance(event, yaml.ScalarEvent):
            self.value(event.value, (start, end), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self.value(None, self.anchors.get(str(event.anchor), (start, end)), None, (start, end))

    def value(self, text: str | None, span: Span, anchor: str | None, here: Span | None = None) -> None:
        """Take in a value that ended: TEXT of a scalar, which stands on the lines SPAN (an alias HERE)."""
        if anchor:
            self.anchors[anchor] = span
        if not self.open:
            return
        around = self.open[-1]
        around.last = max(around.last, (here or span)[1])
        if not around.mapping:
            return
        if around.key is None:
            around.key = text or ""
            return
        if around.key == "kind" and text == "Secret":
            around.secret = True
        elif around.key == "data":
            around.values.append(span)
        elif around.key in ("stringData", "encryptedData", "secrets", _APPLIED):
            self.spans.append(span)
        around.key = None
