"""gpustack images: every image that the rendered objects name, with the clusters and objects that use it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ..compiler import fleet
from ..compiler.fleet import Progress, Project, Source
from ..model import Body
from ..text.read import read
from . import common

if TYPE_CHECKING:
    from ..review.images.inventory import Found, Image
    from ..review.images.lock import Locked


def run(options: argparse.Namespace) -> int:
    from .formats import images as formats

    digests = locked()
    with common.project(options) as project:
        images, clusters = used(project, options.policies, common.progress_line(options))
    print(formats.written(images, clusters, digests, options.format), end="")
    return 0


def locked() -> dict[str, Locked] | None:
    """What images.lock says, None without that file. Raises InputError where it can't be read."""
    from ..review.images import lock

    if not os.path.lexists(lock.FILE):
        return None
    return lock.read(read(Path(lock.FILE), lock.FILE).data, lock.FILE)


def used(project: Project, words: Sequence[str], progress: Progress) -> tuple[list[Image], list[str]]:
    """The images of the clusters that WORDS mean (all without any), and these clusters. Each distinct spec is looked at
    once. Raises FindingsError where a rule refuses a policy."""
    from ..review.images import inventory

    known: dict[str, list[Found]] = {}
    parsed: dict[str, Body] = {}
    sources = fleet.compiled(project, common.select(words), progress)
    for source in sources:
        if source.key not in known:
            spec = fleet.spec_of(project, source)
            known[source.key] = inventory.of_cluster(bodies(project, source, parsed), spec)
    clusters = {source.name: known[source.key] for source in sources}
    return inventory.of_fleet(clusters), sorted(clusters)


def bodies(project: Project, source: Source, parsed: dict[str, Body]) -> Iterator[Body]:
    """The objects that SOURCE renders to. PARSED has those of other clusters by their text: most are the same."""
    from ..review.diff.sides import LOADER

    for file in fleet.stack_of(project, source).files:
        if file.text not in parsed:
            parsed[file.text] = yaml.load(file.text, Loader=LOADER)  # noqa: S506 - a safe loader, in C where there is one
        yield parsed[file.text]
