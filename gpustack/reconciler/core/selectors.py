"""Label selectors as text: `app=training,tier!=web,zone in (a,b),!spot`, the way kubectl and the API server read them.

Solves: which pods to wait for and to drain is such a text in the policy, and it is matched against pods that were read
anyway. A selector that can't be read is refused by the compiler; here it selects nothing and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_SPLIT = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^=!\s]*)$")
_EXISTS = re.compile(r"^(?P<no>!?)\s*(?P<key>[^=!\s(),]+)$")


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[Test, ...]:
    """The requirements of TEXT, all of which must hold; none for an empty text. Raises ValueError."""
    return tuple(_requirement(part.strip()) for part in _SPLIT.split(text)) if text.strip() else ()


@lru_cache(maxsize=256)
def keys(text: str) -> frozenset[str]:
    """The labels that TEXT asks about; none for one that can't be read."""
    parts = [part.strip() for part in _SPLIT.split(text) if part.strip()]
    names = [next((of["key"] for form in (_SET, _EQUAL, _EXISTS) if (of := form.match(part))), "") for part in parts]
    return frozenset(names) if all(names) else frozenset()


def matches(text: str, labels: Labels) -> bool:
    """Whether LABELS have what TEXT asks for. A text that can't be read matches nothing."""
    try:
        return all(test(labels) for test in parse(text))
    except ValueError:
        return False


def _requirement(text: str) -> Test:
    if match := _SET.match(text):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        inside = match["op"] == "in"
        return lambda labels: (labels.get(key) in values) if inside else (labels.get(key) not in values)
    if match := _EQUAL.match(text):
        key, value, equal = match["key"], match["value"], match["op"] != "!="
        return lambda labels: (labels.get(key) == value) if equal else (labels.get(key) != value)
    if match := _EXISTS.match(text):
        key, there = match["key"], not match["no"]
        return lambda labels: (key in labels) == there
    raise ValueError(f"{text!r} is no requirement of a label selector")
