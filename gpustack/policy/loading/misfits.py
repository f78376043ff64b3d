"""Parts of a policy that can't be merged: which places meet there, why nothing says what is meant, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpustack.model import Finding, InputError, Path, dotted

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
        other = part.locate((*path, first, "name"))
        raise InputError(
            Finding(
                "GPU011",
                "error",
                f"{dotted((*part.at, *path))} has two items with the name {item['name']}",
                dotted((*part.at, *path, index)),
                part.locate((*path, index, "name")),
                f"items of this list are told apart by name; the first is at {other}",
                "merge the two, or give one of them another name",
            )
        )


def null_item(path: Path, part: Part) -> InputError:
    """Say that the item at PATH of PART has no value."""
    return InputError(
        Finding(
            "GPU011",
            "error",
            f"{dotted((*part.at, *path[:-1]))} holds an item without a value",
            dotted((*part.at, *path)),
            part.locate(path),
            "null stands for absence, and an item of a list can't be absent",
            "write the item's value, or delete its dash",
        )
    )


def nameless(lower: Entry, upper: Entry, path: Path) -> InputError:
    """Say that a list can't be merged by name, because the lower one has an item without: it would just be gone."""
    (below, old, old_path), (above, _, new_path) = lower, upper
    without = (index for index, item in enumerate(old) if identity(item, path) is None)
    index = next(without, 0) if isinstance(old, list) else 0
    name = dotted((*above.at, *path))
    return InputError(
        Finding(
            "GPU011",
            "error",
            f"an item of {name} has no name",
            dotted((*below.at, *old_path, index)),
            below.locate((*old_path, index)),
            f"items of this list are told apart by name; {above.file} has more of them at "
            f"{above.locate(new_path, key=True)}, and nothing says which are the same",
            "give it a name",
        )
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
    where = above.locate(new_path, key=True)
    return InputError(Finding("GPU011", "error", what, dotted((*above.at, *new_path)), where, why, remedy))


def misplaced(part: Part, index: int, what: str, remedy: str) -> InputError:
    """Say WHAT is wrong with the object INDEX of PART, and the REMEDY."""
    at = (*OBJECTS, index)
    why = "extraObjects of layers and policy are merged by API group, kind, namespace and name"
    return InputError(Finding("GPU011", "error", what, dotted((*part.at, *at)), part.locate(at), why, remedy))


def _sort(node: Any) -> str:
    return "a mapping" if isinstance(node, dict) else "a list" if isinstance(node, list) else "a single value"
