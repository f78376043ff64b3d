"""Selectors of labels in objects, and whether another value of a label changes what they pick.

Solves: a label says whose something is until a NetworkPolicy, a Service or a disruption budget picks pods by it. Each
requirement is asked by itself, whatever else its selector wants: if none of them answers differently, none of the
selectors does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

NODES = "nodeSelector"
"""What picks nodes, by labels of theirs."""


class Requirement(NamedTuple):
    """What a selector wants of a label: HOW is In, NotIn, Exists, DoesNotExist, or "" for what isn't understood."""

    key: str
    how: str
    values: tuple[str, ...] = ()

    def holds(self, value: Any) -> bool | None:
        """Whether it is met by VALUE, None for no such label; None as answer where nobody knows."""
        there = value is not None
        found = there and str(value) in self.values
        return {"In": found, "NotIn": not found, "Exists": there, "DoesNotExist": not there}.get(self.how)


def requirements(value: Any, key: str = "") -> Iterator[Requirement]:
    """All that selectors in VALUE, which stands at KEY, want."""
    if isinstance(value, Mapping):
        plain = all(isinstance(each, (str, int, bool)) for each in value.values())
        if key == "matchLabels" or (key.lower().endswith("selector") and plain and key != NODES):
            yield from (Requirement(_bare(name), "In", (str(each),)) for name, each in value.items())
        elif "key" in value and "operator" in value:
            wanted = value.get("values")
            values = tuple(map(str, wanted)) if isinstance(wanted, (list, tuple)) else ()
            yield Requirement(_bare(value["key"]), str(value["operator"]), values)
        for name, each in value.items():
            yield from requirements(each, str(name))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from requirements(each, key)
    elif isinstance(value, str) and ("label" in value.lower() or "selector" in key.lower()):
        yield from (Requirement(_bare(word), "") for word in re.findall(r"[\w./:-]+", value))


def _bare(key: Any) -> str:
    """KEY of a label without what Cilium writes before it."""
    return re.sub("^(?:k8s|any):", "", str(key))


def picks_differently(wanted: Iterable[Requirement], key: str, old: Any, new: Any) -> bool:
    """Whether one of the requirements WANTED answers differently once the label KEY is NEW instead of OLD."""
    mine = [each for each in wanted if each.key == key]
    return any(each.holds(old) != each.holds(new) or each.holds(new) is None for each in mine)
