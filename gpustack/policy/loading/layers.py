"""Merges defaults, layers and a policy into one spec, and says of every value who wrote it.

Solves: a value of a cluster may come from the release, the platform, one of several layers or the cluster's own file,
and a diagnostic, `explain` and a reviewer need to know which. All parts are merged at once: at each place the parts
that say something about it stand in a stack, lowest first. What only one part mentions is taken as it is, not copied,
so a policy of ten lines over the four hundred defaults of a release costs ten lines.

Origins are computed from the same stacks when somebody asks. Rejected: recording them while merging, which costs every
cluster of a fleet five times the merge, for an answer that a good run never needs.

Rules: null is absence; maps merge by key; lists whose items all have a name merge by it (and by kind, where items have
one), lower parts' order first; any other list, an empty one too, and any scalar is replaced.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpustack.model import Finding, InputError, Location, Path, dotted

OriginKind = Literal["release", "platform", "derived", "layer", "policy"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a value: the sort of part, its file (or, for a part that is no file, what it is), the path in that."""

    kind: OriginKind
    file: str
    path: Path


@dataclass(frozen=True)
class Part:
    """One contribution to a spec. `data` is read only; `at` is where it stands in its file; `text` is that file's.

    A part that is no file has no text; `because` is then the path of the spec that made it count: its release, say.
    """

    kind: OriginKind
    file: str
    data: dict[str, Any] = field(repr=False)
    at: Path = ()
    text: str | None = field(default=None, repr=False)
    because: Path | None = None

    @functools.cached_property
    def clean(self) -> dict[str, Any]:
        """The data without nulls. Raises InputError for a null in a list and for two items of one name in a list."""
        return _cleaned(self.data, (), self, named=True)  # type: ignore[no-any-return]

    def origin(self, path: Path) -> Origin:
        """Return the Origin of the value at PATH of `data`."""
        return Origin(self.kind, self.file, self.at + path)

    def locate(self, path: Path, *, key: bool = False) -> Location:
        """Return where the value at PATH of `data` stands; a part without a text has no lines."""
        if self.text is None:
            return Location(self.file)
        from gpustack.text.positions import locate

        return locate(self.text, self.file, self.at + path, key=key)

    def written(self, path: Path) -> str | None:
        """Return the scalar at PATH of `data` as its author wrote it, or None."""
        if self.text is None:
            return None
        from gpustack.text.positions import written

        return written(self.text, self.at + path)


_Entry = tuple[Part, Any, Path]
"""A part, its value at some place of the result, and where in the part that value stands."""


@dataclass(frozen=True)
class Merged:
    """The merged spec and what it was made of. `spec` shares values with the parts: never change it."""

    spec: dict[str, Any] = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    _splits: dict[Path, Any] = field(default_factory=dict, repr=False, compare=False)

    @functools.cached_property
    def origins(self) -> dict[Path, Origin]:
        """The origin of every leaf of `spec`: scalars, and maps and lists that are empty."""
        found: dict[Path, Origin] = {}
        _trace([(part, part.clean, ()) for part in self.parts], (), found)
        return found

    @functools.cached_property
    def own(self) -> dict[Path, Origin]:
        """Those of `origins` that the cluster's own file wrote, found without a look at what it doesn't mention."""
        found: dict[Path, Origin] = {}
        _trace([(part, part.clean, ()) for part in self.parts], (), found, only="policy")
        return found

    @functools.cached_property
    def key(self) -> str:
        """The digest of the spec: equal for equal specs, whoever wrote which value, in any order of keys."""
        text = json.dumps(self.spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def writer(self, path: Path) -> tuple[Part, Path] | None:
        """Return the highest part that says something about PATH (a leaf or not) and the path in that part's data."""
        stack: list[_Entry] = [(part, part.clean, ()) for part in self.parts]
        for depth, step in enumerate(path):
            place = path[:depth]
            if place not in self._splits:
                self._splits[place] = _split(stack, place)
            children = self._splits[place]
            if not has(children, step):
                return None
            stack = children[step]
        if not stack:
            return None
        part, _, own = stack[-1]
        return part, own

    def nearest_writer(self, path: Path) -> tuple[Part, Path] | None:
        """Return the writer of PATH or, where nobody wrote that, of its nearest parent that somebody wrote."""
        found = self.writer(path)
        while found is None and path:
            path = path[:-1]
            found = self.writer(path)
        return found

    def cause(self, part: Part) -> Location:
        """Return the place that made PART count: `release: v26.7.0` for the defaults of that release."""
        found = self.writer(part.because) if part.because is not None else None
        return found[0].locate(found[1]) if found and found[0].text is not None else Location(part.file)

    def origin(self, path: Path) -> Origin | None:
        """Return the Origin of the value at PATH, a leaf or not, or None where the spec has no such path."""
        found = self.writer(path)
        return found[0].origin(found[1]) if found else None


def merge(parts: Sequence[Part]) -> Merged:
    """Merge PARTS, the lowest first. No part is changed.

    Raises InputError (GPU011) where a map meets something else, a list holds a null, or a list names an item twice or
    not at all.
    """
    stack: list[_Entry] = [(part, part.clean, ()) for part in parts]
    return Merged(_join(stack, ()) if stack else {}, tuple(parts))


def has(node: Any, step: str | int) -> bool:
    """Tell whether NODE is a mapping with the key STEP, or a list with an item STEP (from 0)."""
    if isinstance(node, list):
        return isinstance(step, int) and 0 <= step < len(node)
    return isinstance(node, dict) and step in node


def _join(stack: list[_Entry], path: Path) -> Any:
    if len(stack) == 1:
        return stack[0][1]
    children = _split(stack, path)
    if isinstance(children, dict):
        return {key: _join(child, (*path, key)) for key, child in children.items()}
    if isinstance(children, list) and len(children) > 0 and _named(stack[-1][1]):
        return [_join(child, (*path, index)) for index, child in enumerate(children)]
    return stack[-1][1]


def _trace(stack: list[_Entry], path: Path, found: dict[Path, Origin], only: OriginKind | None = None) -> None:
    """Put the origins of all leaves of the value that STACK makes into FOUND; with ONLY, which must be the highest kind
    of part, those of that kind.
    """
    if only is not None and stack and stack[-1][0].kind != only:
        return
    children = _split(stack, path)
    if not children:
        if stack:
            part, _, own = stack[-1]
            found[path] = part.origin(own)
    elif isinstance(children, dict):
        for key, child in children.items():
            _trace(child, (*path, key), found, only)
    else:
        for index, child in enumerate(children):
            _trace(child, (*path, index), found, only)


def _split(stack: list[_Entry], path: Path) -> dict[str, list[_Entry]] | list[list[_Entry]] | None:
    """Return, for each key or index of the value that STACK makes, the stack of its value; None for a scalar."""
    top = stack[-1][1] if stack else None
    for lower in stack[:-1]:
        if isinstance(lower[1], dict) is not isinstance(top, dict):
            raise _conflict(lower, stack[-1], path)
    if isinstance(top, dict):
        by_key: dict[str, list[_Entry]] = {}
        for part, node, own in stack:
            for key, value in node.items():
                by_key.setdefault(key, []).append((part, value, (*own, key)))
        return by_key
    return _items(stack, path) if isinstance(top, list) else None


def _items(stack: list[_Entry], path: Path) -> list[list[_Entry]]:
    """As `_split`, for a list: items with names are merged by them, a list without is replaced whole."""
    top = stack[-1][1]
    if not _named(top):
        part, _, own = stack[-1]
        return [[(part, item, (*own, index))] for index, item in enumerate(top)]
    first = len(stack) - 1
    while first > 0 and stack[first - 1][1]:  # an empty list says that there are no items, so nothing below it counts
        lower = stack[first - 1]
        if not _named(lower[1]):
            if lower[0].text is None:  # a default, which nobody can give names: it is replaced, as other lists are
                break
            raise _nameless(lower, stack[-1], path)
        first -= 1
    by_name: dict[tuple[Any, str], list[_Entry]] = {}
    for part, node, own in stack[first:]:
        for index, item in enumerate(node):
            by_name.setdefault(_identity(item), []).append((part, item, (*own, index)))
    return list(by_name.values())


def _named(node: Any) -> bool:
    """Is NODE a list whose items are told apart by name? An empty list is not: it says that there are no items."""
    return (
        isinstance(node, list)
        and len(node) > 0
        and all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in node)
    )


def _identity(item: dict[str, Any]) -> tuple[Any, str]:
    kind = item.get("kind")
    return kind if isinstance(kind, str) else None, item["name"]


def _cleaned(node: Any, path: Path, part: Part, *, named: bool) -> Any:
    """Return NODE without nulls, and NODE itself where there are none.

    NAMED ends below a list without names: such a list is never merged, so names in it (subjects of a role binding, say)
    need not be unique.
    """
    if isinstance(node, dict):
        changed = {}
        for key, value in node.items():
            if isinstance(value, (dict, list)):
                clean = _cleaned(value, (*path, key), part, named=named)
                if clean is not value:
                    changed[key] = clean
        if changed or None in node.values():
            return {key: changed.get(key, value) for key, value in node.items() if value is not None}
        return node
    named = named and _named(node)
    if named:
        _check_names(node, path, part)
    items = []
    for index, item in enumerate(node):
        if item is None:
            raise _null_item((*path, index), part)
        items.append(_cleaned(item, (*path, index), part, named=named) if isinstance(item, (dict, list)) else item)
    return items if any(new is not old for new, old in zip(items, node, strict=True)) else node


def _check_names(items: list[dict[str, Any]], path: Path, part: Part) -> None:
    seen: dict[tuple[Any, str], int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(_identity(item), index)
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


def _null_item(path: Path, part: Part) -> InputError:
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


def _nameless(lower: _Entry, upper: _Entry, path: Path) -> InputError:
    """Say that a list can't be merged by name, because the lower one has an item without: it would just be gone."""
    (below, old, old_path), (above, _, new_path) = lower, upper
    index = next((index for index, item in enumerate(old) if not _named([item])), 0) if isinstance(old, list) else 0
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


def _conflict(lower: _Entry, upper: _Entry, path: Path) -> InputError:
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


def _sort(node: Any) -> str:
    return "a mapping" if isinstance(node, dict) else "a list" if isinstance(node, list) else "a single value"


__all__ = ["Merged", "Origin", "OriginKind", "Part", "has", "merge"]
