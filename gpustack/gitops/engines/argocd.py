"""Argo CD's objects: an Application for each cluster, an AppProject that permits it what gpustack renders and no more,
and the root, which a person applies once.

An Application per cluster, and no ApplicationSet: each is a file that is reviewed, and a cluster that goes takes its
Application along and nothing else. Applications have no finalizer, so deleting one leaves the cluster as it is
(what `preserveResourcesOnDeletion` is to an ApplicationSet).

No `PruneLast`: it adds a wave behind the last one, and Argo CD would wait for the health of DaemonSets again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from ...catalog import texts
from ...catalog.object_kinds import rendered_kinds
from ...model import STAGES, Body, Resource
from ...policy.language.base import Section, own, section
from ...policy.language.forms import form
from ...policy.language.repository import revision
from ...policy.language.types import DnsLabel, DnsSubdomain
from ..engine import Accounts, Engine, Roots, Trouble, annotated
from ..marks import NEVER_PRUNED
from ..reads import Reads

if TYPE_CHECKING:
    from ...policy.language.gitops import GitOps
    from ..plan import Plan

API_VERSION = "argoproj.io/v1alpha1"
ROOT = "gpustack"
HERE = "https://kubernetes.default.svc"
LOCAL = {"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "kubernetes.default", "in-cluster"}
"""What a cluster is called by an Argo CD that runs in it."""
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
IGNORE_HEALTH = "argocd.argoproj.io/ignore-healthcheck"
LAST_WAVE = len(STAGES)
COMPARE = {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"}
"""The API server says what an apply would change, so what it defaults is not a difference."""
HEALTH_KEY = "resource.customizations.health.gpustack.dev_NodePolicy"
RETRY = {"limit": 8, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "10m"}}
"""The first attempt comes soon: Argo CD waits 3 s for a new CRD to be served, and several API servers take 5. The last
one comes after half an hour: then only a commit begins anew."""
AT_ONCE = frozenset(
    """
    ClusterRole ClusterRoleBinding ConfigMap CustomResourceDefinition DeviceClass LimitRange Namespace NetworkPolicy
    PriorityClass ResourceClaimTemplate ResourceQuota Role RoleBinding RuntimeClass Secret SecurityContextConstraints
    ServiceAccount ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    """.split()
)
"""Kinds that Argo CD finds healthy as soon as they are applied; a CRD takes a second."""

SERVER_URL = form("server_url")
DESTINATION = form("destination_name")


class Destination(Section):
    """The cluster, as Argo CD knows it: by one of the two."""

    server: Annotated[str, SERVER_URL] | None = None
    """Address of its API server; `https://kubernetes.default.svc` where Argo CD runs in the cluster itself. Absent:
    `name` says it."""
    name: Annotated[str, DESTINATION] | None = None
    """Its name in Argo CD. Absent: `server` says it."""


class ArgoCd(Section):
    """How Argo CD syncs the cluster."""

    namespace: DnsLabel = own("gitops.argocd.namespace")
    """Namespace of Argo CD. Absent: argocd."""
    project: DnsSubdomain | None = None
    """AppProject of yours that the Application belongs to. Absent: one of its own is rendered, which permits this
    repository, this cluster and the kinds that gpustack renders."""
    destination: Destination = section()
    """The cluster, as Argo CD knows it. Has no default."""
    autoSync: bool = own("gitops.argocd.autoSync")
    """Whether a commit is applied without anybody's help. Absent: true."""
    prune: bool = own("gitops.argocd.prune")
    """Whether `autoSync` deletes what is no longer rendered; what would stop drivers waits for somebody who confirms
    it. Absent: true."""
    selfHeal: bool = own("gitops.argocd.selfHeal")
    """Whether `autoSync` takes back what somebody changed in the cluster. Absent: true."""


class ArgoCdEngine(Engine[ArgoCd]):
    """Argo CD."""

    name = "argocd"
    title = "Argo CD"
    settings = ArgoCd
    annotations = ("argocd.argoproj.io/",)
    hooks = ("argocd.argoproj.io/hook",)
    large = {OPTIONS: "ServerSideApply=true"}
    partial = {OPTIONS: "ServerSideApply=true,Prune=false,Delete=false"}

    def missing(self, given: GitOps) -> Iterator[Trouble]:
        target = self.of(given).destination
        if not (target.name or target.server):
            yield self.trouble("no destination")

    def contradictions(self, given: GitOps) -> Iterator[Trouble]:
        target = self.of(given).destination
        if target.name and target.server:
            yield self.trouble("two destinations")

    def idle(self, given: GitOps) -> Iterator[tuple[str, str]]:
        settings = self.of(given)
        for name in ("prune", "selfHeal"):
            if not settings.autoSync and getattr(settings, name):
                yield f"argocd.{name}", "with autoSync: false Argo CD applies and deletes nothing by itself"

    def accounts(self, given: GitOps) -> Accounts | None:
        inside = _inside(self.of(given).destination)
        return Accounts(groups=(f"system:serviceaccounts:{self.namespace(given)}",)) if inside else None

    def destination(self, given: GitOps) -> tuple[str, ...]:
        where = self.of(given).destination
        server = urlsplit((where.server or "").lower().rstrip("/"))
        if _inside(where) or not (server.hostname or where.name):
            return ()
        return (self.name, f"{server.hostname}:{server.port or 443}" if server.hostname else f"name {where.name}")

    def spelled(self, given: GitOps) -> tuple[tuple[str, ...], str]:
        settings = self.of(given)
        where = settings.destination
        installation = (self.name, settings.namespace, given.repository.url or "", settings.project or "")
        return installation, where.server or where.name or ""

    def mark(self, resource: Resource, *, keep: bool) -> Body:
        wave = STAGES.index(resource.stage) if resource.kind in AT_ONCE else LAST_WAVE
        wanted = {WAVE: str(wave)}
        if resource.kind == "DaemonSet":
            wanted[IGNORE_HEALTH] = "true"
        if keep:
            wanted[OPTIONS] = f"Prune={'false' if resource.kind in NEVER_PRUNED else 'confirm'},Delete=confirm"
        return annotated(resource.body, wanted, [OPTIONS])

    def guarded(self, notes: Mapping[str, Any]) -> str:
        options = {each.strip() for each in str(notes.get(OPTIONS, "")).split(",")}
        if "Prune=false" in options:
            return "; Argo CD doesn't prune it, so that is once somebody deletes it by hand"
        return "; the sync of Argo CD waits until somebody confirms it" if "Prune=confirm" in options else ""

    def objects(self, plan: Plan, cluster: str) -> list[Body]:
        project = [] if self.of(plan.settings).project else [_project(plan, cluster)]
        return [*project, _application(plan, cluster)]

    def roots(self, plan: Plan, cluster: str) -> list[Body]:
        """The Application that syncs the others, its project, and how Argo CD tells the health of NodePolicies."""
        return [*(self.objects(plan, cluster) if plan.oci else _root(plan, cluster)), _health(plan)]

    def runs_inside(self, plan: Plan) -> bool:
        return _inside(self.of(plan.settings).destination)

    def rooted(self, plan: Plan) -> Roots:
        return "one" if plan.oci or self.runs_inside(plan) else "shared"

    def namespace(self, given: GitOps) -> str:
        return self.of(given).namespace

    def reads(self, bodies: Sequence[Any]) -> Reads | None:
        for body in bodies:
            if body.get("kind") == "Application":
                source = (body.get("spec") or {}).get("source") or {}
                return Reads(
                    self.name, source.get("repoURL", ""), source.get("targetRevision", ""), source.get("path", ".")
                )
        return None


ENGINE = ArgoCdEngine()


def _inside(where: Destination) -> bool:
    """Whether WHERE is the cluster that Argo CD runs in."""
    host = urlsplit((where.server or "").lower().rstrip("/")).hostname
    return (host or where.name or "") in LOCAL


def _root(plan: Plan, cluster: str) -> list[Body]:
    """The Application that syncs all others, or those of CLUSTER, and its project."""
    name = f"root-{ROOT}-{cluster}" if cluster else f"root-{ROOT}"
    namespace = ENGINE.namespace(plan.settings)
    project = {
        "description": "Applications of GPU stacks",
        "sourceRepos": [plan.url],
        "destinations": [{"server": HERE, "namespace": namespace}],
        "namespaceResourceWhitelist": [
            {"group": "argoproj.io", "kind": kind} for kind in ("AppProject", "Application")
        ],
    }
    spec = {
        "project": name,
        "source": {**_source(plan), "path": plan.path(plan.folder(cluster)), "directory": {"recurse": True}},
        "destination": {"server": HERE, "namespace": namespace},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": ["ServerSideApply=true"],
            "retry": RETRY,
        },
    }
    return [_object("AppProject", name, plan, project), _object("Application", name, plan, spec, COMPARE)]


def _health(plan: Plan) -> Body:
    """The part of Argo CD's configuration by which it tells the health of a NodePolicy."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": ENGINE.namespace(plan.settings),
            "labels": {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"},
        },
        "data": {HEALTH_KEY: texts.argocd_health()},
    }


def _object(kind: str, name: str, plan: Plan, spec: Body, annotations: dict[str, str] | None = None) -> Body:
    meta: Body = {"name": name, "namespace": ENGINE.namespace(plan.settings)}
    if annotations:
        meta["annotations"] = annotations
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def _source(plan: Plan) -> Body:
    """The repository and what of it; the path comes on top."""
    kind, name = revision(plan.settings.repository)
    return {"repoURL": plan.url, "targetRevision": f"refs/tags/{name}" if kind == "tag" and not plan.oci else name}


def _destination(plan: Plan, namespace: str) -> dict[str, str]:
    """The cluster, and a namespace of it. Argo CD compares the namespace too with what the project permits, so an
    Application without one is refused."""
    given = ENGINE.of(plan.settings).destination
    return {**({"server": given.server} if given.server else {"name": given.name or ""}), "namespace": namespace}


def _literal(where: dict[str, str]) -> dict[str, str]:
    """WHERE, which a project reads as a pattern, so that it is no other cluster: the address of an API server may have
    an IPv6 address in brackets, which would be one character of several."""
    return {key: re.sub(r"^!|[*?{}\[\]\\]", r"\\\g<0>", value) for key, value in where.items()}


def _project(plan: Plan, cluster: str) -> Body:
    """The project of CLUSTER: this repository, and this cluster.

    It permits all namespaces, and every kind that gpustack renders for any policy, beside those of this one: Argo CD
    neither prunes nor shows what its project does not permit, so what a commit does away with, in a namespace or of a
    kind of which it leaves nothing, would stay behind; and the first attempt to sync a new namespace would fail."""
    known = {*((each.group, each.kind, each.namespaced) for each in plan.kinds), *rendered_kinds()}

    def of(inside: bool) -> list[dict[str, str]]:
        return [{"group": group, "kind": kind} for group, kind, namespaced in sorted(known) if namespaced == inside]

    spec = {
        "description": f"GPU stack of {cluster}",
        "sourceRepos": [plan.url],
        "destinations": [{**_literal(_destination(plan, "")), "namespace": "*"}],
        "clusterResourceWhitelist": of(inside=False),
        "namespaceResourceWhitelist": of(inside=True),
    }
    return _object("AppProject", f"{ROOT}-{cluster}", plan, spec, {WAVE: "-1"})


def _application(plan: Plan, cluster: str) -> Body:
    settings = ENGINE.of(plan.settings)
    policy: dict[str, Any] = {"syncOptions": ["ServerSideApply=true", "ApplyOutOfSyncOnly=true"], "retry": RETRY}
    if settings.autoSync:
        policy = {"automated": {"prune": settings.prune, "selfHeal": settings.selfHeal}, **policy}
    spec = {
        "project": settings.project or f"{ROOT}-{cluster}",
        "source": {**_source(plan), "path": plan.cluster_path(cluster), "directory": {"recurse": True}},
        "destination": _destination(plan, plan.namespace),
        "syncPolicy": policy,
    }
    return _object("Application", f"{ROOT}-{cluster}", plan, spec, {**COMPARE, WAVE: "0"})
