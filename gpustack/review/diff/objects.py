"""What changed among the objects of a cluster: added, removed, changed, renamed, moved.

An object is the same one by group, kind, namespace and name; its API version is a field like others. One that is gone
and one that is new are a rename where they differ in nothing but their names: to the cluster that still is a removal
and a creation, so it is said as both.
"""

import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from ...catalog.kinds import NONE, Kinds, OwnKind
from ...gitops.engines import title
from ...model import Body
from .fields import FieldChange, changes

Kind = Literal["added", "removed", "changed", "renamed"]


class Identity(NamedTuple):
    """Which object. `namespace` is "" for none.

    `engine` is the GitOps engine whose own object it is, "" for what is applied to the cluster: the two never meet, and
    may have one name."""

    group: str
    kind: str
    namespace: str
    name: str
    engine: str = ""

    @classmethod
    def of(cls, body: Body, engine: str = "") -> Self:
        metadata = body.get("metadata") or {}
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
        space, name = ("" if each is None else each for each in map(metadata.get, ("namespace", "name")))
        return cls(group if version else "", str(body["kind"]), space, name, engine)

    def __str__(self) -> str:
        whose = f"{title(self.engine)}'s " if self.engine else ""
        return f"{whose}{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    @property
    def place(self) -> tuple[str, Self]:
        """Where it stands in a list: what is applied to the cluster first."""
        return (self.engine, self)


class Rendered(NamedTuple):
    """An object of a render, and its file below the cluster's folder."""

    body: Body
    file: str


Objects = Mapping[Identity, Rendered]


@dataclass(frozen=True)
class ObjectChange:
    """What became of one object. `body` is the whole of one that was added or removed.

    `was` names the object that one was renamed from. `moved` are the files before and after, where they differ. `old`
    and `new` are the whole object of either side, for who asks what the change means; `tier` is what it may do, once
    that is judged (review/impact). They are not part of the change."""

    what: Kind
    identity: Identity
    fields: Sequence[FieldChange] = ()
    body: Body | None = None
    was: Identity | None = None
    moved: tuple[str, str] | None = None
    file: str = ""
    tier: int | None = field(default=None, compare=False)
    old: Body | None = field(default=None, compare=False, repr=False)
    new: Body | None = field(default=None, compare=False, repr=False)

    def both(self, *path: str) -> tuple[Any, Any]:
        """What stands at PATH before and after."""
        return at(self.old, *path), at(self.new, *path)

    def below(self, *path: str) -> list[FieldChange]:
        """The changes of fields at PATH and below it, and of what PATH is in."""
        return [each for each in self.fields if all(map(operator.eq, each.path, path))]


def at(body: Any, *path: str) -> Any:
    """What stands in BODY at PATH, None where nothing does, whatever is in the way."""
    for step in path:
        if not isinstance(body, Mapping):
            return None
        body = body.get(step)
    return body


def mapping(value: Any) -> Mapping[str, Any]:
    """VALUE if it is a map, else an empty one: what others rendered may hold anything."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """VALUE if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def compare(before: Objects, after: Objects, *, kinds: Kinds = NONE) -> list[ObjectChange]:
    """The changes between two renders of a cluster, by identity. KINDS are the user's."""
    gone = {identity: each for identity, each in before.items() if identity not in after}
    new = {identity: each for identity, each in after.items() if identity not in before}
    made = []
    for old, fresh in _renames(gone, new):
        lost, now = gone.pop(old).body, new.pop(fresh)
        fields = changes(lost, now.body, _own(now.body, kinds))
        made.append(ObjectChange("renamed", fresh, fields, now.body, old, file=now.file, old=lost, new=now.body))
    made += [ObjectChange("removed", one, body=body, file=file, old=body) for one, (body, file) in gone.items()]
    made += [ObjectChange("added", one, body=body, file=file, new=body) for one, (body, file) in new.items()]
    for identity in before.keys() & after.keys():
        (left, was), (right, file) = before[identity], after[identity]
        fields, moved = changes(left, right, _own(right, kinds)), (was, file) if was != file else None
        if fields or moved:
            made.append(ObjectChange("changed", identity, fields, moved=moved, file=file, old=left, new=right))
    return sorted(made, key=lambda change: change.identity.place)


def _own(body: Body, kinds: Kinds) -> OwnKind | None:
    """The kind of BODY, where it is one of KINDS."""
    return kinds.of(str(body.get("apiVersion", "")), str(body["kind"])) if kinds else None


def _renames(gone: Objects, new: Objects) -> Iterator[tuple[Identity, Identity]]:
    """Pairs of objects that differ in nothing but their names: the only two such of their kind and namespace."""
    nameless: dict[Any, tuple[list[Identity], list[Identity]]] = {}
    for side, objects in enumerate((gone, new)):
        for identity, each in objects.items():
            key = (identity.engine, identity[:3], _without_name(each.body))
            nameless.setdefault(key, ([], []))[side].append(identity)
    for olds, news in nameless.values():
        if len(olds) == len(news) == 1:
            yield olds[0], news[0]


def _without_name(body: Body) -> str:
    name = str((body.get("metadata") or {}).get("name", ""))
    text = json.dumps(body, sort_keys=True, default=str)
    return text.replace(json.dumps(name), '"*"') if name else text
