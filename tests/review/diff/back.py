"""The way back: what was found in a difference, applied to its old side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpustack.review.diff.fields import FieldChange, Item, Path, Step
from gpustack.review.diff.groups import Group, _joined
from gpustack.review.diff.objects import Identity, ObjectChange, Objects, Rendered
from gpustack.review.diff.own import NONE, Own, literal


def ungroup(groups: Iterable[Group], own: Mapping[str, Own] | None = None) -> dict[str, list[ObjectChange]]:
    """The changes of each cluster again: what `group` was given, but for the order, and with names for marks."""
    by_cluster: dict[str, list[ObjectChange]] = {}
    for each in groups:
        for cluster in each.clusters:
            by_cluster.setdefault(cluster, []).extend(literal(each.changes, (own or {}).get(cluster, NONE)))
    return {cluster: list(_joined(changes)) for cluster, changes in by_cluster.items()}


def apply_to(before: Objects, made: Sequence[ObjectChange]) -> dict[Identity, Rendered]:
    """BEFORE with the changes MADE: what `compare` was given as after, quantities and their spelling aside."""
    after = dict(before)
    for change in made:
        if change.what == "removed":
            del after[change.identity]
        elif change.what == "added":
            after[change.identity] = Rendered(change.body or {}, change.file)
        else:
            old = after.pop(change.was or change.identity)
            file = change.moved[1] if change.moved else old.file if change.what == "changed" else change.file
            after[change.identity] = Rendered(apply(old.body, change.fields), file)
    return after


def apply(before: Any, made: Sequence[FieldChange]) -> Any:
    """BEFORE with the changes MADE in it. Raises KeyError where a change does not fit."""
    root = {"": _copy(before)}
    for change in made:
        _apply(root, ("", *change.path), change)
    return root[""]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _apply(root: Any, path: Path, change: FieldChange) -> None:
    holder = root
    for step in path[:-1]:
        holder = holder[_position(holder, step)]
    last = path[-1]
    if change.op == "order":
        items = holder[_position(holder, last)]
        holder[_position(holder, last)] = [next(item for item in items if key.matches(item)) for key in change.after]
    elif change.op == "remove":
        del holder[_position(holder, last)]
    elif change.op == "add" and isinstance(holder, list):
        holder.append(_copy(change.after))
    else:
        holder[last if isinstance(holder, dict) else _position(holder, last)] = _copy(change.after)


def _position(holder: Any, step: Step) -> Any:
    if not isinstance(step, Item):
        return step
    for position, item in enumerate(holder):
        if step.matches(item):
            return position
    raise KeyError(str(step))
