"""A cluster that gets another GitOps engine, or none, is one decision: told as one, however many objects it reaches.

An engine reads annotations on nearly every object, with a handful of values, and has objects of its own. Where all of
them come or go together, that is one block that counts them instead of a block for each value.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ...gitops.engines import engines, title
from .fields import FieldChange
from .objects import ObjectChange

PATH = ("metadata", "annotations")
FEW = 3
"""In fewer objects annotations are shown object by object."""

Side = Literal["-", "+"]


@dataclass
class Fold:
    """What comes ("+") and goes ("-"): annotations by key, each with how often it has which value, and objects."""

    annotations: dict[tuple[Side, str], Counter[str]] = field(default_factory=dict)
    reached: set[object] = field(default_factory=set)
    objects: list[tuple[Side, str]] = field(default_factory=list)
    engines: dict[Side, set[str]] = field(default_factory=lambda: {"-": set(), "+": set()})

    @property
    def swapped(self) -> bool:
        """Whether one engine takes the place of another."""
        return {side for side, _ in self.objects} == {"-", "+"} and self.engines["-"].isdisjoint(self.engines["+"])

    @property
    def title(self) -> str:
        """Which engine, and how much of it."""
        names = sorted({title(engine) for one in self.engines.values() for engine in one})
        step = f"what {' and '.join(names)} reads"
        if self.swapped:
            step = " -> ".join(title(min(one)) for one in (self.engines["-"], self.engines["+"]))
        objects = Counter(side for side, _ in self.objects)
        parts = [f"annotations in {len(self.reached)} objects"] if self.reached else []
        parts += [f"{objects['-']} of its own removed"] if objects["-"] else []
        parts += [f"{objects['+']} of its own added"] if objects["+"] else []
        return f"{step}: {', '.join(parts)}"

    def lines(self) -> list[tuple[Side, str]]:
        """What goes and then what comes, annotations first."""
        rows: list[tuple[Side, str]] = []
        for (side, key), values in sorted(self.annotations.items()):
            each = ", ".join(f"{value} ({number})" for value, number in sorted(values.items()))
            rows.append((side, f"{key} in {values.total()} objects: {each}"))
        return sorted([*rows, *self.objects], key=lambda row: row[0] == "+")


def folded(changes: Sequence[ObjectChange]) -> tuple[Fold | None, Sequence[ObjectChange]]:
    """What of CHANGES is an engine that comes or goes, and the others; None where they are shown as they are."""
    fold, rest = Fold(), list[ObjectChange]()
    for change in changes:
        if change.identity.engine and change.what in {"added", "removed"}:
            side: Side = "+" if change.what == "added" else "-"
            fold.objects.append((side, str(change.identity)))
            fold.engines[side].add(change.identity.engine)
        elif change.what == "changed" and change.identity.kind != "Secret" and not change.identity.engine:
            kept = tuple(one for one in change.fields if not _counted(fold, change, one))
            if kept or change.moved:
                rest.append(replace(change, fields=kept))
        else:
            rest.append(change)
    return (fold, rest) if len(fold.reached) >= FEW or fold.swapped else (None, changes)


def _counted(fold: Fold, change: ObjectChange, one: FieldChange) -> bool:
    """Count the annotations that ONE adds or removes, if an engine reads all of them."""
    if one.path[:2] != PATH or len(one.path) > 3 or one.op not in {"add", "remove"}:
        return False
    side: Side = "+" if one.op == "add" else "-"
    value = one.after if one.op == "add" else one.before
    annotations = {str(one.path[2]): value} if len(one.path) == 3 else value
    keys = map(str, annotations if isinstance(annotations, dict) else ())
    read = [next((each.name for each in engines() if key.startswith(each.annotations[0])), None) for key in keys]
    if not read or None in read:
        return False
    for key, text in annotations.items():
        fold.annotations.setdefault((side, key), Counter())[str(text)] += 1
    fold.engines[side] |= {engine for engine in read if engine}
    fold.reached.add(change.identity)
    return True
