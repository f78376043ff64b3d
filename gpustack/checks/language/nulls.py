"""The rule about values that are null."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...model import Path, dotted
from ...policy.loading.place import node
from ..rule import Hit, hit, rule

if TYPE_CHECKING:
    from ..subjects import Written


@rule("GPU810", "note", over="origins")
def null(written: Written) -> Iterator[Hit]:
    """A value that is null, or nothing at all."""
    for part in written.merged.parts:
        if part.kind not in {"layer", "policy"} or part.clean is part.data:  # it has none
            continue
        for own, path in _nulls(part.data, written.merged.spec, (), ()):
            where = part.locate(own, key=True)
            emptied = isinstance(node(written.merged.spec, path), list)
            stays = written.merged.writer(path) is not None
            empty = f"; an empty list is {path[-1]}: []" if emptied else ""
            yield hit(
                dotted(("spec", *path)), "stays" if stays else "nothing", file=where.file, line=where.line, empty=empty
            )


def _nulls(data: Any, merged: Any, own: Path, path: Path) -> Iterator[tuple[Path, Path]]:
    """The nulls in DATA: their places there, and in MERGED, where items with names may have other positions."""
    if isinstance(data, dict):
        for key, value in data.items():
            if value is None:
                yield (*own, key), (*path, key)
            elif key != "extraObjects":  # manifests are their authors'
                below = merged.get(key) if isinstance(merged, dict) else None
                yield from _nulls(value, below, (*own, key), (*path, key))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            at = _position(item, index, merged)
            below = merged[at] if isinstance(merged, list) and at < len(merged) else None
            yield from _nulls(item, below, (*own, index), (*path, at))


def _position(item: Any, index: int, merged: Any) -> int:
    """Where ITEM is in the list MERGED."""
    name = item.get("name") if isinstance(item, dict) else None
    names = [other.get("name") for other in merged if isinstance(other, dict)] if isinstance(merged, list) else []
    return names.index(name) if name is not None and name in names else index
