"""Whether a change is routine: nothing in it but what is known to be harmless.

Conservative: a field that is not listed here is not known to be harmless, and one such field in one of a thousand
clusters takes the mark off the whole change.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..diff.fields import Path
from ..diff.objects import ObjectChange

HARMLESS: dict[str, tuple[Path, ...]] = {
    "ServiceMonitor": (("spec", "endpoints"), ("metadata", "labels"), ("metadata", "annotations")),
    "PrometheusRule": (("spec", "groups"), ("metadata", "annotations")),
    "FlowSchema": (("metadata", "labels"), ("metadata", "annotations")),
}
"""Fields that start, stop and refuse nothing, by kind."""
ANNOTATIONS = {"DaemonSet", "Deployment", "ConfigMap", "Service", "ServiceAccount", "Role", "ClusterRole"}
"""Kinds whose own annotations nothing reads but those that gpustack and engines put there."""
READ = ("gpustack.dev/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "openshift.io/", "security.")
"""Beginnings of annotations that somebody reads."""


def routine(changes: Iterable[ObjectChange]) -> bool:
    """Whether CHANGES are all known to be harmless."""
    return all(_harmless(change) for change in changes)


def _harmless(change: ObjectChange) -> bool:
    if change.what != "changed" or change.moved:
        return False
    return all(_field(change.identity.kind, field.path) for field in change.fields)


def _field(kind: str, path: Path) -> bool:
    if any(path[: len(prefix)] == prefix for prefix in HARMLESS.get(kind, ())):
        return True
    own = kind in ANNOTATIONS and path[:2] == ("metadata", "annotations") and len(path) == 3
    return own and not str(path[2]).startswith(READ)
