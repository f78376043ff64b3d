"""What changed in an object, field by field.

Solves: a text diff of two manifests shows a list that was sorted anew as a rewrite, and `1000m` to `1` as a change.
Here an item of a list is known by the key that Kubernetes merges it by, so that a container that moved is not one that
was replaced, and a quantity is compared by what it stands for. Where the order of items differs, that is a change of
its own: the order of init containers and of variables matters.
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...catalog import _data
from ...catalog.kinds import OwnKind
from ...text import quantities


@dataclass(frozen=True, slots=True)
class Item:
    """A step of a path into a list: the item whose KEY fields have these values."""

    key: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        whole = self.key[0][0] not in INSTEAD
        return "[" + ",".join(str(value) for _, value in self.key if whole or value is not None) + "]"

    def matches(self, item: Any) -> bool:
        return isinstance(item, dict) and all(_of(item, name) == value for name, value in self.key)


Step = str | int | Item
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One change: of the value at PATH from BEFORE to AFTER. For "order", both are the keys of a list's items."""

    op: Literal["add", "remove", "replace", "order"]
    path: Path
    before: Any = None
    after: Any = None

    def inside(self, name: str) -> bool:
        """Whether it is in the item NAME of a list."""
        return any(isinstance(step, Item) and ("name", name) in step.key for step in self.path)


KEYS: Mapping[str, Sequence[tuple[str, ...]]] = {
    name: [tuple(key.split()) for key in keys]
    for name, keys in _data.read(pathlib.Path(__file__).with_suffix(".yaml")).items()
}
"""What the items of a list are known by, by the list's name; the first that all items have, and have once each."""
INSTEAD = {"alert": "record"}
"""What an item may have in the place of the first field of its key."""
ANYWHERE: Sequence[tuple[str, ...]] = [("name",), ("key",), ("id",)]
QUANTITIES = {"requests", "limits", "capacity", "hard", "sizeLimit", "storage"}
"""Names of fields whose value, or whose values, are quantities."""


def changes(before: Any, after: Any, own: OwnKind | None = None) -> list[FieldChange]:
    """The changes that make AFTER of BEFORE, in the order of the paths in AFTER. OWN is the
    kind of both where it is one of the user's: it says by what the items of its lists are known."""
    return list(_value((), before, after, own, quantity=False))


def _value(path: Path, before: Any, after: Any, own: OwnKind | None, *, quantity: bool) -> Iterator[FieldChange]:
    if same(before, after, quantity=quantity):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _entries(path, before, after, own, quantity=quantity)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list(path, before, after, own)
    else:
        yield FieldChange("replace", path, before, after)


def same(before: Any, after: Any, *, quantity: bool = False) -> bool:
    """Whether both mean the same: equal values of equal types, or, for quantities, equal numbers."""
    if type(before) is type(after) and before == after:
        return not isinstance(before, (dict, list)) or _exactly(before, after)
    if quantity and isinstance(before, (str, int)) and isinstance(after, (str, int)):
        try:
            return quantities.size(before) == quantities.size(after)
        except ValueError:
            return False
    return False


def _exactly(before: Any, after: Any) -> bool:
    """Equality that tells 1 from True and 1.0, as manifests do."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_exactly(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_exactly, before, after))
    return bool(before == after)


def _entries(
    path: Path, before: Mapping[Any, Any], after: Mapping[Any, Any], own: OwnKind | None, *, quantity: bool
) -> Iterator[FieldChange]:
    """The changes of what a map has by its keys, or a list by what its items are known by."""
    for key, value in before.items():
        if key not in after:
            yield FieldChange("remove", (*path, key), before=value)
    for key, value in after.items():
        if key not in before:
            yield FieldChange("add", (*path, key), after=value)
        else:
            yield from _value((*path, key), before[key], value, own, quantity=quantity or key in QUANTITIES)


def _list(path: Path, before: list[Any], after: list[Any], own: OwnKind | None) -> Iterator[FieldChange]:
    said = own.list_keys(path) if own else None
    names = key_of(path, before, after, said=said)
    if names is None:
        yield FieldChange("replace", path, before, after)
        return
    left, right = (
        {Item(tuple((name, _of(item, name)) for name in names)): item for item in side} for side in (before, after)
    )
    yield from _entries(path, left, right, own, quantity=False)
    come = [key for key in left if key in right] + [key for key in right if key not in left]
    if come != list(right):
        yield FieldChange("order", path, list(left), list(right))


def key_of(path: Path, *lists: Sequence[Any], said: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    """The fields that tell items of LISTS, at PATH, apart; None where nothing does. SAID: the kind's definition."""
    name = path[-1] if path and isinstance(path[-1], str) else ""
    if not any(lists):
        return None
    candidates: list[tuple[str, ...]] = [*([said] if said else ()), *KEYS.get(name, ()), *ANYWHERE]
    return next((names for names in candidates if all(_distinct(names, items) for items in lists)), None)


def _distinct(names: tuple[str, ...], items: Sequence[Any]) -> bool:
    seen = set()
    for item in items:
        if not isinstance(item, dict) or not {names[0], INSTEAD.get(names[0])} & item.keys():
            return False
        values = tuple(_of(item, name) for name in names)
        if any(isinstance(value, (dict, list)) for value in values):
            return False
        typed = tuple((type(value), value) for value in values)
        if typed in seen:
            return False
        seen.add(typed)
    return True


def _of(item: Mapping[str, Any], name: str) -> Any:
    """What ITEM has at NAME, which may be that of a label."""
    labels = item.get("labels")
    if not name.startswith("labels."):
        return item.get(name)
    return labels.get(name.removeprefix("labels.")) if isinstance(labels, dict) else None
