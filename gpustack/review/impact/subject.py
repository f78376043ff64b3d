"""What a rule looks at: the changes of one cluster, with the policies of both sides where they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...model import Body
from ..diff.fields import FieldChange, Item
from ..diff.objects import ObjectChange

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec

Whole = Literal["", "new", "gone"]
DIGEST = "DRIVER_CONFIG_DIGEST"
POD = ("spec", "template", "spec")


@dataclass(frozen=True)
class Subject:
    """The CHANGES of one cluster. BEFORE and AFTER are the effective specs, None where there is none, or none is known.

    `whole`: the cluster is new, or gone with all that it had. `engine` are the changes of the GitOps engine's own
    objects: they are applied where the engine is, so what holds for objects of the cluster does not hold for them.
    """

    changes: Sequence[ObjectChange]
    before: ClusterPolicySpec | None = None
    after: ClusterPolicySpec | None = None
    whole: Whole = ""
    engine: Sequence[ObjectChange] = ()

    @classmethod
    def of_all(
        cls,
        changes: Sequence[ObjectChange],
        before: ClusterPolicySpec | None,
        after: ClusterPolicySpec | None,
        whole: Whole = "",
    ) -> Subject:
        """CHANGES, those of the cluster and those of its engine told apart."""
        engine = [change for change in changes if change.identity.engine]
        applied = [change for change in changes if not change.identity.engine] if engine else changes
        return cls(applied, before, after, whole, engine)

    def of(self, *kinds: str) -> Iterator[ObjectChange]:
        """The changes of objects of KINDS."""
        return (change for change in self.changes if change.identity.kind in kinds)


WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob")


def at(body: Any, *path: str) -> Any:
    """What stands in BODY at PATH, None where nothing does, whatever is in the way."""
    for step in path:
        if not isinstance(body, Mapping):
            return None
        body = body.get(step)
    return body


def mapping(value: Any) -> Mapping[str, Any]:
    """VALUE if it is a map, else an empty one: what others rendered may hold anything."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """VALUE if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def guarded(body: Body | None) -> str:
    """What keeps an engine from pruning BODY without asking, as the end of a sentence; "" where nothing does."""
    notes = mapping(at(body, "metadata", "annotations"))
    options = {each.strip() for each in str(notes.get("argocd.argoproj.io/sync-options", "")).split(",")}
    if notes.get("kustomize.toolkit.fluxcd.io/prune") == "disabled":
        return "; Flux doesn't prune it, so that is once somebody deletes it by hand"
    if "Prune=false" in options:
        return "; Argo CD doesn't prune it, so that is once somebody deletes it by hand"
    return "; the sync of Argo CD waits until somebody confirms it" if "Prune=confirm" in options else ""


def template(body: Body | None) -> Mapping[str, Any]:
    """The pod template of a workload."""
    spec = mapping(mapping(body).get("spec"))
    if "jobTemplate" in spec:
        spec = mapping(at(spec, "jobTemplate", "spec"))
    return mapping(spec.get("template"))


def pod(body: Body | None) -> Mapping[str, Any]:
    """The spec of a workload's pods."""
    return mapping(template(body).get("spec"))


def containers(body: Body | None) -> Iterator[Mapping[str, Any]]:
    """All containers of a workload's pods, those that run first included."""
    for key in ("initContainers", "containers"):
        yield from (mapping(item) for item in items(pod(body).get(key)))


def below(change: ObjectChange, *path: str) -> list[FieldChange]:
    """The changes of fields at PATH and below it, and of what PATH is in."""
    wanted = tuple(path)
    return [
        field
        for field in change.fields
        if field.path[: len(wanted)] == wanted or wanted[: len(field.path)] == field.path
    ]


def names_item(field: FieldChange, name: str) -> bool:
    """Whether FIELD is in the item NAME of a list."""
    return any(isinstance(step, Item) and ("name", name) in step.key for step in field.path)


def strategy(body: Body | None) -> str:
    """How the pods of a DaemonSet follow its template."""
    return str(at(body, "spec", "updateStrategy", "type") or "RollingUpdate")


def labels(body: Body | None) -> Mapping[str, Any]:
    """The labels of a workload's pods."""
    return mapping(at(template(body), "metadata", "labels"))


def is_driver(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold a driver for containers (reconciler.md U4, D14)."""
    return mapping(body).get("kind") == "DaemonSet" and (
        labels(body).get("app.kubernetes.io/component") == "nvidia-driver"
        or labels(body).get("app") == "nvidia-driver-daemonset"
    )


def is_vgpu_manager(body: Body | None) -> bool:
    """Whether BODY is a DaemonSet whose pods hold the driver of virtual GPUs."""
    app = str(labels(body).get("app", ""))
    return mapping(body).get("kind") == "DaemonSet" and app.startswith("nvidia-vgpu-manager-daemonset")
