"""Whether a change is routine: nothing in it but what is known to be harmless.

Conservative: a field that is not listed here is not known to be harmless, and one such field in one of a thousand
clusters takes the mark off the whole change.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...gitops import place
from ..diff.fields import FieldChange
from ..diff.objects import ObjectChange

MONITORS = {"ServiceMonitor", "PodMonitor"}
PACE = {"interval", "scrapeTimeout"}
"""How often something is scraped. What else a monitor says decides whether it is scraped at all."""
ANNOTATIONS = {"DaemonSet", "Deployment", "ConfigMap", "Service", "ServiceAccount", "Role", "ClusterRole", "FlowSchema"}
"""Kinds whose own annotations nothing reads but those that gpustack and engines put there."""
READ = ("gpustack.dev/", *place.ANNOTATIONS.values(), "openshift.io/", "security.")
"""Beginnings of annotations that somebody reads."""


def routine(changes: Iterable[ObjectChange]) -> bool:
    """Whether CHANGES are all known to be harmless."""
    return all(_harmless(change) for change in changes)


def _harmless(change: ObjectChange) -> bool:
    if change.what != "changed" or change.moved:
        return False
    return all(_field(change.identity.kind, field) for field in change.fields)


def _field(kind: str, field: FieldChange) -> bool:
    """Whether it is harmless that FIELD of an object of KIND changes."""
    path = field.path
    if kind in MONITORS:
        added = field.op == "add" and path[:2] == ("metadata", "labels") and len(path) == 3
        return added or (path[:1] == ("spec",) and path[-1] in PACE)
    if kind == "PrometheusRule":
        return field.op == "add" and path[:2] == ("spec", "groups")
    own = kind in ANNOTATIONS and path[:2] == ("metadata", "annotations") and len(path) == 3
    return own and not str(path[2]).startswith(READ)
