"""Inputs of a team's own construct: what the policy says under its name, and whose code it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..model import Body, Finding, FindingsError, Resource
from ..policy.language.spec import ClusterPolicySpec
from ..policy.loading.constructs import Construct, RefusedError
from .parts.common_inputs import Inputs
from .refusals import refused


class TeamInputs(Inputs):
    """`said` is what the construct gets, as plain data of its model; `sha256` names the code that reads it."""

    name: str
    sha256: str
    said: dict[str, Any]


@dataclass(frozen=True)
class TeamEntry:
    """A construct of a team's in the place of a component of the registry."""

    known: Construct
    guarded: bool = False

    @property
    def id(self) -> str:
        return f"construct-{self.known.name}"

    @property
    def section(self) -> str:
        return f"constructs.{self.known.name}"

    def inputs(self, spec: ClusterPolicySpec) -> TeamInputs:
        """What SPEC says under the name, or `for_cluster(cluster)` of its model makes of it. Raises FindingsError."""
        from ..cluster.resolve import resolve

        try:
            said = self.known.model().model_validate(spec.constructs[self.known.name])
            made = said.for_cluster(resolve(spec)) if hasattr(said, "for_cluster") else said
            if type(made) is not type(said):
                raise RefusedError("its for_cluster gives something else than its model")
            return TeamInputs(name=self.known.name, sha256=self.known.sha256, said=made.model_dump(mode="json"))
        except Exception as error:  # its code, whatever that does
            raise FindingsError(failed(self.known, error)) from error

    def placed(self, resource: Resource, spec: ClusterPolicySpec) -> Resource:
        """RESOURCE, in the namespace of SPEC's stack where it says none and its kind has one."""
        body: Body = resource.body
        meta = body["metadata"]
        if meta.get("namespace") or not spec.kinds.namespaced(body["apiVersion"], body["kind"]):
            return resource
        placed = {**body, "metadata": {**meta, "namespace": spec.cluster.namespace}}
        return Resource(placed, resource.stage, resource.origin)

    def type(self) -> Any:
        """What makes the construct; importing it starts Node."""
        from .team import TeamConstruct

        return partial(TeamConstruct, known=self.known)


def failed(known: Construct, error: Exception) -> Finding:
    """The finding for an ERROR in code of KNOWN."""
    said = str(error).partition("\n")[0]
    what = said if isinstance(error, RefusedError) else f"it ended with {type(error).__name__}: {said}"
    return refused("GPU912", f"constructs.{known.name}", name=known.name, what=what, title=known.title)


def team_entries(spec: ClusterPolicySpec) -> Iterator[TeamEntry]:
    """The constructs that SPEC asks for, in the order of their names. Raises FindingsError for one that isn't known."""
    known = spec.known_constructs.known if spec.known_constructs is not None else {}
    for name in sorted(spec.constructs):
        if name not in known:
            what, path = f"the construct {name} isn't known here", f"spec.constructs.{name}"
            raise FindingsError.of("GPU912", what, path=path, remedy="run gpustack where constructs.allow.yaml is")
        yield TeamEntry(known[name])
