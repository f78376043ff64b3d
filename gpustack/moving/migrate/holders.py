"""Who installed the operator, and what would bring it back: Helm's command line, Argo CD, Flux, OLM.

A holder is told by its own object, or by the mark that its engine leaves on the operator's objects. `Held` is said of
one that the cluster itself shows so; a file of a repository says what somebody wants, and not what is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpustack.live.state import labels
from gpustack.model import Body

from ..adopt.inputs.context import CHART
from .acts import changes
from .commands import named
from .seen import RELEASE, Seen, facts, in_cluster, notes, package, space

TRACKED = "argocd.argoproj.io/tracking-id"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
FLUX = "helm.toolkit.fluxcd.io"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io"


@dataclass(frozen=True)
class Holder:
    """The object NAME of KIND, which keeps the operator in place; BODY is None where nobody looked at it."""

    kind: str
    name: str
    namespace: str
    body: Body | None = None

    @property
    def object(self) -> list[str]:
        """The words by which kubectl finds it."""
        return named(self.kind, self.name, self.namespace)

    @property
    def told(self) -> str:
        """What it is called in a sentence."""
        return f"{self.kind} {self.namespace or '?'}/{self.name}"

    @property
    def seen(self) -> bool:
        """Whether it was looked at in the cluster."""
        return self.body is not None and in_cluster(self.body)

    @property
    def held(self) -> bool:
        """Whether it was seen to bring nothing back."""
        if self.body is None or not self.seen:
            return False
        sync, lets = (self.body.get("spec") or {}).get("syncPolicy") or {}, facts()["holders"][self.kind].get("patch")
        off = self.kind == "Application" and (sync.get("automated") or {}).get("enabled") is False
        ours = _finalizers(self.body["metadata"])[1]
        return bool(lets) and self.kept and not ours and (off or not changes(lets, self.body))

    @property
    def kept(self) -> bool:
        """Whether a patch of it stays: Flux, where it applies it, is told to leave it alone."""
        (key, value), body = next(iter(facts()["keep"].items())), self.body or {"metadata": {}}
        return f"{KUSTOMIZE}/name" not in labels(body) or notes(body).get(key) == value

    @property
    def patch(self) -> Body:
        """The merge patch after which it brings nothing back."""
        body: dict[str, Any] = {**facts()["holders"][self.kind]["patch"]}
        meta = self.body["metadata"] if self.body else {}
        more = {"annotations": facts()["keep"]} if not self.kept else {}
        kept, ours = _finalizers(meta)
        if self.kind == "Application" and ours:
            more["finalizers"] = kept or None
        return {**({"metadata": more} if more else {}), **body}

    def goes(self, way: Way) -> bool:
        """Whether it goes at the end: what installs the operator itself does, and nothing above that. An Application
        stays: for a hook by which node labels go Argo CD would keep it until that has run (moving.md M4)."""
        return self.kind != "Application" and self == way.holders[0]


def _finalizers(meta: Body) -> tuple[list[str], list[str]]:
    """The finalizers in META: others', and those by which Argo CD deletes all that it synced."""
    every = [str(each) for each in meta.get("finalizers") or []]
    ours = [each for each in every if each.startswith(FINALIZER)]
    return [each for each in every if each not in ours], ours


@dataclass(frozen=True)
class Way:
    """How the operator was installed: a key of `ways` in the data file, "" where nothing tells it; what holds it in
    place, the nearest first; the release of Helm, "" without one; the namespace of its Secrets, unless it is theirs."""

    name: str
    holders: tuple[Holder, ...] = ()
    release: str = ""
    storage: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return str(facts()["ways"][self.name][0])


def way(seen: Seen) -> Way:
    """How the operator in SEEN was installed."""
    helm = any(labels(body).get("owner") == "helm" for body in seen.of("Secret"))
    helm = helm or any(RELEASE in notes(body) for body in _marked(seen))
    release = seen.release if helm else ""
    for name, finder in {"olm": _olm, "flux": _flux, "k3s": _k3s, "argocd": _argocd}.items():
        if holders := list(finder(seen)):
            spec = (holders[0].body or {}).get("spec") or {}
            stored = holders[0].kind == "HelmRelease"
            storage = str(spec.get("storageNamespace") or holders[0].namespace) if stored else ""
            return Way(name, tuple(_with_parents(seen, holders)), release, storage)
    return Way("helm" if helm else "", (), release)


def _marked(seen: Seen) -> list[Body]:
    """The objects that whoever installed the operator has written himself."""
    return [*seen.operators, *seen.of("ClusterPolicy", "NVIDIADriver", "GPUCluster")]


def _holder(body: Body) -> Holder:
    return Holder(body["kind"], str(body["metadata"]["name"]), space(body), body)


def _olm(seen: Seen) -> Iterator[Holder]:
    """The Subscription; where only the version is seen that it had installed, a Subscription that nobody looked at."""
    subscriptions = [_holder(body) for body in seen.of("Subscription") if package(body)]
    yield from subscriptions
    versions = [body for body in seen.of("ClusterServiceVersion") if package(body)]
    if versions and not subscriptions:
        yield Holder("Subscription", "?", space(versions[0]))


def _flux(seen: Seen) -> Iterator[Holder]:
    """The HelmRelease of the operator's chart."""
    names = {
        (str(labels(body)[f"{FLUX}/name"]), str(labels(body).get(f"{FLUX}/namespace", "")))
        for body in _marked(seen)
        if f"{FLUX}/name" in labels(body)
    }
    releases = list(seen.of("HelmRelease"))
    for body in releases:
        spec = body.get("spec") or {}
        chart = (spec.get("chart") or {}).get("spec", {}).get("chart") or (spec.get("chartRef") or {}).get("name") or ""
        if (body["metadata"]["name"], space(body)) in names or (not names and CHART in str(chart)):
            yield _holder(body)
    known = {(body["metadata"]["name"], space(body)) for body in releases}
    yield from (Holder("HelmRelease", *each) for each in sorted(names - known))


def _k3s(seen: Seen) -> Iterator[Holder]:
    """The HelmChart of K3s and RKE2."""
    for body in seen.of("HelmChart"):
        if CHART in str((body.get("spec") or {}).get("chart") or ""):
            yield _holder(body)


def _argocd(seen: Seen) -> Iterator[Holder]:
    """The Application of the operator's chart: by Argo CD's mark on the operator's objects, else by its sources."""
    names = {tracker for body in _marked(seen) if (tracker := _tracker(seen, body))}
    if names:
        yield from (_application(seen, name) for name in sorted(names))
        return
    for body in seen.of("Application"):
        spec = body.get("spec") or {}
        sources = spec.get("sources") or [spec.get("source") or {}]
        if any(CHART in str(each.get("chart") or each.get("path") or each.get("repoURL") or "") for each in sources):
            yield _holder(body)


def _tracker(seen: Seen, body: Body) -> str:
    """The Application that Argo CD says BODY belongs to; "" for none."""
    by_label = str(labels(body).get("app.kubernetes.io/instance") or "")
    tracked = str(notes(body).get(TRACKED) or labels(body).get("argocd.argoproj.io/instance") or "")
    return tracked.partition(":")[0] or (by_label if seen.find("Application", by_label) else "")


def _application(seen: Seen, name: str) -> Holder:
    """The Application that Argo CD calls NAME, with its namespace before it where that isn't Argo CD's own."""
    before, _, behind = name.rpartition("_")
    body = seen.find("Application", name) or (seen.find("Application", behind, before) if before else None)
    return _holder(body) if body else Holder("Application", behind, before)


def _with_parents(seen: Seen, holders: list[Holder]) -> Iterator[Holder]:
    """HOLDERS, each followed by what would take a patch of it back."""
    waiting, done = list(holders), set[tuple[str, str]]()
    while waiting:
        holder = waiting.pop(0)
        if (holder.kind, holder.name) in done:
            continue
        done.add((holder.kind, holder.name))
        yield holder
        if holder.body is None:
            continue
        for owner in holder.body["metadata"].get("ownerReferences") or []:
            if owner.get("kind") == "ApplicationSet":
                body = seen.find("ApplicationSet", str(owner["name"]), holder.namespace)
                waiting.append(
                    _holder(body) if body else Holder("ApplicationSet", str(owner["name"]), holder.namespace)
                )
        if (name := _tracker(seen, holder.body)) and name != holder.name:
            waiting.append(_application(seen, name))
