"""Two sides of a comparison, and what differs between them, each distinct pair of clusters looked at once.

A side says for each cluster which files it has and names their content (without the header line, which names the policy
and differs where nothing else does). Clusters that were rendered from one effective spec share one mapping, so 1,000
clusters of 20 shapes are 20 comparisons. Only files whose content differs are ever parsed.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from ...catalog.kinds import NONE as NONE_ADDED
from ...catalog.kinds import Kinds
from ...model import Body, InputError
from .objects import Identity, ObjectChange, Rendered, compare
from .own import NONE, Own, holed, left_over, marked, marked_file, mentions

Files = Mapping[str, str]
"""The files of a cluster below its folder, and the name of each content."""
NO_FILES: Files = {}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_IN_NAMESPACE = re.compile(r"^  namespace: \"?([^\s\"]+)", re.MULTILINE)


@dataclass(frozen=True)
class Side:
    """One side: the files of each cluster, and how the text behind a name is had.

    `engine` are the files of the GitOps engine for each cluster, by their paths below the rendered folder: they are
    applied elsewhere, and each has the cluster's name in it. `kinds` are the user's own, as this side has them."""

    clusters: Mapping[str, Files]
    text: Callable[[str], str]
    title: str = ""
    engine: Mapping[str, Files] = field(default_factory=dict)
    kinds: Kinds = NONE_ADDED

    def names(self) -> set[str]:
        return {*self.clusters, *self.engine}


def within(title: str, what: str) -> str:
    """WHAT, a path or name, of the side called TITLE: a folder's title ends in a slash, another's is not a path."""
    return f"{title}{what}" if not title or title.endswith("/") else f"{title}: {what}"


@dataclass
class Texts:
    """Contents by name: what a side's `text` usually is."""

    known: dict[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        """The name of TEXT, which is kept: itself, the same object for equal ones."""
        return self.known.setdefault(text, text)

    def __call__(self, name: str) -> str:
        return self.known[name]


def without_header(text: str, header: str) -> str:
    """TEXT without its first line, if that begins with HEADER."""
    return text.partition("\n")[2] if text.startswith(header) else text


def differences(before: Side, after: Side) -> tuple[dict[str, Sequence[ObjectChange]], dict[str, Own]]:
    """What changed in each cluster of either side that has changes, and the names of its own marked in it (own.py).

    Clusters that have the very same changes, their own names aside, share one list. Raises InputError for a file that
    is not a Kubernetes object."""
    look = _Look(before, after)
    changes, owns = dict[str, Sequence[ObjectChange]](), dict[str, Own]()
    for cluster in sorted({*before.names(), *after.names()}):
        made, own = look.at(cluster)
        if made:
            changes[cluster], owns[cluster] = made, own
    return changes, owns


_Parsed = tuple[Identity, Rendered] | None
"""An object by its identity; None for a file without one."""


class _Pair(NamedTuple):
    """The files of a cluster on both sides."""

    left: Files
    right: Files

    @property
    def same(self) -> bool:
        return self.left is self.right or self.left == self.right

    def differ(self) -> list[str]:
        """The files whose content is not the same on both sides."""
        return [file for file in sorted({*self.left, *self.right}) if self.left.get(file) != self.right.get(file)]


class _Look:
    """Looks at one cluster after the other, at what is alike once."""

    def __init__(self, before: Side, after: Side) -> None:
        self._sides = (before, after)
        self._shapes: dict[int, Files] = {}
        self._alike: dict[Any, Files] = {}
        self._stack: dict[tuple[int, int, str], Sequence[ObjectChange]] = {}
        self._compared: dict[Any, Sequence[ObjectChange]] = {}
        self._joined: dict[tuple[int, int], Sequence[ObjectChange]] = {}
        self._spaces: dict[tuple[int, int], tuple[str, Sequence[str]]] = {}
        self._marks: dict[str, bool] = {}
        self._space: dict[str, str] = {}
        self._parsed: dict[Any, _Parsed] = {}

    def at(self, cluster: str) -> tuple[Sequence[ObjectChange], Own]:
        """What changed in CLUSTER, and the names of its own that are marked there."""
        stack = _Pair(*(self._shape(side.clusters.get(cluster, NO_FILES)) for side in self._sides))
        engine = _Pair(*(side.engine.get(cluster, NO_FILES) for side in self._sides))
        if stack.same and engine.same:
            return (), NONE
        both = (id(stack.left), id(stack.right))
        if both not in self._spaces:
            self._spaces[both] = self._namespace(stack)
        space, other = self._spaces[both]
        own, others = Own(cluster, space), engine.differ()
        if self._has_marks(stack, other) or self._has_marks(engine, others):
            own = NONE
        if (*both, own.namespace) not in self._stack:
            self._stack[*both, own.namespace] = self._changes(stack, other, own._replace(cluster=""), cluster)
        changes = self._stack[*both, own.namespace]
        engines = self._changes(engine, others, own, cluster, engine=True)
        joined = (id(changes), id(engines))
        if joined not in self._joined:
            self._joined[joined] = [*changes, *engines]
        return self._joined[joined], own

    def _shape(self, files: Files) -> Files:
        """The one mapping that stands for all that are equal to FILES."""
        if id(files) not in self._shapes:
            self._shapes[id(files)] = self._alike.setdefault(frozenset(files.items()), files)
        return self._shapes[id(files)]

    def _has_marks(self, pair: _Pair, files: Sequence[str]) -> bool:
        """Whether a mark stands in one of FILES by itself: then no name is marked, or nobody could tell them apart."""
        for side, named in zip(self._sides, (pair.left, pair.right), strict=True):
            for name in filter(None, map(named.get, files)):
                if name not in self._marks:
                    self._marks[name] = mentions(side.text(name))
                if self._marks[name]:
                    return True
        return False

    def _namespace(self, stack: _Pair) -> tuple[str, Sequence[str]]:
        """The namespace that most objects are in, "" where both sides differ; and the files that differ."""
        spaces = {
            self._most(files, side) for files, side in zip((stack.left, stack.right), self._sides, strict=True) if files
        }
        return spaces.pop() if len(spaces) == 1 else "", stack.differ()

    def _most(self, files: Files, side: Side) -> str:
        for name in files.values():
            if name not in self._space:
                match = _IN_NAMESPACE.search(side.text(name))
                self._space[name] = match[1] if match else ""
        counted = Counter(filter(None, map(self._space.__getitem__, files.values())))
        return max(counted, key=lambda space: (counted[space], space), default="")

    def _changes(
        self, pair: _Pair, files: Sequence[str], own: Own, cluster: str, *, engine: bool = False
    ) -> Sequence[ObjectChange]:
        """The changes in FILES. Those of an engine have their paths below the rendered folder."""
        ones = [
            [self._one(side, named[file], file, own, cluster, engine=engine) for file in files if file in named]
            for side, named in zip(self._sides, (pair.left, pair.right), strict=True)
        ]
        key = tuple(tuple(map(id, each)) for each in ones)
        if key not in self._compared:
            before, after = (dict(filter(None, each)) for each in ones)
            self._compared[key] = compare(before, after, kinds=self._sides[1].kinds)
        return self._compared[key]

    def _one(self, side: Side, name: str, file: str, own: Own, cluster: str, *, engine: bool) -> _Parsed:
        """The object in FILE, whose content is called NAME."""
        text, place = side.text(name), marked_file(file, own, engine=engine)
        of_all, of_one = (place, holed(text, own), NONE), (place, name, own)
        key = of_all if of_all in self._parsed else of_one
        if key not in self._parsed:
            body = _parse(text, within(side.title, file if engine else f"{cluster}/{file}"))
            made = marked(body, own, engine=engine)
            key = of_one if left_over(made, own) else of_all
            identity = Identity.of(made, file.split("/")[1] if engine else "") if body else None
            self._parsed[key] = (identity, Rendered(made, place)) if identity else None
        return self._parsed[key]


def _parse(text: str, shown: str) -> Body | None:
    try:
        body: Body | None = yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader, in C where there is one
        if body is not None and not all(isinstance(part, str) for part in Identity.of(body)):
            raise TypeError(shown)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        remedy = "compare folders that gpustack rendered, or take the file out of them"
        raise InputError.of("GPU950", f"{shown} is not a Kubernetes object", remedy=remedy) from None
    return body
