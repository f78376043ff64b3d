"""gpustack affected: which clusters changed files concern, so that CI looks at these alone.

A policy concerns its cluster, a layer the clusters that extend it, `waivers.yaml` and `fleet.yaml` all clusters, and
what lies in dist/ the cluster whose folder that is, its engine's objects included. A change concerns the rings that
have it and the next, from which it may have been taken back; all, where none has it or it is gone. A file that is gone
counts as well, a link is what it leads to as well, and a folder is all that is in it. What lies elsewhere concerns no
cluster.
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..compiler.beside import INDEX, clusters_in
from ..gitops import FOLDER
from ..model import InputError
from ..policy.loading.brought import LOCK
from ..policy.loading.extends import is_layer_name
from ..policy.loading.load import WAIVERS, layers_of, ringed
from ..policy.loading.rings import is_shared
from . import common
from .refusals import refusal
from .text import document, printable


def run(options: argparse.Namespace) -> int:
    if bool(options.advisory) == bool(options.files):
        raise refusal("GPU026", "files or advisories")
    if options.as_change and (options.format == "json" or not options.advisory):
        raise refusal("GPU026", "change of nothing")
    if options.as_change and not is_layer_name(options.as_change):
        raise refusal("GPU026", "odd change", name=options.as_change)
    if options.advisory:
        from . import advisories

        return advisories.run(options)
    for name in options.files:  # as Git writes names for people: no file is called so, and none would be found
        if len(name) > 1 and name[0] == name[-1] == '"' and not os.path.lexists(name):
            raise refusal("GPU026", "quoted", name=name)
    clusters = sorted(affected(options.files, Path(options.out)))
    if options.format == "json":
        print(document(0, [], clusters=clusters))
        return 0
    for name in clusters:
        print(printable(name))
    return 0


def absolute(name: str | Path) -> set[str]:
    """The places of the file NAME: its own, and where links lead."""
    return {os.path.abspath(name), os.path.realpath(name)}


@dataclass(frozen=True, slots=True)
class Files:
    """Changed files by their places, and the folders that they are in."""

    named: set[str]
    inside: set[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """The files NAMES."""
        named = set[str]().union(*map(absolute, names))
        return cls(named, {folder for name in named for folder in above(name)})


def affected(changed: Iterable[str], out: Path) -> set[str]:
    """The clusters that the files CHANGED concern."""
    from .render import index_source

    files = Files.of(changed)
    fleet = {path: common.name_of(path) or path.stem for path in common.select([])}
    clusters = set[str]()
    far = far_changes()
    shared = f"{os.path.abspath(common.POLICIES)}/"
    lost = any(is_shared(name.removeprefix(shared), layers=False) and not os.path.lexists(name) for name in files.named)
    lost = lost or concerned(files, LOCK)
    for path, cluster in fleet.items():
        own = {path, path.parent / WAIVERS, *layers_of(path)} - far.get(path, set())
        if lost or any(concerned(files, each) for each in own) or below(files, out, cluster):
            clusters.add(cluster)
    for cluster in clusters_in(out):
        gone = index_source(out, cluster)
        if (gone and not os.path.lexists(gone) and concerned(files, gone)) or below(files, out, cluster):
            clusters.add(cluster)
    return clusters


def far_changes() -> dict[Path, set[Path]]:
    """By policy, the changes that reached neither its ring nor the one before; nothing where one can't be read."""
    with suppress(InputError):
        rings, ring_of, paths = ringed(Path(common.POLICIES), Path.cwd())
        reached = {Path(each.document.file).absolute(): rings.place(each.rollout.ring) for each in rings.changes}
        return {
            path: {file for file, last in reached.items() if -1 < last < rings.place(ring_of[name]) - 1}
            for name, path in paths.items()
        }
    return {}


def concerned(files: Files, path: str | Path) -> bool:
    """Whether PATH, or a folder that it is in, is one of FILES."""
    return any(each in files.named or not files.named.isdisjoint(above(each)) for each in absolute(path))


def above(path: str) -> Iterator[str]:
    """The folders that PATH, an absolute one, is in."""
    while (folder := os.path.dirname(path)) != path:  # noqa: PTH120 - of a name, thousands of times
        yield folder
        path = folder


def below(files: Files, out: Path, cluster: str) -> bool:
    """Whether the folder of CLUSTER in OUT, that of its engine's objects, or its index is one of FILES, is in one of
    them, or is one of the folders that FILES are inside."""
    from ..gitops.engines import names

    if concerned(files, out / INDEX / f"{cluster}.json"):
        return True
    folders = (out / cluster, *(out / FOLDER / engine / cluster for engine in names()))
    if any(not absolute(folder).isdisjoint(files.inside) for folder in folders):
        return True
    return any(concerned(files, folder) for folder in folders if os.path.lexists(folder))
