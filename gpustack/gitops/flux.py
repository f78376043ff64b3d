"""Flux's objects: a source, and a Kustomization for each stage, each after the one before.

A Kustomization counts as done when its objects are applied: `wait` would go by DaemonSets, and one node that is down
would hold back every commit. NodePolicies alone are waited for, by their conditions: Ready says that the policy is
accepted, also while a roll-out waits on purpose (reconciler.md A7). `monitoring` does not wait for them: who is to be
told that the reconciler doesn't run needs the alerts.

With `kubeConfig`, Flux runs in another cluster and serves many. There the objects of all of them lie side by side, so
their names have the cluster's in them, a source of its own included. The root of such a cluster applies Kustomizations
where Flux runs; only these go to the cluster itself. Rejected: one root for all of them, above their folders. It would
take along the Kustomizations of clusters that run a Flux of their own, and those would install the stack where the
root is.

Nothing has `postBuild`, so no variable is replaced anywhere; objects with a `${` in them say so besides.
"""

from __future__ import annotations

import hashlib

from ..model import Body, Stage
from ..policy.language.gitops import revision
from .marks import PRUNE
from .plan import Plan, folder

ROOT = "gpustack"
LABEL_LENGTH, KEPT = 63, 28
"""Characters of a label's value, and of a cluster's name where the whole is longer."""
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
    return [*_source(plan, cluster), *(_stage(plan, cluster, stage) for stage in plan.stages)]


def roots(plan: Plan, cluster: str) -> list[Body]:
    """What a person applies once: the source, and the Kustomization that syncs all others. Deleting that one leaves
    them, and so the cluster, as they are.
    """
    if plan.oci:
        return objects(plan, cluster)
    spec = {**_common(plan, cluster, plan.path(folder(plan, cluster))), "deletionPolicy": "Orphan"}
    name = _name(plan, cluster, root=True)
    return [*_source(plan, cluster), _object(KUSTOMIZE, "Kustomization", name, plan, spec)]


def runs_inside(plan: Plan) -> bool:
    """Whether Flux runs in the cluster that it syncs, and so serves no other."""
    return plan.settings.flux.kubeConfig is None


def _name(plan: Plan, cluster: str, stage: str = "", *, root: bool = False) -> str:
    """What the objects for CLUSTER are called. Flux labels what it applies with a Kustomization's name."""
    if runs_inside(plan):
        return "-".join(filter(None, (ROOT, stage)))
    words = [*(["root"] if root else []), ROOT, cluster, *([stage] if stage else [])]
    if len("-".join(words)) > LABEL_LENGTH:
        digest = hashlib.sha256(cluster.encode()).hexdigest()[:8]
        words[words.index(cluster)] = f"{cluster[:KEPT].rstrip('-.')}-{digest}"
    return "-".join(words)


def _object(api_version: str, kind: str, name: str, plan: Plan, spec: Body) -> Body:
    meta = {"name": name, "namespace": plan.settings.flux.namespace or "flux-system"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _source(plan: Plan, cluster: str) -> list[Body]:
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
    body = _object(SOURCE, _source_kind(plan), _name(plan, cluster), plan, spec)
    return [{**body, "metadata": {**body["metadata"], "annotations": {PRUNE: "disabled"}}}]


def _source_kind(plan: Plan) -> str:
    return "OCIRepository" if plan.oci else "GitRepository"


def _common(plan: Plan, cluster: str, path: str) -> Body:
    """What every Kustomization for CLUSTER has: it applies what is below PATH."""
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
        "sourceRef": {"kind": given.kind, "name": given.name}
        if given
        else {"kind": _source_kind(plan), "name": _name(plan, cluster)},
    }
    if settings.serviceAccountName and runs_inside(plan):
        found["serviceAccountName"] = settings.serviceAccountName
    return found


def _stage(plan: Plan, cluster: str, stage: Stage) -> Body:
    spec = _common(plan, cluster, plan.cluster_path(cluster, stage))
    settings = plan.settings.flux
    if settings.kubeConfig:
        spec["kubeConfig"] = {"secretRef": {"name": settings.kubeConfig.secretName}}
        if settings.serviceAccountName:
            spec["serviceAccountName"] = settings.serviceAccountName
    before = [each for each in plan.stages[: plan.stages.index(stage)] if each != "reconciler"]
    if before:
        spec["dependsOn"] = [{"name": _name(plan, cluster, before[-1])}]
    if stage == "reconciler" and plan.policies:
        kind = {key: READY[key] for key in ("apiVersion", "kind")}
        spec["healthChecks"] = [{**kind, "name": name} for name in plan.policies]
        spec["healthCheckExprs"] = [READY]
    return _object(KUSTOMIZE, "Kustomization", _name(plan, cluster, stage), plan, spec)
