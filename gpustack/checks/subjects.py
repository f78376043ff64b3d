"""What rules look at when the effective spec alone does not say enough: who wrote it, and what was rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..model import Body, Resource
from ..policy.loading.place import parse
from .rule import Hit

if TYPE_CHECKING:
    from ..cluster.resolve import Cluster
    from ..policy.configurations.embedded import Problem
    from ..policy.language.spec import ClusterPolicySpec
    from ..policy.loading.layers import Merged, OriginKind
    from .objects.gaps import Gaps
    from .objects.references import Needed, Provided


@dataclass(frozen=True)
class _OfSpec:
    spec: ClusterPolicySpec

    @property
    def cluster(self) -> Cluster:
        """What the spec means."""
        from ..cluster.resolve import resolve

        return resolve(self.spec)


@dataclass(frozen=True)
class Written(_OfSpec):
    """The effective spec of one cluster, and who wrote which value of it."""

    merged: Merged

    def by(self, path: str) -> OriginKind | None:
        """Who wrote the value at PATH ("spec.driver.version"): gpustack, release, platform, derived, layer, change
        or policy.

        For a mapping or a list, whoever wrote the highest-ranking part of it. None where nobody wrote anything."""
        steps = parse(path)
        origin = self.merged.origin(steps[1:] if steps[:1] == ("spec",) else steps)
        return origin.kind if origin else None

    def by_user(self, path: str) -> bool:
        """Whether the value at PATH was written by a person: in the cluster's policy, a layer or a change."""
        return self.by(path) in {"layer", "change", "policy"}


@dataclass(frozen=True)
class Render(_OfSpec):
    """What an effective spec renders to, for Kubernetes `minor` ("1.34"); with the objects that its objects provide and
    name (references.py), which cost nothing to look at."""

    minor: str
    provided: Sequence[Provided]
    needed: Sequence[Needed]
    load: Callable[[], Sequence[Resource]] = field(repr=False)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """All objects, in the order in which components are applied. Read only: others are shown the same bodies."""
        return tuple(self.load())

    @cached_property
    def gaps(self) -> Gaps:
        """What objects name and nobody provides."""
        from .objects.gaps import missing

        references = [reference.model_dump() for reference in self.spec.references or ()]
        return missing(self.provided, self.needed, references, self.spec.cluster.namespace)

    @cached_property
    def pods(self) -> tuple[tuple[Resource, Body], ...]:
        """The workloads among the objects, each with its PodSpec."""
        from .objects.references import pod_template

        templates = ((resource, pod_template(resource.body)) for resource in self.resources)
        return tuple((resource, template["spec"]) for resource, template in templates if template is not None)


def told(path: str, problems: Iterable[Problem], whose: str = "") -> Iterator[Hit]:
    """What is wrong in the configuration at PATH; what hits say begins with WHOSE."""
    for each in problems:
        yield Hit(path, f"{whose}{each.what}", each.why, each.remedy, each.place)


class Synced(NamedTuple):
    """What an engine's object syncs: kinds as (API group, kind, whether namespaced), and their namespaces."""

    kinds: Sequence[tuple[str, str, bool]]
    namespaces: Sequence[str]


@dataclass(frozen=True)
class EngineObjects:
    """What an effective spec is rendered to for its engine: `bodies`, the roots that `bootstrap` prints too, for a
    cluster whose name does not matter, and what each Application syncs, by its name."""

    spec: ClusterPolicySpec
    bodies: Sequence[Body]
    synced: Mapping[str, Synced]
