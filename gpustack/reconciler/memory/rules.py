"""Rules of the API that are functions: merge patches and field selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
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


def fields(selector: str, document: Mapping[str, Any]) -> bool:
    """Whether DOCUMENT is what a field selector names. Raises ValueError for one that the API server would refuse."""
    return all(_field(document, part) for part in selector.split(",") if part)


_EQUAL = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s!=]*)$")
_FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "involvedObject.name")


def _field(document: Mapping[str, Any], text: str) -> bool:
    match = _EQUAL.match(text.strip())
    if match is None or match["key"] not in _FIELDS:
        raise ValueError(f"field label not supported: {text!r}")
    value: Any = document
    for part in match["key"].split("."):
        value = value.get(part) or "" if isinstance(value, Mapping) else ""
    return bool(value == match["value"]) != (match["how"] == "!=")
