"""Merges defaults, layers and a policy into one spec, and says of every value who wrote it.

Solves: a value of a cluster may come from the release, the platform, one of several layers or the cluster's own file,
and a diagnostic, `explain` and a reviewer need to know which. All parts are merged at once: at each place the parts
that say something about it stand in a stack, lowest first. What only one part mentions is taken as it is, not copied,
so a policy of ten lines over the four hundred defaults of a release costs ten lines.

Origins are computed from the same stacks when somebody asks. Rejected: recording them while merging, which costs every
cluster of a fleet five times the merge, for an answer that a good run never needs.

Rules: null is absence; maps merge by key; lists whose items all have a name merge by it (and by kind, where items have
one), lower parts' order first; `extraObjects` merge by API group, kind, namespace (absent: the policy's) and name,
rules of a PrometheusRule by `alert` or `record`, and an object that says `$replace: true` takes the place of the
lower one whole; any other list, an empty one too, and any scalar is replaced.
"""

import functools
import hashlib
import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpustack.model import Location, Path, children, mappings

from .lists import OBJECTS, REPLACE, Identity, identity, inside_object, named
from .misfits import check_names, conflict, misplaced, nameless, null_item

OriginKind = Literal["gpustack", "release", "platform", "derived", "layer", "change", "policy"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a value: the sort of part, its file (for a part without one, what it is), the path in that; for a
    change the ring that it has come to."""

    kind: OriginKind
    file: str
    path: Path
    ring: str = ""


HOME = "gpu-operator"
"""What cluster.namespace is where no part says it."""


@dataclass(frozen=True)
class Part:
    """One contribution to a spec. `data` is read only; `at` is where it stands in its file; `text` is that file's.

    A part that is not a file has no text; `because` is then the path of the spec that made it count: its release, say.
    """

    kind: OriginKind
    file: str
    data: dict[str, Any] = field(repr=False)
    at: Path = ()
    text: str | None = field(default=None, repr=False)
    because: Path | None = None
    ring: str = ""

    @functools.cached_property
    def clean(self) -> dict[str, Any]:
        """The data without nulls and REPLACE. InputError for a null in a list, and for two items with one name."""
        cleaned: dict[str, Any] = _cleaned(self.data, (), self, checked=True)
        if not self.replacing:
            return cleaned
        objects = [
            {key: value for key, value in item.items() if key != REPLACE} if index in self.replacing else item
            for index, item in enumerate(cleaned[OBJECTS[0]])
        ]
        return {**cleaned, OBJECTS[0]: objects}

    @functools.cached_property
    def replacing(self) -> frozenset[int]:
        """Which of its objects take the place of lower ones whole. Raises InputError where REPLACE is not true."""
        marked = {index: item[REPLACE] for index, item in mappings(self.data.get(OBJECTS[0])) if REPLACE in item}
        for index, value in marked.items():
            if value is not True:
                what = f"{REPLACE} is true, or it isn't there"
                raise misplaced(self, index, what, "write true, or leave the line out to have the two objects merged")
        return frozenset(marked)

    def origin(self, path: Path) -> Origin:
        """Return the Origin of the value at PATH of `data`."""
        return Origin(self.kind, self.file, self.at + path, self.ring)

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
        return self._traced()

    @functools.cached_property
    def own(self) -> dict[Path, Origin]:
        """Those of `origins` that the cluster's own file wrote, found without a look at what it doesn't mention."""
        return self._traced("policy")

    def _traced(self, only: OriginKind | None = None) -> dict[Path, Origin]:
        origins: dict[Path, Origin] = {}
        _trace(self._stack, (), origins, only)
        return origins

    @property
    def _stack(self) -> list[_Entry]:
        return [(part, part.clean, ()) for part in self.parts]

    @functools.cached_property
    def key(self) -> str:
        """The digest of the spec: equal for equal specs, whoever wrote which value, in any order of keys."""
        text = json.dumps(self.spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def writer(self, path: Path) -> tuple[Part, Path] | None:
        """Return the highest part that says something about PATH (a leaf or not) and the path in that part's data."""
        stack = self._stack
        for depth, step in enumerate(path):
            place = path[:depth]
            if place not in self._splits:
                self._splits[place] = _split(stack, place)
            parts = self._splits[place]
            if not has(parts, step):
                return None
            stack = parts[step]
        if not stack:
            return None
        part, _, own = stack[-1]
        return part, own

    def overridden(self, path: Path) -> list[tuple[Part, Path]]:
        """What the value at PATH (a leaf) took the place of, lowest first: the same value in lower parts, and where a
        list or an object of its path is replaced whole, those."""
        stack = self._stack
        for depth, step in enumerate(path):
            below = _replaced(stack, path[:depth], step)
            if below:
                return below
            parts = _split(stack, path[:depth])
            if not has(parts, step):
                return []
            stack = parts[step]  # type: ignore[index]
        return [(part, own) for part, _, own in stack[:-1]]

    def nearest_writer(self, path: Path) -> tuple[Part, Path] | None:
        """Return the writer of PATH or, where nobody wrote that, of its nearest parent that somebody wrote."""
        while (writer := self.writer(path)) is None and path:
            path = path[:-1]
        return writer

    def cause(self, part: Part) -> Location:
        """Return the place that made PART count: `release: v26.7.0` for the defaults of that release."""
        writer = self.writer(part.because) if part.because is not None else None
        return writer[0].locate(writer[1]) if writer and writer[0].text is not None else Location(part.file)

    def origin(self, path: Path) -> Origin | None:
        """Return the Origin of the value at PATH, a leaf or not, or None where the spec has no such path."""
        writer = self.writer(path)
        return writer[0].origin(writer[1]) if writer else None


def merge(parts: Sequence[Part]) -> Merged:
    """Merge PARTS, the lowest first; none is changed. InputError (GPU011) for what can't be merged: misfits.py."""
    parts = _at_home(parts)
    stack: list[_Entry] = [(part, part.clean, ()) for part in parts]
    _check_objects(parts)
    return Merged(_join(stack, ()) if stack else {}, tuple(parts))


def has(node: Any, step: str | int) -> bool:
    """Tell whether NODE is a mapping with the key STEP, or a list with an item STEP (from 0)."""
    if isinstance(node, list):
        return isinstance(step, int) and 0 <= step < len(node)
    return isinstance(node, dict) and step in node


def _join(stack: list[_Entry], path: Path) -> Any:
    if len(stack) == 1:
        return stack[0][1]
    parts = _split(stack, path)
    if isinstance(parts, dict):
        return {key: _join(child, (*path, key)) for key, child in parts.items()}
    if parts and named(stack[-1][1], path):
        return [_join(child, (*path, index)) for index, child in enumerate(parts)]
    return stack[-1][1]


def _trace(stack: list[_Entry], path: Path, origins: dict[Path, Origin], only: OriginKind | None) -> None:
    """Put the origins of the leaves that STACK makes into ORIGINS; with ONLY, the highest kind, those of that kind."""
    if not stack or only not in (None, stack[-1][0].kind):
        return
    parts = _split(stack, path)
    if not parts:
        part, _, own = stack[-1]
        origins[path] = part.origin(own)
    for step, child in children(parts):
        _trace(child, (*path, step), origins, only)


def _split(stack: list[_Entry], path: Path) -> dict[str, list[_Entry]] | list[list[_Entry]] | None:
    """Return, for each key or index of the value that STACK makes, the stack of its value; None for a scalar."""
    top = stack[-1][1] if stack else None
    for lower in stack[:-1]:
        if isinstance(lower[1], dict) is not isinstance(top, dict):
            raise conflict(lower, stack[-1], path)
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
    if not named(top, path):
        part, _, own = stack[-1]
        return [[(part, item, (*own, index))] for index, item in enumerate(top)]
    first = len(stack) - 1
    while first > 0 and stack[first - 1][1]:  # an empty list says that there are no items, so nothing below it counts
        lower = stack[first - 1]
        if not named(lower[1], path):
            if lower[0].text is None or inside_object(path):  # nobody can give a default names: it is replaced
                break
            raise nameless(lower, stack[-1], path)
        first -= 1
    by_name: dict[Identity, list[_Entry]] = {}
    for part, node, own in stack[first:]:
        for index, item in enumerate(node):
            lower_ones = by_name.setdefault(identity(item, path), [])
            if path == OBJECTS and index in part.replacing:
                lower_ones.clear()
            lower_ones.append((part, item, (*own, index)))
    return list(by_name.values())


def _replaced(stack: list[_Entry], path: Path, step: str | int) -> list[tuple[Part, Path]]:
    """What the list at PATH takes the place of, if it is replaced whole, or its object STEP, if that is."""
    part, top, own = stack[-1] if stack else (None, None, ())
    if not isinstance(top, list):
        return []
    if not named(top, path):
        return [(lower, at) for lower, node, at in stack[:-1] if node]
    parts = _split(stack, path)
    if path != OBJECTS or not has(parts, step):
        return []
    part, item, own = parts[step][0]  # type: ignore[index]
    if own[-1] not in part.replacing:
        return []
    below = stack[: next(at for at, entry in enumerate(stack) if entry[0] is part)]
    return [
        (lower, (*at, index))
        for lower, node, at in below
        for index, other in enumerate(node)
        if identity(other, OBJECTS) == identity(item, OBJECTS)
    ]


def _at_home(parts: Sequence[Part]) -> Sequence[Part]:
    """PARTS, an object's namespace left out where it is the policy's and another part leaves it out."""
    sections, lists = ([part.clean.get(key) for part in parts] for key in ("cluster", OBJECTS[0]))
    homes = [HOME, *(each["namespace"] for each in sections if isinstance(each, dict) and "namespace" in each)]
    known = {identity(item, OBJECTS) for items in lists if isinstance(items, list) for item in items}
    twins = {one for one in known if one and one[2] == homes[-1] and (*one[:2], "", one[3]) in known}
    return [_without_home(part, twins) for part in parts] if twins else parts


def _without_home(part: Part, twins: Set[Identity]) -> Part:
    objects = [dict(item) for item in part.data.get(OBJECTS[0]) or ()]
    for item in objects:
        if identity(item, OBJECTS) in twins:
            item["metadata"] = {key: value for key, value in item["metadata"].items() if key != "namespace"}
    return replace(part, data={**part.data, OBJECTS[0]: objects}) if objects else part


def _check_objects(parts: Sequence[Part]) -> None:
    """Refuse an object that stands twice in a list which is merged with another, and one that replaces nothing."""
    lists = [(part, part.clean[OBJECTS[0]]) for part in parts if isinstance(part.clean.get(OBJECTS[0]), list)]
    known: set[Identity] = set()
    for part, objects in lists:
        own = [identity(item, OBJECTS) for item in objects]
        for index, this in enumerate(own):
            if index in part.replacing and this not in known:
                what = "this object takes the place of one that no layer below has"
                raise misplaced(part, index, what, f"correct its kind, namespace or name, or leave out {REPLACE}")
            if len(lists) > 1 and this is not None and this in own[:index]:
                what = f"the {objects[index]['kind']} {objects[index]['metadata']['name']} stands twice in this list"
                raise misplaced(part, index, what, "merge the two, or give one of them another name")
        known = known | set(own) if objects else set()


def _cleaned(node: Any, path: Path, part: Part, *, checked: bool) -> Any:
    """Return NODE without nulls, and NODE itself where there are none.

    CHECKED ends below a list without names: such a list is never merged, so names in it (subjects of a role binding,
    say) need not be unique."""
    if isinstance(node, dict):
        nested = {key: value for key, value in node.items() if isinstance(value, (dict, list))}
        clean = {key: _cleaned(value, (*path, key), part, checked=checked) for key, value in nested.items()}
        changed = {key: value for key, value in clean.items() if value is not nested[key]}
        if changed or None in node.values():
            return {key: changed.get(key, value) for key, value in node.items() if value is not None}
        return node
    checked = checked and named(node, ())
    if checked:
        check_names(node, path, part)
    items = []
    for index, item in enumerate(node):
        if item is None:
            raise null_item((*path, index), part)
        items.append(_cleaned(item, (*path, index), part, checked=checked) if isinstance(item, (dict, list)) else item)
    return items if any(new is not old for new, old in zip(items, node, strict=True)) else node
