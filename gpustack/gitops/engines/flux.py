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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ...model import Body, Resource, Stage
from ...policy.language.base import Section, own
from ...policy.language.forms import form
from ...policy.language.repository import revision
from ...policy.language.types import DnsLabel, DnsSubdomain
from ..engine import Accounts, Engine, Roots, Trouble, annotated
from ..reads import Reads

if TYPE_CHECKING:
    from ...policy.language.gitops import GitOps
    from ..plan import Plan

ROOT = "gpustack"
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
SOURCES = ("GitRepository", "OCIRepository")
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
SourceKind = Literal["GitRepository", "OCIRepository"]

INTERVAL = form("interval")


class FluxSource(Section):
    """A source that is in the cluster already, such as that of `flux bootstrap`."""

    kind: SourceKind
    """GitRepository or OCIRepository."""
    name: DnsSubdomain
    """Its name, in `flux.namespace`."""


class KubeConfig(Section):
    """How a Flux that runs elsewhere reaches the cluster."""

    secretName: DnsSubdomain
    """Secret with a kubeconfig of the cluster under the key `value`, in `flux.namespace` of the cluster in which Flux
    runs."""


class Flux(Section):
    """How Flux syncs the cluster: one that runs in it or, with `kubeConfig`, one that serves many."""

    namespace: DnsLabel = own("gitops.flux.namespace")
    """Namespace of the Kustomizations and the source. Absent: flux-system."""
    source: FluxSource | None = None
    """A source that is there already. Absent: one is rendered from `repository`: an OCIRepository for oci://, else a
    GitRepository."""
    secretName: DnsSubdomain | None = None
    """Secret with the credentials of the repository, in `namespace`. Absent: none."""
    interval: Annotated[str, INTERVAL] = own("gitops.flux.interval")
    """How often the repository is looked at and the cluster compared with it. Absent: 10m."""
    serviceAccountName: DnsSubdomain | None = None
    """ServiceAccount in `namespace` by whose rights Flux applies; with `kubeConfig`, of the cluster that is synced.
    Absent: Flux's own, or those of the kubeconfig."""
    kubeConfig: KubeConfig | None = None
    """Where Flux runs in another cluster, as one that serves many does: how it reaches this one. The objects' names
    have the cluster in them then. Absent: Flux runs in the cluster."""
    prune: bool = own("gitops.flux.prune")
    """Whether what is no longer rendered is deleted; what would stop drivers never is. Absent: true."""


class FluxEngine(Engine[Flux]):
    """Flux."""

    name = "flux"
    title = "Flux"
    settings = Flux
    unasked = True
    source_field = "spec.gitops.flux.source to a source that is there"
    annotations = ("kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/")
    verbatim = {SUBSTITUTE: "disabled"}
    partial = {PRUNE: "disabled", "kustomize.toolkit.fluxcd.io/ssa": "Merge"}

    def brings_source(self, given: GitOps) -> bool:
        return self.of(given).source is not None

    def contradictions(self, given: GitOps) -> Iterator[Trouble]:
        url = given.repository.url
        if url and "://" not in url:
            yield self.trouble("no scheme")

    def idle(self, given: GitOps) -> Iterator[tuple[str, str]]:
        settings = self.of(given)
        if settings.source is None:
            return
        where = f"the {settings.source.kind} {settings.source.name} says it"
        for name in ("url", "revision"):
            if getattr(given.repository, name):
                yield f"repository.{name}", where
        if settings.secretName:
            yield "flux.secretName", where

    def accounts(self, given: GitOps) -> Accounts | None:
        settings, namespace = self.of(given), self.namespace(given)
        if settings.serviceAccountName:
            return Accounts(users=(f"system:serviceaccount:{namespace}:{settings.serviceAccountName}",))
        return None if settings.kubeConfig else Accounts(groups=(f"system:serviceaccounts:{namespace}",))

    def destination(self, given: GitOps) -> tuple[str, ...]:
        there = self.of(given).kubeConfig
        return (self.name, self.namespace(given), there.secretName) if there else ()

    def mark(self, resource: Resource, *, keep: bool) -> Body:
        return annotated(resource.body, {PRUNE: "disabled"}) if keep else resource.body

    def guarded(self, notes: Mapping[str, Any]) -> str:
        kept = notes.get(PRUNE) == "disabled"
        return "; Flux doesn't prune it, so that is once somebody deletes it by hand" if kept else ""

    def objects(self, plan: Plan, cluster: str) -> list[Body]:
        return [*_source(plan, cluster), *(_stage(plan, cluster, stage) for stage in plan.stages)]

    def roots(self, plan: Plan, cluster: str) -> list[Body]:
        """The source, and the Kustomization that syncs all others, which stay as they are where it is deleted."""
        if plan.oci:
            return self.objects(plan, cluster)
        spec = {**_common(plan, cluster, plan.path(plan.folder(cluster))), "deletionPolicy": "Orphan"}
        name = _name(plan, cluster, root=True)
        return [*_source(plan, cluster), _object(KUSTOMIZE, "Kustomization", name, plan, spec)]

    def runs_inside(self, plan: Plan) -> bool:
        return self.of(plan.settings).kubeConfig is None

    def rooted(self, plan: Plan) -> Roots:
        return "one" if self.runs_inside(plan) else "beside"

    def namespace(self, given: GitOps) -> str:
        return self.of(given).namespace

    def reads(self, bodies: Sequence[Any]) -> Reads | None:
        url = revision_ = ""
        folder = "."
        for body in bodies:
            kind, spec = body.get("kind"), body.get("spec") or {}
            if kind in SOURCES:
                url, revision_ = spec.get("url", ""), next(iter((spec.get("ref") or {}).values()), "")
            elif kind == "Kustomization":  # one for each stage, which the path ends with
                folder = str(spec.get("path", "")).removeprefix("./").rpartition("/")[0] or "."
        return Reads(self.name, url, revision_, folder) if url else None


ENGINE = FluxEngine()


def _name(plan: Plan, cluster: str, stage: str = "", *, root: bool = False) -> str:
    """What the objects for CLUSTER are called. Flux labels what it applies with a Kustomization's name."""
    if ENGINE.runs_inside(plan):
        return "-".join(filter(None, (ROOT, stage)))
    words = [*(["root"] if root else []), ROOT, cluster, *([stage] if stage else [])]
    if len("-".join(words)) > LABEL_LENGTH:
        digest = hashlib.sha256(cluster.encode()).hexdigest()[:8]
        words[words.index(cluster)] = f"{cluster[:KEPT].rstrip('-.')}-{digest}"
    return "-".join(words)


def _object(api_version: str, kind: str, name: str, plan: Plan, spec: Body) -> Body:
    meta = {"name": name, "namespace": ENGINE.namespace(plan.settings)}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _source(plan: Plan, cluster: str) -> list[Body]:
    """The repository, unless the policy names a source. Nothing is synced without it, so nobody prunes it."""
    settings = ENGINE.of(plan.settings)
    if settings.source:
        return []
    kind, name = revision(plan.settings.repository)
    spec: Body = {"interval": settings.interval, "url": plan.url, "ref": {kind: name}}
    if settings.secretName:
        spec["secretRef"] = {"name": settings.secretName}
    body = _object(SOURCE, _source_kind(plan), _name(plan, cluster), plan, spec)
    return [{**body, "metadata": {**body["metadata"], "annotations": {PRUNE: "disabled"}}}]


def _source_kind(plan: Plan) -> str:
    return "OCIRepository" if plan.oci else "GitRepository"


def _common(plan: Plan, cluster: str, path: str) -> Body:
    """What every Kustomization for CLUSTER has: it applies what is below PATH."""
    settings = ENGINE.of(plan.settings)
    given = settings.source
    spec: Body = {
        "interval": settings.interval,
        "retryInterval": "2m",
        "timeout": "5m",
        "path": f"./{path}",
        "prune": settings.prune,
        "force": False,
        "wait": False,
        "sourceRef": {"kind": given.kind, "name": given.name}
        if given
        else {"kind": _source_kind(plan), "name": _name(plan, cluster)},
    }
    if settings.serviceAccountName and ENGINE.runs_inside(plan):
        spec["serviceAccountName"] = settings.serviceAccountName
    return spec


def _stage(plan: Plan, cluster: str, stage: Stage) -> Body:
    spec = _common(plan, cluster, plan.cluster_path(cluster, stage))
    settings = ENGINE.of(plan.settings)
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
