"""The policies behind a side of a comparison: they say how many nodes a change is about.

A folder has none of its own. Where `policies/` stands beside it, as beside every dist/, and a cluster's policy there
renders to just what is in the folder, that is the one; else nobody knows, and it is said that numbers are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...compiler import fleet
from ...compiler.executor import Executor
from ...compiler.fleet import Project, Source
from ...compiler.sources import load_policy, read_sources, unpacked
from ...compiler.stack import stored_stack
from ...model import GpustackError
from ...policy.loading.load import policy_files
from .. import common

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec
    from ...review.diff.sides import Side

    Spec = ClusterPolicySpec | None


class Policies:
    """The policies of one side, read when they are asked for; clusters of one effective spec share it. `same` are those
    that are what the policy of another side is, byte for byte, layers included."""

    def __init__(self, project: Project, sources: Iterable[Source], same: Mapping[str, Policies] | None = None) -> None:
        self.project, self._same = project, dict(same or {})
        self.sources = {source.name: source for source in sources}
        self._known: dict[str, Spec] = {}

    def prepare(self, clusters: Iterable[str]) -> None:
        """Do once what `spec` needs for CLUSTERS."""

    def spec(self, cluster: str) -> Spec:
        """The effective spec of CLUSTER; None where no policy describes it, or it can't be read any more."""
        if cluster in self._same:
            return self._same[cluster].spec(cluster)
        source = self.sources.get(cluster)
        if source is None:
            return None
        if source.key not in self._known:
            self._known[source.key] = self._read(source)
        return self._known[source.key]

    def all(self) -> Iterator[ClusterPolicySpec]:
        """The effective spec of every cluster of this side whose policy can be read."""
        for name in dict.fromkeys([*self.sources, *self._same]):
            spec = self.spec(name)
            if spec is not None:
                yield spec

    def _read(self, source: Source) -> Spec:
        if source.spec:
            return unpacked(source.spec, self.project.root, self.project.store)
        try:
            return load_policy(source.path, self.project.root, self.project.store).spec
        except GpustackError:
            return None


class Beside(Policies):
    """The policies beside a folder, those alone that render to what is in it, which is SIDE."""

    def __init__(self, project: Project, sources: Iterable[Source], side: Side) -> None:
        super().__init__(project, sources)
        self._side = side

    def prepare(self, clusters: Iterable[str]) -> None:
        """Render the policies of CLUSTERS, where the cache doesn't have it. One that is refused is not of this side."""
        wanted = [self.sources[name] for name in clusters if name in self.sources]
        with suppress(GpustackError), Executor(self.project.jobs, scheduler=self.project.scheduler) as executor:
            fleet.compile_sources(self.project, wanted, executor, lambda *_: None)

    def spec(self, cluster: str) -> Spec:
        """The effective spec of CLUSTER; None where its policy renders to something else."""
        return super().spec(cluster) if self._is_rendered(cluster) else None

    def _is_rendered(self, cluster: str) -> bool:
        source, files = self.sources.get(cluster), self._side.clusters.get(cluster, {})
        stack = stored_stack(source.key, self.project.store) if source else None
        if stack is None or len(files) != len(stack.files):
            return False
        return all(file.path in files and self._side.text(files[file.path]) == file.text for file in stack.files)


def beside(folder: Path, side: Side, project: Project) -> Policies | None:
    """The policies beside FOLDER, which SIDE was read from; None where there are none. PROJECT has the cache."""
    root = folder.resolve().parent
    if not (root / common.POLICIES).is_dir():
        return None
    there = replace(common.elsewhere_in(project, root), out=folder)
    try:
        paths = policy_files(root / common.POLICIES, common.POLICIES)
        with Executor(project.jobs, len(paths), project.scheduler) as executor:
            sources, _ = read_sources(there, paths, executor, lambda *_: None)
    except GpustackError:
        return None
    return Beside(there, sources, side)
