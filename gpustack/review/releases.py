"""What changes when `release` changes: images, defaults, fields and behaviour; and what that does to one cluster.

A new release flips defaults without a line in anybody's policy (v25.10 turned CDI on, v26.7 the exporter's
ServiceMonitor). So the defaults are compared as a policy sees them, and switches that flip are told apart.
"""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..catalog import _data, _versions, releases, traits
from ..catalog import fields as catalogue

KIND = "ClusterPolicy"


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs: `before` or `after` is None where a release has none."""

    path: str
    before: Any
    after: Any

    @property
    def flips(self) -> bool:
        """Whether it is a switch: a boolean or a word, which changes what runs without anybody's asking."""
        return isinstance(self.before, bool) or isinstance(self.after, bool) or self.path in WORDS


WORDS = {"ccManager.defaultMode", "driver.kernelModuleType", "mig.strategy", "sandboxWorkloads.mode"}


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """What differs between two releases. `behaviour` says in words what one of them renders differently."""

    images: tuple[Change, ...]
    defaults: tuple[Change, ...]
    fields: tuple[Change, ...]
    behaviour: tuple[str, ...]
    driver_branches: tuple[str, str]


def compare(before: str, after: str) -> ReleaseDiff:
    """Compare two releases of the catalogue by name. Raises catalog.releases.UnknownRelease."""
    old, new = releases.release(before), releases.release(after)
    named = [{**side.images, "nfd": side.nfd_image} for side in (old, new)]
    images = [{name: each.reference for name, each in side.items()} for side in named]
    defaults = [dict(_data.leaves(without_images(side.default_spec()))) for side in (old, new)]
    branches = str(old.image("driver").version).split(".")[0], str(new.image("driver").version).split(".")[0]
    fields, words = field_changes(before, after), behaviour(old.traits, new.traits)
    return ReleaseDiff(changed(*images), changed(*defaults), tuple(fields), tuple(words), branches)


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """The values that differ, by their paths."""
    pairs = {path: (before.get(path), after.get(path)) for path in sorted(before.keys() | after.keys())}
    return tuple(Change(path, one, two) for path, (one, two) in pairs.items() if one != two)


def without_images(spec: dict[str, Any]) -> dict[str, Any]:
    """SPEC without repository, image and version of each section: those are compared as images."""
    image = {"repository", "image", "version"}
    return {
        key: without_images(value) if isinstance(value, dict) else value
        for key, value in spec.items()
        if not (key in image and image & spec.keys() and not isinstance(value, dict))
    }


def field_changes(before: str, after: str) -> Iterator[Change]:
    """Fields that one of the releases does not know; the operator of that release drops them without a word."""
    order = releases.names()
    low, high = sorted((before, after), key=order.index)
    for path, facts in catalogue.fields(KIND).items():
        if facts.since and newer(facts.since, low) and not newer(facts.since, high):
            yield Change(path, None, facts.since) if after == high else Change(path, facts.since, None)


def newer(one: str, other: str) -> bool:
    """Whether release ONE came after OTHER, by number."""
    return _versions.key(one) > _versions.key(other)


def behaviour(before: traits.Traits, after: traits.Traits) -> Iterator[str]:
    """The traits that differ, in the words of traits.py."""
    words = descriptions()
    for field in fields(traits.Traits):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if old != new:
            yield words[field.name] if new else f"No longer: {words[field.name]}"


def descriptions() -> dict[str, str]:
    """What each trait says of itself: the text below its line in traits.py, without the place in the facts."""
    tree = ast.parse(Path(traits.__file__).read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Traits")
    texts: dict[str, str] = {}
    for line, text in itertools.pairwise(body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(text, ast.Expr):
            words = " ".join(str(ast.literal_eval(text.value)).split())
            texts[line.target.id] = re.sub(r" \((?:rows?|section) [^)]*\)", "", words)
    return texts


def object_changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    """Files of two renders that differ: removed, added, changed, those whose pods restart, and those that wait for
    their pods to be deleted (OnDelete)."""
    changed = [path for path in before.keys() & after.keys() if before[path] != after[path]]
    workloads = ("daemonset-", "deployment-")
    pods = [path for path in changed if path.partition("/")[2].startswith(workloads)]
    waits = [path for path in pods if "\n    type: OnDelete\n" in after[path]]
    rolls = [path for path in pods if path not in waits]
    return {
        "removed": sorted(before.keys() - after.keys()),
        "added": sorted(after.keys() - before.keys()),
        "changed": sorted(set(changed) - set(pods)),
        "rolls": sorted(rolls),
        "waits": sorted(waits),
    }
