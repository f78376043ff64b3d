"""Parts of a policy that can't be merged: which places meet there, why nothing says what is meant, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpustack.model import Finding, InputError, Location, Path, dotted

from .lists import OBJECTS, Identity, identity

if TYPE_CHECKING:
    from .layers import Part

    Entry = tuple[Part, Any, Path]


def check_names(items: list[dict[str, Any]], path: Path, part: Part) -> None:
    """Refuse a name that stands twice among ITEMS, the list at PATH of PART."""
    seen: dict[Identity, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(identity(item, ()), index)
        if first == index:
            continue
        what = f"{dotted((*part.at, *path))} has two items with the name {item['name']}"
        why = f"items of this list are told apart by name; the first is at {part.locate((*path, first, 'name'))}"
        remedy = "merge the two, or give one of them another name"
        raise _misfit(part, (*path, index), what, why, remedy, where=part.locate((*path, index, "name")))


def null_item(path: Path, part: Part) -> InputError:
    """Say that the item at PATH of PART has no value."""
    what = f"{dotted((*part.at, *path[:-1]))} holds an item without a value"
    why = "null stands for absence, and an item of a list can't be absent"
    return _misfit(part, path, what, why, "write the item's value, or delete its dash")


def nameless(lower: Entry, upper: Entry, path: Path) -> InputError:
    """Say that a list can't be merged by name, because the lower one has an item without: it would just be gone."""
    (below, old, old_path), (above, _, new_path) = lower, upper
    without = (index for index, item in enumerate(old) if identity(item, path) is None)
    index = next(without, 0) if isinstance(old, list) else 0
    more = f"{above.file} has more of them at {above.locate(new_path, key=True)}, and nothing says which are the same"
    why = f"items of this list are told apart by name; {more}"
    return _misfit(
        below, (*old_path, index), f"an item of {dotted((*above.at, *path))} has no name", why, "give it a name"
    )


def conflict(lower: Entry, upper: Entry, path: Path) -> InputError:
    """Say that a map meets something else. A default can't be wrong, so then only one of the two can be changed."""
    (below, old, old_path), (above, new, new_path) = lower, upper
    name = dotted((*above.at, *path))
    if below.text is None:
        what = f"{name} must be {_sort(old)}, not {_sort(new)}"
        why = f"it is {_sort(old)} in {below.file}"
        remedy = f"write {_sort(old)}"
        if isinstance(new, bool):
            remedy = f"did you mean {{enabled: {str(new).lower()}}}?"
        elif isinstance(old, dict):
            remedy = "write its fields below it, indented, without dashes"
    else:
        what = f"{name} is {_sort(new)} here and {_sort(old)} in {below.file}"
        why = f"the two can't be merged; the other is at {below.locate(old_path, key=True)}"
        remedy = f"write {_sort(old)} in both, or {_sort(new)} in both"
    return _misfit(above, new_path, what, why, remedy, where=above.locate(new_path, key=True))


def misplaced(part: Part, index: int, what: str, remedy: str) -> InputError:
    """Say WHAT is wrong with the object INDEX of PART, and the REMEDY."""
    why = "extraObjects of layers and policy are merged by API group, kind, namespace and name"
    return _misfit(part, (*OBJECTS, index), what, why, remedy)


def _misfit(part: Part, path: Path, what: str, why: str, remedy: str, *, where: Location | None = None) -> InputError:
    """The error that WHAT stands at PATH of PART is no part of a policy; it is shown at WHERE, if not there."""
    return InputError(
        Finding("GPU011", "error", what, dotted((*part.at, *path)), where or part.locate(path), why, remedy)
    )


def _sort(node: Any) -> str:
    return "a mapping" if isinstance(node, dict) else "a list" if isinstance(node, list) else "a single value"
