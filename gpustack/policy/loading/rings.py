"""Rings: the order in which clusters get a change, and the changes that are on their way through them.

Solves: one value in a layer changes sixty clusters in one merge. A change is a file of its own, policies/changes/
NAME.yaml. It says what a layer may say, and how far it has come; it counts above the layers and below the cluster's
file, in the clusters of the rings that it has reached. policies/fleet.yaml says which rings there are, in their order,
and who is in them. What each cluster has is still a rendered file in Git.
"""

from __future__ import annotations

import datetime
import fnmatch
import functools
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpustack.model import Finding, InputError, Path, dotted
from gpustack.policy.loading.envelope import Envelope, open_layer, told, valid
from gpustack.policy.loading.extends import is_layer_name
from gpustack.policy.loading.layers import Part
from gpustack.policy.loading.lists import identity, named
from gpustack.text.read import Document, read

if TYPE_CHECKING:
    from gpustack.policy.loading.ring import Ring, Rollout

FLEET = "fleet.yaml"
"""The file beside the policies that says which rings there are."""
CHANGES = "changes"
"""The folder beside the policies that holds the changes."""


@dataclass(frozen=True)
class Change:
    """A change that is on its way, and how far it has come."""

    name: str
    document: Document
    rollout: Rollout
    part: Part = field(repr=False)
    version: str = ""
    """The version of gpustack that renders clusters which have it (versions.py); "" where it says nothing of that."""
    merged: datetime.datetime | None = field(default=None, compare=False)
    """When the branch that is checked out got it as it is, where somebody has asked Git (cli/promote.py)."""

    @property
    def came(self) -> datetime.datetime | None:
        """When it came to its ring: when it says so, or later, when it was merged."""
        moments = (self.rollout.came, self.merged) if self.rollout.ring else ()
        return max(filter(None, moments), default=None)

    @functools.cached_property
    def leaves(self) -> dict[tuple[Any, ...], tuple[Path, Any]]:
        """What it sets: by what the place is called whoever else writes there, the path in the file and the value."""
        return {called: (at, value) for called, at, value in leaves(self.part.clean)}

    def of_version(self, case: str, **words: Any) -> Finding:
        """What the table says of CASE, with WORDS in it, about the version that it names."""
        return told(self.document, ("gpustack",), "GPU090", case, change=self.name, **words)

    def told(self, key: str, happens: str, **words: Any) -> Finding:
        """As `told`, of what keeps it from going where somebody wants it, at the KEY of its rollout."""
        path: Path = ("rollout", key) if key else ("rollout",)
        return told(self.document, path, "GPU092", happens, change=self.name, **words)


@dataclass(frozen=True)
class Rings:
    """The rings of a folder of policies, and the changes in the order of their names."""

    document: Document | None = None
    rings: tuple[Ring, ...] = ()
    changes: tuple[Change, ...] = ()

    def place(self, ring: str | None) -> int:
        """The place of RING in the order, from 0; -1 for None: a change that has reached no cluster."""
        return next((index for index, each in enumerate(self.rings) if each.name == ring), -1)

    def ring_of(self, policy: Envelope) -> str | None:
        """The ring of the cluster of POLICY; None for a cluster in no ring."""
        for ring in self.rings:
            labelled = bool(ring.labels) and ring.labels.items() <= policy.labels.items()
            if labelled or any(fnmatch.fnmatchcase(str(policy.name), glob) for glob in ring.clusters):
                return ring.name
        return None

    def reached(self, change: Change, ring: str | None) -> bool:
        """Whether CHANGE counts in the clusters of RING."""
        return -1 < self.place(ring) <= self.place(change.rollout.ring)

    def of(self, policy: Envelope, ahead: Iterable[str] = ()) -> list[Change]:
        """The changes that count in the cluster of POLICY, and those AHEAD. InputError where it is in no ring."""
        ring = self.ring_of(policy) if self.changes else None
        if ring is None and self.changes:
            raise InputError(told(policy.document, ("metadata", "name"), "GPU091", "nobody's", cluster=policy.name))
        return [each for each in self.changes if each.name in {*ahead} or self.reached(each, ring)]


def rings_of(folder: pathlib.Path, display: Callable[[pathlib.Path], str]) -> Rings:
    """The rings and changes of FOLDER, none where it has neither. Raises InputError with all that is wrong there."""
    files = shared_files(folder, layers=False)
    return of_documents({name: read(path, display(path)) for name, path in files.items()}) if files else Rings()


def of_documents(documents: Mapping[str, Document]) -> Rings:
    """The rings and changes in DOCUMENTS, by their names from the policies on, as `rings_of`."""
    from gpustack.policy.loading.ring import FleetSpec, Renderer, Rollout

    wrong: list[Finding] = []
    document, rings = documents.get(FLEET), list["Ring"]()
    if document is not None:
        opened = open_layer(document, "fleet", "Fleet")
        read_spec = valid(FleetSpec, Part("policy", document.file, opened.spec, ("spec",), document.text), wrong)
        rings = read_spec.rings if read_spec else []
        wrong += opened.findings
    changes = []
    for name, each in sorted(documents.items()):
        stem = pathlib.PurePath(name).stem
        if name == FLEET:
            continue
        opened = open_layer(each, stem, "PolicyChange")
        odd = not is_layer_name(stem) or not name.endswith(".yaml")
        wrong += [told(each, (), "GPU090", "odd name", name=pathlib.PurePath(name).name)] if odd else opened.findings
        given = each.data.get("rollout") or {}
        if not isinstance(given, dict):
            wrong.append(told(each, ("rollout",), "GPU090", "no mapping", what="rollout"))
            continue
        rollout = valid(Rollout, Part("policy", each.file, given, ("rollout",), each.text), wrong)
        beside = {key: each.data[key] for key in ("gpustack",) if key in each.data}
        renderer = valid(Renderer, Part("policy", each.file, beside, (), each.text), wrong)
        known = [ring.name for ring in rings]
        if rollout and document is None:
            wrong.append(told(each, ("kind",), "GPU090", "no rings"))
        elif rollout and known and rollout.ring not in (None, *known):
            where, said = ("rollout", "ring"), ", ".join(known)
            wrong.append(told(each, where, "GPU090", "no ring", ring=rollout.ring, known=said))
        elif rollout:
            part = Part("change", each.file, opened.spec, ("spec",), each.text, ring=rollout.ring or "")
            changes.append(Change(stem, each, rollout, part, (renderer and renderer.gpustack) or ""))
    if wrong:
        raise InputError(*wrong)
    return Rings(document, tuple(rings), tuple(changes))


def shared_files(folder: pathlib.Path, *, layers: bool = True) -> dict[str, pathlib.Path]:
    """The files of FOLDER that many clusters may read, by their names from there: rings, changes and LAYERS."""
    files = {FLEET: folder / FLEET} if os.path.lexists(folder / FLEET) else {}
    for below in ("layers", CHANGES) if layers else (CHANGES,):
        entries = sorted((folder / below).iterdir()) if (folder / below).is_dir() else []
        files |= {name: each for each in entries if is_shared(name := f"{below}/{each.name}") and each.is_file()}
    return files


def is_shared(name: str, *, layers: bool = True) -> bool:
    """Whether the file NAME, from the policies on, is the rings, a layer (if LAYERS count) or a change."""
    below, _, rest = name.rpartition("/")
    return (
        name == FLEET
        or (layers and below == "layers")
        or (below == CHANGES and rest.endswith((".yaml", ".yml")) and rest[0] != ".")
    )


def contradictions(changes: Sequence[Change]) -> Iterator[Finding]:
    """What is wrong with CHANGES that count in one cluster: two of them say different things of one value."""
    for index, change in enumerate(changes):
        for other in changes[:index]:
            for called, (at, value) in change.leaves.items():
                there = other.leaves.get(called)
                if there is not None and there[1] != value:
                    words: dict[str, Any] = {"change": change.name, "other": other.name, "value": dotted(("spec", *at))}
                    words["at_other"] = other.part.locate(there[0])
                    yield told(change.document, ("spec", *at), "GPU091", "contradiction", **words)


def leaves(node: Any, called: tuple[Any, ...] = (), at: Path = ()) -> Iterator[tuple[tuple[Any, ...], Path, Any]]:
    """Every value in NODE, a part of a spec: what its place is CALLED, items of lists by their names, AT which path."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*called, key), (*at, key))
    elif named(node, called):
        for index, item in enumerate(node):
            yield from leaves(item, (*called, identity(item, called)), (*at, index))
    else:
        yield called, at, node
