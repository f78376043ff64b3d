"""Flux's objects: a source, and a Kustomization for each stage, each after the one before.

A Kustomization counts as done when its objects are applied: `wait` would go by DaemonSets, and one node that is down
would hold back every commit. NodePolicies alone are waited for, by their conditions: Ready says that the policy is
accepted, also while a roll-out waits on purpose (reconciler.md A7). `monitoring` does not wait for them: who is to be
told that the reconciler doesn't run needs the alerts.

Nothing has `postBuild`, so no variable is replaced anywhere; objects with a `${` in them say so besides.
"""

from __future__ import annotations

from ..model import Body, Stage
from ..policy.gitops import revision
from .marks import PRUNE
from .plan import Plan, folder

ROOT = "gpustack"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
SOURCE = "source.toolkit.fluxcd.io/v1"
READY = {
    "apiVersion": "gpustack.dev/v1alpha1",
    "kind": "NodePolicy",
    "current": "has(status.conditions) && status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    "failed": "has(status.conditions) && status.conditions.exists(c, c.type == 'Stalled' && c.status == 'True')",
}
"""When a NodePolicy is well. Flux itself sees to it that the status is about the present generation."""


def objects(plan: Plan, cluster: str) -> list[Body]:
    """What is rendered for CLUSTER."""
    return [*_source(plan), *(_stage(plan, cluster, stage) for stage in plan.stages)]


def roots(plan: Plan, cluster: str) -> list[Body]:
    """What a person applies once: the source, and the Kustomization that syncs all others. Deleting that one leaves
    them, and so the cluster, as they are.
    """
    if plan.oci:
        return objects(plan, cluster)
    spec = {**_common(plan, plan.path(folder(plan, cluster))), "deletionPolicy": "Orphan"}
    return [*_source(plan), _object(KUSTOMIZE, "Kustomization", ROOT, plan, spec)]


def _object(api_version: str, kind: str, name: str, plan: Plan, spec: Body) -> Body:
    meta = {"name": name, "namespace": plan.settings.flux.namespace or "flux-system"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _source(plan: Plan) -> list[Body]:
    """The repository; nothing where the policy names a source that is there. Without it nothing would be synced any
    more, so nobody prunes it.
    """
    settings = plan.settings.flux
    if settings.source:
        return []
    kind, name = revision(plan.settings.repository)
    spec: Body = {"interval": settings.interval or "10m", "url": plan.url, "ref": {kind: name}}
    if settings.secretName:
        spec["secretRef"] = {"name": settings.secretName}
    body = _object(SOURCE, _source_kind(plan), ROOT, plan, spec)
    return [{**body, "metadata": {**body["metadata"], "annotations": {PRUNE: "disabled"}}}]


def _source_kind(plan: Plan) -> str:
    return "OCIRepository" if plan.oci else "GitRepository"


def _common(plan: Plan, path: str) -> Body:
    """What every Kustomization has: it applies what is below PATH."""
    settings = plan.settings.flux
    given = settings.source
    found: Body = {
        "interval": settings.interval or "10m",
        "retryInterval": "2m",
        "timeout": "5m",
        "path": f"./{path}",
        "prune": settings.prune is not False,
        "force": False,
        "wait": False,
        "sourceRef": {"kind": given.kind, "name": given.name} if given else {"kind": _source_kind(plan), "name": ROOT},
    }
    if settings.serviceAccountName:
        found["serviceAccountName"] = settings.serviceAccountName
    return found


def _stage(plan: Plan, cluster: str, stage: Stage) -> Body:
    spec = _common(plan, plan.cluster_path(cluster, stage))
    before = [each for each in plan.stages[: plan.stages.index(stage)] if each != "reconciler"]
    if before:
        spec["dependsOn"] = [{"name": f"{ROOT}-{before[-1]}"}]
    if stage == "reconciler" and plan.policies:
        kind = {key: READY[key] for key in ("apiVersion", "kind")}
        spec["healthChecks"] = [{**kind, "name": name} for name in plan.policies]
        spec["healthCheckExprs"] = [READY]
    return _object(KUSTOMIZE, "Kustomization", f"{ROOT}-{stage}", plan, spec)
