"""What the engine's objects are made of: the policy's section, and what of the render they must know.

Small and plain, so that it is kept with a compiled stack: clusters of one spec share it, and the objects differ in the
cluster's name alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ..model import STAGES, Body, Resource, Stage
from ..policy.language.gitops import GitOps
from ..policy.language.repository import address, is_oci
from . import FOLDER, engines

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec
    from .engine import Engine


class Kind(BaseModel):
    """A kind that is rendered."""

    model_config = ConfigDict(frozen=True)

    group: str
    kind: str
    namespaced: bool


class Plan(BaseModel):
    """`namespace` is the stack's own, `namespaces` are those that hold rendered objects, `stages` the folders of the
    cluster, `policies` the names of its NodePolicies."""

    model_config = ConfigDict(frozen=True)

    settings: GitOps
    stages: tuple[Stage, ...]
    namespace: str
    kinds: tuple[Kind, ...]
    namespaces: tuple[str, ...]
    policies: tuple[str, ...]

    def of(self, cluster: str) -> Plan:
        """The plan for CLUSTER, whose name may be part of the address."""
        repository = self.settings.repository
        named = repository.model_copy(update={"url": address(repository, cluster)})
        return self.model_copy(update={"settings": self.settings.model_copy(update={"repository": named})})

    @property
    def engine(self) -> Engine[Any]:
        engine = engines.chosen(self.settings)
        assert engine is not None, "made by plan_of alone"  # noqa: S101 - narrows the type
        return engine

    @property
    def url(self) -> str:
        """The repository, which a rule sees to."""
        return self.settings.repository.url or ""

    @property
    def oci(self) -> bool:
        """Whether the cluster comes as an OCI artifact of its own (gpustack push): its root is the cluster's folder."""
        return is_oci(self.settings.repository)

    def path(self, *below: str) -> str:
        """The folder BELOW the render in a Git repository."""
        return joined(self.settings.repository.path, *below)

    def cluster_path(self, cluster: str, *below: str) -> str:
        """The folder BELOW that of CLUSTER, in the repository or in the cluster's artifact."""
        return joined(self.settings.repository.path, *below) if self.oci else self.path(cluster, *below)

    def folder(self, cluster: str = "") -> str:
        """Where the objects for CLUSTER are below dist/, for all clusters of the engine without one."""
        return "/".join(filter(None, (FOLDER, self.engine.name, cluster)))


def joined(*parts: str) -> str:
    """PARTS as one path; `.` is where it starts."""
    return "/".join(part for part in parts if part != ".") or "."


def plan_of(spec: ClusterPolicySpec, resources: Iterable[Resource]) -> Plan | None:
    """The plan for SPEC, which renders to RESOURCES; None where no engine is named."""
    if spec.gitops is None or spec.gitops.engine is None:
        return None
    kinds: dict[tuple[str, str, bool], None] = {}
    namespaces, stages, policies = {spec.cluster.namespace}, set[Stage](), []
    for resource in resources:
        kinds[resource.group, resource.kind, bool(resource.namespace)] = None
        namespaces.update({resource.namespace} - {""})
        stages.add(resource.stage)
        if (resource.group, resource.kind) == ("gpustack.dev", "NodePolicy"):
            policies.append(resource.name)
    return Plan(
        settings=spec.gitops,
        stages=tuple(stage for stage in STAGES if stage in stages),
        namespace=spec.cluster.namespace,
        kinds=tuple(Kind(group=group, kind=kind, namespaced=inside) for group, kind, inside in sorted(kinds)),
        namespaces=tuple(sorted(namespaces)),
        policies=tuple(sorted(policies)),
    )


def objects(plan: Plan, cluster: str) -> list[Body]:
    """The engine's objects for CLUSTER."""
    return plan.engine.objects(plan.of(cluster), cluster)


def roots(plan: Plan, cluster: str = "") -> list[Body]:
    """What a person applies once, so that the engine syncs CLUSTER; without one all clusters.

    An artifact holds the cluster's objects alone, so of that it is all that the engine has."""
    return plan.engine.roots(plan.of(cluster), cluster)


def file_of(body: Body) -> str:
    """The name of an engine object's file."""
    return f"{body['kind'].lower()}-{body['metadata']['name']}.yaml"
