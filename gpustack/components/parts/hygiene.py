"""What holds for every object of a render, whoever made it: written as the API server gives it back, safe from what
GitOps engines do to texts.

Solves three kinds of endless trouble: an engine shows 1000m as changed, because the cluster says 1; Flux replaces the
`${...}` of a shell script or an alert by nothing; an object is too large for the annotation of a client-side apply,
which holds all of it.
Rejected: doing so in each component, where the next one forgets it.
"""

from __future__ import annotations

import json
from typing import Any

from ...gitops.engines import wanted as engines_want
from ...model import ANNOTATIONS_LIMIT, Body
from ...text.quantities import canonical

POD_TEMPLATES = {
    "Pod": (),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), ("spec", "template")
    ),
}
"""Where a kind has its pod template."""


def clean(body: Body) -> Body:
    """BODY with what every object gets; BODY itself where that is nothing."""
    text = json.dumps(body)
    wanted = engines_want("verbatim") if "${" in text else {}
    if len(text) >= ANNOTATIONS_LIMIT:
        wanted |= engines_want("large")
    if '"resources"' in text or '"hard"' in text or '"sizeLimit"' in text:
        body = with_quantities(body)
    return with_annotations(body, wanted) if wanted else body


def with_annotations(body: Body, wanted: dict[str, str]) -> Body:
    """BODY with the annotations WANTED; those that it has win."""
    meta = body["metadata"]
    return {**body, "metadata": {**meta, "annotations": {**wanted, **(meta.get("annotations") or {})}}}


def with_quantities(body: Body) -> Body:
    """BODY with the quantities of its containers, volumes and quotas as the API server writes them.

    Only in kinds of Kubernetes itself: what a custom resource holds is its controller's to say.
    """
    found: Body = body
    if body["kind"] in POD_TEMPLATES:
        found = _at(body, (*POD_TEMPLATES[body["kind"]], "spec"), _pod)
    elif body["kind"] == "ResourceQuota":
        found = _at(body, ("spec", "hard"), _amounts)
    elif body["kind"] == "PersistentVolumeClaim":
        found = _at(body, ("spec", "resources"), _resources)
    return found


def _at(value: Any, path: tuple[str, ...], change: Any) -> Any:
    """VALUE with what stands at PATH changed; as it is where nothing does."""
    if not path:
        return change(value)
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _at(value[path[0]], path[1:], change)}


def _pod(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    changed = {
        key: [_at(item, ("resources",), _resources) for item in spec[key]]
        for key in ("initContainers", "containers")
        if isinstance(spec.get(key), list)
    }
    if isinstance(spec.get("volumes"), list):
        changed["volumes"] = [_at(item, ("emptyDir", "sizeLimit"), _amount) for item in spec["volumes"]]
    return {**spec, **changed}


def _resources(resources: Any) -> Any:
    return _at(_at(resources, ("requests",), _amounts), ("limits",), _amounts)


def _amounts(amounts: Any) -> Any:
    if not isinstance(amounts, dict):
        return amounts
    return {name: _amount(value) for name, value in amounts.items()}


def _amount(value: Any) -> Any:
    """VALUE in its canonical form; what is not a quantity stays for validation to refuse."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    try:
        return canonical(value)
    except ValueError:
        return value
