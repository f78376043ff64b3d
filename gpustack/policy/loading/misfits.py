"""Parts of a policy that can't be merged: which places meet there, why nothing says what is meant, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpustack.model import InputError, Location, Path, dotted
from gpustack.text.refusals import Texts

from .lists import OBJECTS, Identity, identity

if TYPE_CHECKING:
    from .layers import Part

    Entry = tuple[Part, Any, Path]

TEXTS = Texts(__file__)


def check_names(items: list[dict[str, Any]], path: Path, part: Part) -> None:
    """Refuse a name that stands twice among ITEMS, the list at PATH of PART."""
    seen: dict[Identity, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(identity(item, ()), index)
        if first != index:
            words = {"list": dotted((*part.at, *path)), "name": item["name"]}
            words["other"] = str(part.locate((*path, first, "name")))
            raise _misfit(part, (*path, index), "name twice", where=part.locate((*path, index, "name")), **words)


def null_item(path: Path, part: Part) -> InputError:
    """Say that the item at PATH of PART has no value."""
    return _misfit(part, path, "null", list=dotted((*part.at, *path[:-1])))


def nameless(lower: Entry, upper: Entry, path: Path) -> InputError:
    """Say that a list can't be merged by name, because the lower one has an item without: it would just be gone."""
    (below, old, old_path), (above, _, new_path) = lower, upper
    without = (index for index, item in enumerate(old) if identity(item, path) is None)
    index = next(without, 0) if isinstance(old, list) else 0
    words: dict[str, Any] = {"list": dotted((*above.at, *path)), "above": above.file}
    words["there"] = above.locate(new_path, key=True)
    return _misfit(below, (*old_path, index), "nameless", **words)


def conflict(lower: Entry, upper: Entry, path: Path) -> InputError:
    """Say that a map meets something else. A default can't be wrong, so then only one of the two can be changed."""
    (below, old, old_path), (above, new, new_path) = lower, upper
    words = {"name": dotted((*above.at, *path)), "old": _sort(old), "new": _sort(new), "below": below.file}
    if below.text is None:
        fields = "its fields below it, indented, without dashes"
        words["do"] = f"write {fields if isinstance(old, dict) else _sort(old)}"
        if isinstance(new, bool):
            words["do"] = f"did you mean {{enabled: {str(new).lower()}}}?"
    else:
        words["there"] = str(below.locate(old_path, key=True))
    case = "unlike a default" if below.text is None else "conflict"
    return _misfit(above, new_path, case, where=above.locate(new_path, key=True), **words)


def misplaced(part: Part, index: int, what: str, remedy: str) -> InputError:
    """Say WHAT is wrong with the object INDEX of PART, and the REMEDY."""
    return _misfit(part, (*OBJECTS, index), "misplaced", what=what, do=remedy)


def _misfit(part: Part, path: Path, case: str, *, where: Location | None = None, **words: Any) -> InputError:
    """The error that CASE holds at PATH of PART, which is shown at WHERE, if not there."""
    where = where or part.locate(path)
    return InputError(TEXTS.finding("GPU011", case, where, at=dotted((*part.at, *path)), **words))


def _sort(node: Any) -> str:
    return "a mapping" if isinstance(node, dict) else "a list" if isinstance(node, list) else "a single value"
