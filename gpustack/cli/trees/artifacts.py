"""Clusters whose manifests are in an OCI artifact alone: what they hold, for the verbs that read dist/ otherwise.

Git has an index for such a cluster, with the digest of the artifact's layer. What the policies render to now is
compiled again, from the cache as a rule, and must have that digest. What the base rendered is compiled from the base's
policies; where this version of gpustack comes to another digest, only the registry has what was merged, and it is asked
when somebody says so (--registry).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...compiler import beside, fleet
from ...compiler.fleet import Project, Source
from ...compiler.stack import Stack
from ...model import InputError, StaleError
from .. import common
from ..refusals import said
from .repository import Entry, Git

if TYPE_CHECKING:
    from ...review.diff.sides import Files, Texts
    from ...review.impact.effects import Effect
    from .against_git import Merged
    from .comparison import New


def held(out: Path, cluster: str) -> str:
    """The digest of the layer that holds CLUSTER by its index in OUT, "" where its manifests are files."""
    return digest_in(beside.index_data(out, cluster))


def digest_in(listed: Mapping[str, Any]) -> str:
    """The digest of a layer in what an index has LISTED."""
    artifact = listed.get("artifact")
    return str(artifact.get("digest", "")) if isinstance(artifact, dict) else ""


def contents(options: argparse.Namespace, clusters: Collection[str]) -> Iterator[tuple[str, Stack]]:
    """What CLUSTERS render to, which are in artifacts alone; raises StaleError where an index says something else."""
    if not clusters:
        return
    with common.project(common.compiling(options)) as project:
        paths = [path for path in common.select([]) if common.name_of(path) in clusters]
        sources = {source.name: source for source in fleet.compiled(project, paths)}
        for cluster in clusters:
            stack = fleet.stack_of(project, sources[cluster]) if cluster in sources else None
            if stack is None or stack.layer != held(project.out, cluster):
                raise StaleError(said("GPU967", "artifact", index=project.out / beside.INDEX / f"{cluster}.json"))
            yield cluster, stack


def indexes(git: Git, held: Mapping[str, Entry], without: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """What the indexes among those that Git has HELD below the rendered folder say, by cluster, less some."""
    start = f"{beside.INDEX}/"
    names = {path[len(start) :].removesuffix(".json"): path for path in held if path.startswith(start)}
    blobs = {name: held[path].blob for name, path in names.items() if held[path].blob and name not in without}
    read = dict(git.contents(blobs.values()))
    return {name: beside.claims(read[blob]) for name, blob in blobs.items()}


@dataclass
class Base:
    """Clusters that the base has in artifacts alone, by DIGESTS. REGISTRY may be asked; reading fills `effects`."""

    digests: Mapping[str, str]
    project: Project
    texts: Texts
    registry: bool
    effects: list[Effect] = field(default_factory=list)

    def sides(self, after: New, then: Merged | None, same: Collection[str]) -> dict[str, Files]:
        """The files of each cluster: those of AFTER where its policy is the SAME now, else what the policies THEN
        render to; of the registry where this version of gpustack renders them otherwise."""
        from ...review.impact import repository
        from ...review.impact.effects import digest
        from ...review.impact.tiers import POWER

        files, shapes, lost = dict[str, "Files"](), dict[str, "Files"](), list[str]()
        for cluster, merged in self.digests.items():
            if cluster in same and after.layers.get(cluster) == merged:
                files[cluster] = after.side.clusters[cluster]
                continue
            if merged not in shapes:
                source = (then and then.sources.get(cluster)) or after.policies.sources.get(cluster)
                stack = then.stack(cluster) if then and cluster in then.sources else None
                if stack and stack.layer == merged:
                    shapes[merged] = self._named((file.path, file.text) for file in stack.files)
                elif self.registry and source and source.artifact:
                    shapes[merged] = self._pulled(source, merged)
                else:
                    lost.append(cluster)
                    unchanged = after.side.clusters[cluster] if cluster in same else {}  # it would be rendered so now
                    files[cluster] = self._named((file.path, file.text) for file in stack.files) if stack else unchanged
                    continue
            files[cluster] = shapes[merged]
        if lost:  # nobody here knows what was merged
            what = f"this gpustack renders {common.some(lost)} as merged with another digest than is merged"
            where = f"{self.project.out.name}/{beside.INDEX}"
            sides = [digest([[each, by.get(each, "")] for each in sorted(lost)]) for by in (self.digests, after.layers)]
            told = repository.effect("IMP005", POWER, where, what, before=sides[0], after=sides[1])
            self.effects.append(told)
        return files

    def _named(self, files: Iterable[tuple[str, str]]) -> Files:
        return {path: self.texts.name(text) for path, text in files}

    def _pulled(self, source: Source, digest: str) -> Files:
        """The files of the layer DIGEST in the registry that SOURCE's engine reads."""
        from ...registry.artifact import files_in
        from ...registry.reference import parse

        place = parse(source.artifact.partition(",")[0].removeprefix("oci://"))
        if place is None:
            raise InputError(said("GPU986", cluster=source.name, digest=digest, reason="its policy names no registry"))
        with common.registries() as client:
            layer = client.blob(place, digest)
        try:
            files = files_in(layer)
        except ValueError as error:
            raise InputError(said("GPU986", cluster=source.name, digest=digest, reason=error)) from None
        return self._named((name, data.decode("utf-8", "replace")) for name, data in files.items())
