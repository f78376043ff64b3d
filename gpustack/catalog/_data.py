"""Reading the data files: lazily, once per process and file, with libyaml.

JSON was rejected: it reads faster, but a whole release is about a millisecond of YAML, and comments that name the
source of a fact are worth more.
"""

import dataclasses
import functools
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

ROOT = Path(__file__).parent / "data"


@functools.cache
def load(name: str) -> Any:
    """The content of data file NAME ("releases/v26.7.0"), shared by all callers: read-only."""
    return read(ROOT / f"{name}.yaml")


@functools.cache
def read(path: Path) -> Any:
    """The content of the data file PATH of another room, shared in the same way."""
    from . import _events

    with path.open("rb") as file:
        return _events.plain(file)


def at(name: str, *keys: str) -> Any:
    """What stands at KEYS in data file NAME, shared by all callers: read-only."""
    return functools.reduce(operator.getitem, keys, load(name))


def words(name: str, *keys: str) -> tuple[str, ...]:
    """The list at KEYS in data file NAME, or the keys of the map."""
    return tuple(at(name, *keys))


def number(name: str, *keys: str) -> int:
    """The number at KEYS in data file NAME."""
    return int(at(name, *keys))


def table(name: str, *keys: str) -> Mapping[str, Any]:
    """The map at KEYS in data file NAME, shared by all callers: read-only."""
    mapping: Mapping[str, Any] = at(name, *keys)
    return mapping


def made(kind: type[T], facts: Mapping[str, Any], **more: Any) -> T:
    """A KIND, which is a dataclass, of those FACTS that are called as its fields are, lists as tuples. MORE wins."""
    own = {field.name: facts[field.name] for field in dataclasses.fields(kind) if field.name in facts}
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}
    return kind(**{**plain, **more})


@functools.cache
def listing(folder: str) -> tuple[str, ...]:
    """The names of the data files in FOLDER, sorted, without suffix."""
    return tuple(sorted(path.stem for path in (ROOT / folder).glob("*.yaml")))


def copy(value: Any) -> Any:
    """A deep copy of plain data. Much faster than copy.deepcopy, which has to look for cycles."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) for item in value]
    return value


def merge(target: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge CHANGES into TARGET and return it: maps by key, lists of named entries by name, all else is replaced. So
    `env` is merged entry by entry: the entries of TARGET keep their place, new ones follow."""
    for key, value in changes.items():
        old = target.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merge(old, value)
        elif old and value and _named(old) and _named(value):
            by_name = {entry["name"]: entry for entry in old}
            target[key] = list((by_name | {entry["name"]: copy(entry) for entry in value}).values())
        else:
            target[key] = copy(value)
    return target


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) and "name" in entry for entry in value)


def leaves(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in DATA that is not a map, with its dotted path."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def put(tree: dict[str, Any], path: str, value: Mapping[str, Any]) -> None:
    """Merge VALUE into TREE at the dotted PATH, making the maps on the way."""
    for step in path.split("."):
        tree = tree.setdefault(step, {})
    tree.update(value)
