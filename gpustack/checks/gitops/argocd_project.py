"""A rule about an Application and its AppProject together: Argo CD refuses what the project does not permit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...gitops.engines.argocd import ENGINE
from ...model import Body
from ..rule import Hit, hit, rule
from ..subjects import EngineObjects, Synced
from .argocd_patterns import permits_destination, permits_kind, permits_source

WHERE = "spec.gitops"
OWN = "permit it in the AppProject, or leave out spec.gitops.argocd.project: then one that fits is rendered"


@rule("GPU839", "error", over="engine")
def not_permitted(made: EngineObjects) -> Iterator[Hit]:
    """An Application that its AppProject does not permit."""
    brought = [body for body in made.spec.extraObjects if body["kind"] == "AppProject"]
    projects = {key(body): body for body in (*brought, *made.bodies) if body["kind"] == "AppProject"}
    own = ENGINE.of(made.spec.gitops).project if made.spec.gitops else None
    hits: dict[tuple[str, str], Hit] = {}
    for application in (body for body in made.bodies if body["kind"] == "Application"):
        wanted = (application["metadata"]["namespace"], application["spec"]["project"])
        project = projects.get(wanted)
        if project is None:
            for space in (space for space, name in projects if name == wanted[1]):
                hits[wanted] = _elsewhere(*wanted, space)
        else:
            synced = made.synced[application["metadata"]["name"]]
            for hit in _refused(application["spec"], project, synced, project["metadata"]["name"] == own):
                hits.setdefault((hit.path, hit.what), hit)
    yield from hits.values()


def key(body: Body) -> tuple[str, str]:
    """The namespace and name of a project."""
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _elsewhere(namespace: str, name: str, space: str) -> Hit:
    return hit(f"{WHERE}.argocd.project", "elsewhere", name=name, space=space or "none", namespace=namespace)


def _refused(application: Body, project: Body, synced: Synced, own: bool) -> Iterator[Hit]:
    """What of the Application with spec APPLICATION, which syncs SYNCED, the PROJECT does not permit."""
    spec: dict[str, Any] = project["spec"]
    name = f"the AppProject {project['metadata']['name']}" if own else "its AppProject"
    at, mend = (f"{WHERE}.argocd.project", OWN) if own else (None, "")
    url = application["source"]["repoURL"]
    if not permits_source(spec.get("sourceRepos") or (), url):
        yield hit(at or f"{WHERE}.repository.url", "repository", remedy=mend, name=name, url=url)
    destination = application["destination"]
    spaces = sorted({destination.get("namespace", ""), *synced.namespaces})
    allowed = spec.get("destinations") or ()
    outside = [one for one in spaces if permits_destination(allowed, {**destination, "namespace": one}) is False]
    if outside:
        cluster = destination.get("name") or destination.get("server") or "of no name"
        where, names = at or f"{WHERE}.argocd.destination", ", ".join(each or "none" for each in outside)
        yield hit(where, "destination", remedy=mend, name=name, cluster=cluster, spaces=names)
    kinds = [one for one in synced.kinds if not permits_kind(spec, one[0], one[1], namespaced=one[2])]
    if kinds:
        told = sorted(f"{kind} ({group})" if group else kind for group, kind, _ in kinds)
        yield hit(at or f"{WHERE}.argocd", "kinds", remedy=mend, name=name, kinds=", ".join(told))
