"""Argo CD's objects: an Application for each cluster, an AppProject that permits it what gpustack renders and no more,
and the root, which a person applies once.

An Application per cluster, and no ApplicationSet: each is a file that is reviewed, and a cluster that goes takes its
Application along and nothing else. Applications have no finalizer, so deleting one leaves the cluster as it is
(what `preserveResourcesOnDeletion` is to an ApplicationSet).

No `PruneLast`: it adds a wave behind the last one, and Argo CD would wait for the health of DaemonSets again.
"""

from __future__ import annotations

import re
from typing import Any

from ..catalog import texts
from ..catalog.rendered_kinds import rendered_kinds
from ..model import Body
from ..policy.language.gitops import revision
from . import marks
from .plan import Kind, Plan, folder

API_VERSION = "argoproj.io/v1alpha1"
ROOT = "gpustack"
HERE = "https://kubernetes.default.svc"
COMPARE = {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"}
"""The API server says what an apply would change, so what it defaults is no difference."""
HEALTH_KEY = "resource.customizations.health.gpustack.dev_NodePolicy"
RETRY = {"limit": 8, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "10m"}}
"""The first attempt comes soon: Argo CD waits 3 s for a new CRD to be served, and several API servers take 5. The last
one comes after half an hour: then only a commit begins anew.
"""


def objects(plan: Plan, cluster: str) -> list[Body]:
    """What is rendered for CLUSTER."""
    project = [] if plan.settings.argocd.project else [_project(plan, cluster)]
    return [*project, _application(plan, cluster)]


def roots(plan: Plan, cluster: str) -> list[Body]:
    """What a person applies once: the Application that syncs the others, of CLUSTER or of all of them, its project, and
    the part of Argo CD's configuration that tells the health of NodePolicies.
    """
    if plan.oci:
        return [*objects(plan, cluster), _health(plan)]
    name = f"root-{ROOT}-{cluster}" if cluster else f"root-{ROOT}"
    namespace = namespace_of(plan)
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
        "source": {**_source(plan), "path": plan.path(folder(plan, cluster)), "directory": {"recurse": True}},
        "destination": {"server": HERE, "namespace": namespace},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": ["ServerSideApply=true"],
            "retry": RETRY,
        },
    }
    return [
        _object("AppProject", name, plan, project),
        _object("Application", name, plan, spec, COMPARE),
        _health(plan),
    ]


def _health(plan: Plan) -> Body:
    """The part of Argo CD's configuration by which it tells the health of a NodePolicy."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": namespace_of(plan),
            "labels": {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"},
        },
        "data": {HEALTH_KEY: texts.argocd_health()},
    }


def namespace_of(plan: Plan) -> str:
    """Where Argo CD is."""
    return plan.settings.argocd.namespace or "argocd"


def runs_inside(plan: Plan) -> bool:
    """Whether Argo CD runs in the cluster that it syncs, and so serves no other."""
    return plan.settings.argocd.destination.server == HERE


def _object(kind: str, name: str, plan: Plan, spec: Body, annotations: dict[str, str] | None = None) -> Body:
    meta: Body = {"name": name, "namespace": namespace_of(plan)}
    if annotations:
        meta["annotations"] = annotations
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def _source(plan: Plan) -> Body:
    """The repository and what of it; the path comes on top."""
    kind, name = revision(plan.settings.repository)
    return {"repoURL": plan.url, "targetRevision": f"refs/tags/{name}" if kind == "tag" and not plan.oci else name}


def _destination(plan: Plan, namespace: str) -> dict[str, str]:
    """The cluster, and a namespace of it. Argo CD compares the namespace too with what the project permits, so an
    Application without one is refused.
    """
    given = plan.settings.argocd.destination
    return {**({"server": given.server} if given.server else {"name": given.name or ""}), "namespace": namespace}


def _literal(where: dict[str, str]) -> dict[str, str]:
    """WHERE, which a project reads as a pattern, so that it is no other cluster: the address of an API server may have
    an IPv6 address in brackets, which would be one character of several.
    """
    return {key: re.sub(r"^!|[*?{}\[\]\\]", r"\\\g<0>", value) for key, value in where.items()}


def _project(plan: Plan, cluster: str) -> Body:
    """The project of CLUSTER: this repository, and this cluster.

    It permits all namespaces, and every kind that gpustack renders for any policy, beside those of this one: Argo CD
    neither prunes nor shows what its project does not permit, so what a commit does away with, in a namespace or of a
    kind of which it leaves nothing, would stay behind; and the first attempt to sync a new namespace would fail.
    """
    known = {
        *plan.kinds,
        *(Kind(group=group, kind=kind, namespaced=inside) for group, kind, inside in rendered_kinds()),
    }

    def of(inside: bool) -> list[dict[str, str]]:
        found = sorted((each.group, each.kind) for each in known if each.namespaced == inside)
        return [{"group": group, "kind": kind} for group, kind in found]

    spec = {
        "description": f"GPU stack of {cluster}",
        "sourceRepos": [plan.url],
        "destinations": [{**_literal(_destination(plan, "")), "namespace": "*"}],
        "clusterResourceWhitelist": of(inside=False),
        "namespaceResourceWhitelist": of(inside=True),
    }
    return _object("AppProject", f"{ROOT}-{cluster}", plan, spec, {marks.WAVE: "-1"})


def _application(plan: Plan, cluster: str) -> Body:
    settings = plan.settings.argocd
    policy: dict[str, Any] = {"syncOptions": ["ServerSideApply=true", "ApplyOutOfSyncOnly=true"], "retry": RETRY}
    if settings.autoSync is not False:
        policy = {
            "automated": {"prune": settings.prune is not False, "selfHeal": settings.selfHeal is not False},
            **policy,
        }
    spec = {
        "project": settings.project or f"{ROOT}-{cluster}",
        "source": {**_source(plan), "path": plan.cluster_path(cluster), "directory": {"recurse": True}},
        "destination": _destination(plan, plan.namespace),
        "syncPolicy": policy,
    }
    return _object("Application", f"{ROOT}-{cluster}", plan, spec, {**COMPARE, marks.WAVE: "0"})
