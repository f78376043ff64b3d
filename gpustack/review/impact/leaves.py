"""What a policy or an object says, value by value: the form in which changes are held against the lists of tiers.

A list whose items have names is a map by them, so that a variable that moved hasn't changed. All other lists are
values as a whole, and so are those of which the order or the whole is what counts: windows, taints, tolerations.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
Leaves = Mapping[Path, Any]
NAMES = ("name", "alert", "record", "port")
"""What items of a list are known by: the first that all have, and have once each."""
REPEATED = ("alert", "record")
"""Names that several items may have: their severities tell them apart, and numbers where these are the same."""
ABSENT = {("repository",), ("version",), ("image",)}
"""What is empty where an image is named whole, or not at all."""
NOT_BY_NAME = {"tolerations", "windows", "taints", "startupTaints"}
"""Lists that are one value, whatever their items have."""


@dataclass(frozen=True)
class Leaf:
    """A value that changes, None where there is none. OLDS is all that stood there before."""

    path: Path
    old: Any
    new: Any
    olds: Leaves = field(repr=False, compare=False)
    news: Leaves = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The path in words, as `gpustack explain` takes it."""
        steps = (f"[{step}]" if "." in step or "/" in step else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


def leaves(value: Any) -> dict[Path, Any]:
    """All values in VALUE by their paths; empty maps and lists are not values."""
    return dict(_leaves((), value))


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves((*path, str(key)), item)
    elif isinstance(value, (list, tuple)):
        named = _named(path, value)
        if named is not None:
            for name, item in named.items():
                yield from _leaves((*path, name), item)
        elif value:
            yield path, value
    elif value is not None and not (value == "" and path[-1:] in ABSENT):
        yield path, value


def _named(path: Path, items: Any) -> dict[str, Any] | None:
    """ITEMS by their names, None where they have none that tell them apart."""
    if not items or (path and path[-1] in NOT_BY_NAME):
        return None
    by_name: dict[str, Any] = {}
    for item in items:
        key = next((key for key in NAMES if isinstance(item, Mapping) and isinstance(item.get(key), (str, int))), None)
        if key is None:
            return None
        name = str(item[key])
        if key in REPEATED and isinstance(item.get("labels"), Mapping) and "severity" in item["labels"]:
            name = f"{name} {item['labels']['severity']}"
        if name in by_name and key in REPEATED:
            name = next(f"{name} {number}" for number in range(2, len(items) + 2) if f"{name} {number}" not in by_name)
        if name in by_name:
            return None
        by_name[name] = item
    return by_name


def changed(before: Leaves, after: Leaves) -> Iterator[Leaf]:
    """The values that differ, in the order of AFTER, and then those that are gone."""
    for path, value in after.items():
        if path not in before or not same(before[path], value):
            yield Leaf(path, before.get(path), value, before, after)
    for path, value in before.items():
        if path not in after:
            yield Leaf(path, value, None, before, after)


def same(one: Any, two: Any) -> bool:
    """Whether both are the same, of the same type: 1 is neither true nor "1"."""
    if type(one) is type(two) and isinstance(one, (str, int, float)):
        return bool(one == two)
    return text(one) == text(two)


def text(value: Any) -> str:
    """VALUE as JSON, of whatever it is made."""
    return json.dumps(value, sort_keys=True, default=str)
