"""Changes as lines that people read, the same for a terminal, Markdown and HTML.

Values of Secrets are never shown, nor anything derived from them: that they changed is what a reviewer may know. A text
with several lines, a script or an embedded configuration, is shown as a diff of its lines. What changes in the same way
in several objects, an image or a toleration for example, is one block with the objects behind it.
"""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...model import dotted
from .engine_fold import folded
from .fields import FieldChange, Item, Path
from .groups import LAST, Group
from .objects import Identity, ObjectChange, items

Mark = Literal["+", "-", "~", " "]
TOGETHER = 3
"""In so many objects a change becomes one line."""
LONG = 24
"""Lines of a value that are shown; the whole of it stands in the file."""
CONTENT = 80
"""Lines of a new object that are shown."""
WITHOUT_CONTENT = {3, 5}
"""Tiers of new objects of which a few lines are enough: planned and routine."""
HIDDEN = "(hidden)"
MARKS: dict[str, Mark] = {"added": "+", "removed": "-", "changed": "~", "renamed": "~"}


@dataclass(frozen=True)
class Line:
    """A line: "+" for what is new, "-" for what goes, "~" for a heading within an object, " " for context."""

    mark: Mark
    text: str


@dataclass(frozen=True)
class Block:
    """What changed in one object, or in several in the same way."""

    mark: Mark
    title: str
    lines: tuple[Line, ...]


def blocks(group: Group) -> list[Block]:
    """The changes of GROUP: an engine that comes or goes, then what several objects share, then the rest."""
    fold, changes = folded(group.changes)
    made: list[Block] = []
    if fold:
        lines = [Line(side, text) for side, text in fold.lines()]
        made = [Block("~", fold.title, (*lines, Line(" ", "object by object: gpustack diff --format json")))]
    shared = _shared(changes)
    made += [_together(rows) for rows in shared.values()]
    for change in sorted(changes, key=lambda one: LAST if one.tier is None else one.tier):
        own = [field for field in change.fields if (change.what != "changed" or _same(field) not in shared)]
        if own or change.what != "changed" or change.moved:
            title = f"{change.was} renamed to {change.identity.name}" if change.was else str(change.identity)
            made.append(Block(MARKS[change.what], title, tuple(_lines(change, own))))
    return made


def count(group: Group) -> str:
    """How many objects GROUP changes, in words, and who did, where that was no policy."""
    counted = Counter(change.what for change in group.changes)
    parts = [f"{counted[what]} {what}" for what in ("added", "changed", "renamed", "removed") if counted[what]]
    return ", ".join(parts) + (f", by {group.by}" if group.by else "")


def _end(path: Path) -> str:
    """The end of PATH that says what it is about: an item with its list, and a variable's value with its name."""
    if path and isinstance(path[-1], Item):
        return dotted(path[-2:])
    return dotted(path[-3:] if path[-1:] == ("value",) else path[-1:])


def _same(field: FieldChange) -> str:
    return json.dumps([_end(field.path), field.op, field.before, field.after], sort_keys=True, default=str)


def _shared(changes: Sequence[ObjectChange]) -> dict[str, list[tuple[Identity, FieldChange]]]:
    by_change: dict[str, list[tuple[Identity, FieldChange]]] = {}
    for change in changes:
        if change.what == "changed" and change.identity.kind != "Secret":
            for field in change.fields:
                plain = field.op == "replace" and not isinstance(field.after, (dict, list))
                if plain or field.op in {"add", "remove"}:
                    by_change.setdefault(_same(field), []).append((change.identity, field))
    return {key: rows for key, rows in by_change.items() if len({identity for identity, _ in rows}) >= TOGETHER}


def _together(rows: Sequence[tuple[Identity, FieldChange]]) -> Block:
    field = rows[0][1]
    objects = list(dict.fromkeys(str(identity) for identity, _ in rows))
    title = f"{_end(field.path)} in {len(objects)} objects"
    lines = [*_values(field, hidden=False), Line(" ", ", ".join(objects))]
    return Block("~", title, tuple(lines))


def _lines(change: ObjectChange, fields: Sequence[FieldChange]) -> Iterator[Line]:
    if change.moved:
        yield Line("-", f"file {change.moved[0]}")
        yield Line("+", f"file {change.moved[1]}")
    if change.what in {"added", "removed"}:
        mark: Mark = "+" if change.what == "added" else "-"
        # All of an object that comes, but not of a component's, which its policy stands for, nor of a Secret.
        known = change.tier in {None, *WITHOUT_CONTENT} or change.identity.kind == "Secret"
        whole = change.what == "added" and not known
        texts = shown(change.body or {}) if whole else list(_summary(change.body or {}))
        yield from _cut([Line(mark, text) for text in texts], CONTENT)
        return
    for field in fields:
        yield Line("~", dotted(field.path) or "the whole object")
        yield from _values(field, hidden=hides(change, field))


OPEN = ("apiVersion", "kind", "type", "immutable")
"""What of a Secret is shown, beside its metadata."""
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps the whole object."""


def hides(change: ObjectChange, field: FieldChange) -> bool:
    """Whether the values of FIELD are a Secret's, or may hold them."""
    if change.identity.kind != "Secret":
        return False
    first, second, third = (*field.path, "", "", "")[:3]
    if first == "metadata":
        return second in {"", "annotations"} and third in {"", APPLIED}
    return first not in OPEN


def _values(field: FieldChange, *, hidden: bool) -> Iterator[Line]:
    if field.op == "order":
        yield Line("-", "order " + " ".join(map(_key, field.before)))
        yield Line("+", "order " + " ".join(map(_key, field.after)))
        return
    if hidden:
        yield from ([] if field.op == "add" else [Line("-", HIDDEN)])
        yield from ([] if field.op == "remove" else [Line("+", HIDDEN)])
        return
    if isinstance(field.before, str) and isinstance(field.after, str) and "\n" in field.before + field.after:
        yield from _text(field.before, field.after)
        return
    if field.before and field.after and isinstance(field.before, list) and isinstance(field.after, list):
        yield from _cut(list(_list(field.before, field.after)))
        return
    if field.op != "add":
        yield from _cut([Line("-", text) for text in shown(field.before)])
    if field.op != "remove":
        yield from _cut([Line("+", text) for text in shown(field.after)])


def _key(item: Item) -> str:
    return "/".join(str(value) for _, value in item.key if value is not None)


def _text(before: str, after: str) -> Iterator[Line]:
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    for text in list(made)[2:]:
        yield Line(text[0] if text[0] in "+-" else " ", text[1:] if text[0] in "+- " else text)  # type: ignore[arg-type]


def _list(before: list[Any], after: list[Any]) -> Iterator[Line]:
    """The items that go and come, of a list whose items nothing tells apart; of those that stay, how many they are."""
    old, new = ([json.dumps(item, sort_keys=True, default=str) for item in items] for items in (before, after))
    stay = 0
    for op, start, end, at, to in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            stay += end - start
            continue
        yield from (Line("-", text) for text in shown(before[start:end]) if end > start)
        yield from (Line("+", text) for text in shown(after[at:to]) if to > at)
    if stay:
        yield Line(" ", f"{stay} {'item stays' if stay == 1 else 'items stay'}")


def _cut(lines: Sequence[Line], most: int = LONG) -> Iterator[Line]:
    yield from lines[:most]
    if len(lines) > most:
        yield Line(" ", f"... {len(lines) - most} lines more")


def shown(value: Any, indent: str = "") -> list[str]:
    """VALUE as lines of YAML-like text; texts with several lines as they are."""
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            inner = shown(item, f"{indent}  ")
            nested = isinstance(item, (dict, list)) and bool(item)
            lines += [f"{indent}{key}:", *inner] if nested else [f"{indent}{key}: {inner[0].strip()}", *inner[1:]]
        return lines
    if isinstance(value, list) and value:
        lines = []
        for item in value:
            inner = shown(item, f"{indent}  ")
            lines += [f"{indent}- {inner[0].strip()}", *inner[1:]]
        return lines
    if isinstance(value, str) and "\n" in value:
        return ["|", *(f"{indent}{line}" for line in value.splitlines())]
    return [f"{indent}{value if isinstance(value, str) and value else json.dumps(value)}"]


def _summary(body: dict[str, Any]) -> Iterator[str]:
    """What an object that comes or goes is, in a few lines: its images, its rights, its keys."""
    for image in sorted(set(_images(body))):
        yield f"image {image}"
    for rule in body.get("rules") or ():
        if isinstance(rule, dict) and "verbs" in rule:
            what = ", ".join(rule.get("resources") or rule.get("nonResourceURLs") or ())
            yield f"may {', '.join(rule['verbs'])} {what}"
    data = body.get("data")
    if isinstance(data, dict) and data:
        yield f"keys {', '.join(sorted(data))}"


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("image"), str):
        yield value["image"]
    for item in value.values() if isinstance(value, dict) else items(value):
        yield from _images(item)
