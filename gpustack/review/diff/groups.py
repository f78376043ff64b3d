"""Equal changes of many clusters as one.

Solves: a new image in 412 clusters is one decision and, in a text diff, 412 hunks that nobody reads. Each change of a
field is known by object, path and values; those that the same clusters have are one group. So a reviewer reads what is
common to all once, and sees at the end what only one cluster has.
"""

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...model import grouped
from .fields import FieldChange, Item, Path
from .objects import Identity, ObjectChange
from .own import NONE, Own, literal

LAST = 9
"""Behind every tier."""


@dataclass(frozen=True)
class Group:
    """Changes that the same clusters have, in the order of the objects, and `by` whom, where that was no policy."""

    clusters: tuple[str, ...]
    changes: tuple[ObjectChange, ...]
    by: str = ""


@dataclass(frozen=True)
class Difference:
    """A whole comparison: the titles of both sides, how many clusters there are, and the groups."""

    before: str
    after: str
    total: int
    groups: tuple[Group, ...]


def group(by_cluster: Mapping[str, Sequence[ObjectChange]], own: Mapping[str, Own] | None = None) -> list[Group]:
    """The changes of all clusters, each once; groups of the lowest tier and with the most clusters first.

    Clusters that have the very same changes should share one list object: it is looked at once. OWN are the names that
    are marked in the changes of each; those that all clusters of a group have in common are written out."""
    shared: dict[int, tuple[Sequence[ObjectChange], list[str]]] = {}
    for cluster, changes in by_cluster.items():
        shared.setdefault(id(changes), (changes, []))[1].append(cluster)
    atoms: dict[str, tuple[ObjectChange, list[str]]] = {}
    for changes, clusters in shared.values():
        for atom in _atoms(changes):
            atoms.setdefault(_key(atom), (atom, []))[1].extend(clusters)
    together = grouped((tuple(sorted(clusters)), atom) for atom, clusters in atoms.values())
    groups = [
        Group(clusters, literal(tuple(_joined(changes)), common(clusters, own or {})))
        for clusters, changes in together.items()
    ]
    return sorted(
        groups, key=lambda each: (lowest(each), -len(each.clusters), each.clusters, each.changes[0].identity.place)
    )


def lowest(group: Group) -> int:
    """The lowest tier of a change in GROUP: the most serious one. Changes that nobody judged come last."""
    return min(LAST if change.tier is None else change.tier for change in group.changes)


def common(clusters: Iterable[str], own: Mapping[str, Own]) -> Own:
    """The names that all of CLUSTERS have in common."""
    return functools.reduce(Own.common, (own.get(cluster, NONE) for cluster in clusters))


def _atoms(changes: Iterable[ObjectChange]) -> Iterator[ObjectChange]:
    """Each change of a field by itself, but for what belongs together: what is added to one list, and its order."""
    for change in changes:
        if change.what != "changed":
            yield change
            continue
        lists = ((_list_of(change.fields, field) or number, field) for number, field in enumerate(change.fields))
        for fields in grouped(lists).values():
            yield replace(change, fields=tuple(fields), moved=None)
        if change.moved:
            yield replace(change, fields=())


def _list_of(fields: Sequence[FieldChange], field: FieldChange) -> Path | None:
    """The list whose order FIELD has a part in."""
    for each in fields:
        if each.op == "order" and field.path[: len(each.path)] == each.path:
            return each.path
    return field.path[:-1] if field.op == "add" and isinstance(field.path[-1], Item) else None


def _joined(atoms: Sequence[ObjectChange]) -> Iterator[ObjectChange]:
    """The changes of an object as one again."""
    joined: dict[Identity, ObjectChange] = {}
    for atom in atoms:
        before = joined.get(atom.identity)
        if before and atom.what == before.what == "changed":
            fields, moved = (*before.fields, *atom.fields), before.moved or atom.moved
            joined[atom.identity] = replace(before, fields=fields, moved=moved)
        else:
            joined[atom.identity] = atom
    for change in joined.values():
        yield replace(change, fields=tuple(sorted(change.fields, key=lambda field: PLACES[field.op])))


PLACES = {"remove": 0, "replace": 1, "add": 1, "order": 2}
"""Removals stand before what takes their place, and orders last; the sort is stable."""


def _key(change: ObjectChange) -> str:
    fields = [[field.op, _plain(field.path), _plain(field.before), _plain(field.after)] for field in change.fields]
    known = [change.what, change.identity, fields, change.body, change.was, change.moved]
    return json.dumps([*known, change.what != "changed" and change.file], sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    """A path, or the keys of an order, as JSON holds them; 1 and "1" are two keys."""
    if isinstance(value, (tuple, list)):
        return [repr(step.key) if isinstance(step, Item) else step for step in value]
    return value
