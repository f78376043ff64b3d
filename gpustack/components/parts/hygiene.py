"""What holds for every object of a render, whoever made it: written as the API server gives it back, safe from what
GitOps engines do to texts.

Solves three kinds of endless trouble: an engine shows 1000m as changed, because the cluster says 1; Flux replaces the
`${...}` of a shell script or an alert by nothing; an object is too large for the annotation of a client-side apply,
which holds all of it.
Rejected: doing so in each component, where the next one forgets it.
"""

import json
from typing import Any

from pydantic_core import to_json

from ...catalog import object_kinds
from ...gitops.engines import wanted as engines_want
from ...model import ANNOTATIONS_LIMIT, Body
from ...text.quantities import canonical

PODS = {kind: path for (_, kind), (path,) in object_kinds.grouped("pods").items()}
"""Where a kind has its PodSpec."""
EACH = "*"
SINGLE = ("averageValue", "value", "sizeLimit", "divisor")
MARKS = (b'"resources"', b'"sizeLimit"', b'"overhead"', b'"divisor"')
GROUPS = ("", "apps", "autoscaling", "node.k8s.io")
AMOUNTS = object_kinds.paths(object_kinds.facts()["amounts"])
(POD_AMOUNTS,) = object_kinds.paths(object_kinds.facts()["pod_amounts"]).values()
"""Where a kind, and where a PodSpec has amounts, by resource or a single one."""


def clean(body: Body) -> Body:
    """BODY with what every object gets; BODY itself where that is nothing."""
    text = to_json(body)
    wanted = engines_want("verbatim") if b"${" in text else {}
    if len(text) * 4 >= ANNOTATIONS_LIMIT and len(json.dumps(body)) >= ANNOTATIONS_LIMIT:  # which writes more
        wanted |= engines_want("large")
    if body["kind"] in AMOUNTS or any(mark in text for mark in MARKS):
        body = with_quantities(body)
    if not wanted:
        return body
    meta = body["metadata"]
    return {**body, "metadata": {**meta, "annotations": {**wanted, **(meta.get("annotations") or {})}}}


def with_quantities(body: Body) -> Body:
    """BODY with the quantities of its containers, volumes, quotas and limits as the API server writes them.

    Only in kinds of Kubernetes itself: what a custom resource holds is its controller's to say."""
    kind, changed = body["kind"], body
    paths = [(*PODS[kind], *path) for path in POD_AMOUNTS] if kind in PODS else []
    paths += AMOUNTS.get(kind, ()) if body["apiVersion"].rpartition("/")[0] in GROUPS else ()
    for path in paths:
        changed = _at(changed, path, _amount if path[-1] in SINGLE else _amounts)
    return changed


def _at(value: Any, path: tuple[str, ...], change: Any) -> Any:
    """VALUE with what stands at PATH changed; as it is where nothing does. A step EACH is all items of a list."""
    if not path:
        return change(value)
    if path[0] == EACH:
        return [_at(item, path[1:], change) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _at(value[path[0]], path[1:], change)}


def _amounts(amounts: Any) -> Any:
    if not isinstance(amounts, dict):
        return amounts
    return {name: _amount(value) for name, value in amounts.items()}


def _amount(value: Any) -> Any:
    """VALUE in its canonical form; what is not a quantity stays for validation to refuse."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        return canonical(repr(value) if isinstance(value, float) else value)
    except ValueError:
        return value
