"""What a rendered object tells the engine that syncs it, as annotations: in which wave it is applied, that a failing
node is not a reason to wait, and that it must not be pruned.

Solves three ways in which a sync that goes as written does harm:

- Argo CD takes the next wave only when what it applied is healthy, and a DaemonSet is not as long as one node of 500 is
  down. So only kinds that are there as soon as they are applied have the wave of their stage. All others have the last
  one, after which nothing is waited for, and the health of DaemonSets does not count as the Application's.
- Whoever deletes the driver's DaemonSet, or the rights or labels by which its pods run, stops all drivers at once,
  whatever the update strategy (reconciler.md L38, A2). Such objects are pruned by nobody without asking.
- Deleting a CRD deletes every object of its kind, deleting the namespace all of the stack.

Rejected: health checks of DaemonSets in Argo CD's configuration, which would count for everybody's DaemonSets there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model import Resource
from .engines import engine

if TYPE_CHECKING:
    from ..policy.language.spec import ClusterPolicySpec

NEVER_PRUNED = {"CustomResourceDefinition", "Namespace"}
FREELY_PRUNED = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
"""No driver stops for want of them, and whoever leaves removes them first."""


class Marks(NamedTuple):
    """For which engine objects are marked. `mounted` are the ConfigMaps of extraObjects that drivers read."""

    engine: str
    mounted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names these marks: what has other ones is another result."""
        return f"{self.engine}:{','.join(self.mounted)}"


def marks_of(spec: ClusterPolicySpec) -> Marks | None:
    """How the objects of SPEC are marked; None where no engine is named."""
    chosen = spec.gitops.engine if spec.gitops else None
    if chosen is None:
        return None
    brought = {str(body["metadata"]["name"]) for body in spec.extraObjects if body["kind"] == "ConfigMap"}
    drivers: list[Any] = [spec.driver, spec.vgpuManager, *spec.drivers, *(pool.driver for pool in spec.nodePools)]
    named = {text for section in drivers if section and brought for text in _texts(section.model_dump())}
    return Marks(chosen, tuple(sorted(brought & named)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def marked(resource: Resource, marks: Marks, *, guarded: bool) -> Resource:
    """RESOURCE with the annotations for the engine. GUARDED: its component keeps drivers running."""
    keep = (
        (guarded and resource.kind not in FREELY_PRUNED)
        or resource.kind in NEVER_PRUNED
        or (resource.kind == "ConfigMap" and resource.group == "" and resource.name in marks.mounted)
    )
    return Resource(engine(marks.engine).mark(resource, keep=keep), resource.stage, resource.origin)
