"""Which clusters of a comparison another version of gpustack renders than on its base, and what that alone changes: the
base's policies are rendered by the new version, in a folder of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...compiler.cache import own_digest
from ...model import GpustackError
from ...policy.loading.brought import LIMITS, LOCK
from ...policy.loading.load import display, policy_files
from ...text.read import read
from ...text.regular import read_regular
from .. import common
from .comparison import New, side_of

if TYPE_CHECKING:
    from ...compiler.fleet import Project
    from ...review.diff.sides import Side
    from ...review.versions import Step


def stepped(
    project: Project, laid_out: Callable[[], Path], before: Side, after: New, changed: Container[str]
) -> list[Step]:
    """The steps of the clusters CHANGED, of which BEFORE has what is merged. PROJECT is for the policies of the base,
    which LAID_OUT puts into its folder. Where that has no gpustack.lock, nobody knows what rendered them."""
    from ...compiler import fleet, versions
    from ...policy.loading import envelope, rings
    from ...policy.loading.versions import Version, renderer, versions_of
    from ...review.diff.sides import Texts
    from ...review.versions import Step

    base, known = project.root / LOCK, after.policies.sources
    if not base.exists() and not any(each.by for each in known.values()):
        return []
    LIMITS[base] = read_regular(base) if base.exists() else b""
    folder, listed = laid_out() / common.POLICIES, versions_of(project.root)
    beside = rings.rings_of(folder, lambda file: display(file, project.root))
    by_step: dict[tuple[Version | None, Version], list[tuple[str, Path]]] = {}
    for path in policy_files(folder, common.POLICIES):
        policy = envelope.open_policy(read(path, display(path, project.root)))
        source = known.get(str(policy.name))
        if source and source.name in changed:
            now = source.by or Version(version=__version__, sha256=own_digest())
            was = renderer(listed, beside, policy)[0] if listed else None
            if was != now:
                by_step.setdefault((was, now), []).append((source.name, path))
    made = []
    for (was, now), same in by_step.items():
        old, alone = was.version if was else "", dict.fromkeys((name for name, _ in same), frozenset[str]())
        try:
            own, wanted = dataclasses.replace(project, versions=None), [path for _, path in same]
            ours = now.sha256 == own_digest()
            sources = fleet.compiled(own, wanted) if ours else versions.rendered_by(project, now, wanted)
            between = side_of(own, sources, Texts(), "")
            made.append(Step(old, now.version, {name: _same(name, between, after.side, before) for name in alone}))
        except GpustackError as error:
            made.append(Step(old, now.version, alone, error.findings[0].what))
    return made


def _same(name: str, between: Side, after: Side, before: Side) -> frozenset[str]:
    """The files of the cluster NAME that are AFTER as they are BETWEEN, and aren't BEFORE."""
    made, now, old = (
        {path: side.text(text) for path, text in {**side.clusters.get(name, {}), **side.engine.get(name, {})}.items()}
        for side in (between, after, before)
    )
    paths = made.keys() | now.keys() | old.keys()
    return frozenset(path for path in paths if made.get(path) == now.get(path) != old.get(path))
