"""Rules of the API that are functions: merge patches and selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Document = dict[str, Any]


def merge(target: Any, patch: Any) -> Any:
    """TARGET with the merge patch PATCH (RFC 7386). Nothing is changed in place; what PATCH leaves alone is shared."""
    if not isinstance(patch, Mapping):
        return patch
    made = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge(made.get(key), value)
    return made


Test = Callable[[Mapping[str, str]], bool]

_SET = re.compile(r"^(?P<key>[^\s!=,()]+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=,()]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s!=,()]*)$")
_EXISTS = re.compile(r"^(?P<how>!?)\s*(?P<key>[^\s!=,()]+)$")


@lru_cache(maxsize=512)
def labels(selector: str) -> Test:
    """The test of a label selector. Raises ValueError for one that the API server would refuse."""
    tests = tuple(_requirement(part.strip()) for part in _split(selector))
    return lambda found: all(test(found) for test in tests)


def fields(selector: str, document: Mapping[str, Any]) -> bool:
    """Whether DOCUMENT is what a field selector names. Raises ValueError for one that the API server would refuse."""
    return all(_field(document, part) for part in selector.split(",") if part)


def _split(selector: str) -> list[str]:
    """At the commas outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _requirement(text: str) -> Test:
    if found := _SET.match(text):
        key, values = found["key"], frozenset(value.strip() for value in found["values"].split(","))
        if found["how"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(text):
        key, value = found["key"], found["value"]
        if found["how"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(text):
        key = found["key"]
        return (lambda labels: key not in labels) if found["how"] else (lambda labels: key in labels)
    raise ValueError(f"unable to parse requirement: {text!r}")


_FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "involvedObject.name")


def _field(document: Mapping[str, Any], text: str) -> bool:
    found = _EQUAL.match(text.strip())
    if found is None or found["key"] not in _FIELDS:
        raise ValueError(f"field label not supported: {text!r}")
    value: Any = document
    for part in found["key"].split("."):
        value = value.get(part) or "" if isinstance(value, Mapping) else ""
    return bool(value == found["value"]) != (found["how"] == "!=")
