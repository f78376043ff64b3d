"""gpustack affected: which clusters changed files concern, so that CI looks at these alone.

A policy concerns its cluster, a layer the clusters that extend it, `waivers.yaml` all clusters, and what lies in dist/
the cluster whose folder that is, its engine's objects included. A file that is gone counts as well. What lies elsewhere
concerns no cluster.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from . import common
from .text import document, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="changed files, such as `git diff --name-only` lists")
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the manifests are (default: dist)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


def run(options: argparse.Namespace) -> int:
    found = sorted(affected([absolute(name) for name in options.files], Path(options.out)))
    if options.format == "json":
        print(document(0, [], clusters=found))
        return 0
    for name in found:
        print(printable(name))
    return 0


def absolute(name: str | Path) -> str:
    return os.path.abspath(name)


def affected(changed: Sequence[str], out: Path) -> set[str]:
    """The clusters that the files CHANGED, absolute paths, concern."""
    from ..compiler.index import clusters_in
    from ..policy.load import WAIVERS, layers_of
    from .render import index_source

    files = set(changed)
    fleet = {path: common.name_of(path) or path.stem for path in common.select([])}
    found = set[str]()
    for path, cluster in fleet.items():
        own = {path, path.parent / WAIVERS, *layers_of(path)}
        if files & {absolute(each) for each in own} or below(files, out, cluster):
            found.add(cluster)
    for cluster in clusters_in(out):
        gone = index_source(out, cluster)
        if (gone and absolute(gone) in files and not os.path.lexists(gone)) or below(files, out, cluster):
            found.add(cluster)
    return found


def below(files: set[str], out: Path, cluster: str) -> bool:
    """Whether one of FILES lies in the folder of CLUSTER in OUT or in that of its engine's objects, or is its index."""
    from ..compiler.index import INDEX
    from ..gitops.place import ENGINES, FOLDER

    folders = (out / cluster, *(out / FOLDER / engine / cluster for engine in ENGINES))
    return absolute(out / INDEX / f"{cluster}.json") in files or any(
        name.startswith(tuple(absolute(folder) + os.sep for folder in folders)) for name in files
    )
