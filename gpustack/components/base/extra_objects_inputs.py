"""Inputs of the policy's own objects."""

from __future__ import annotations

from typing import Any

from ...cluster.resolve import Cluster
from ...model import Body, FindingsError
from ..parts.common_inputs import GUARDED, Inputs
from ..plugin.configs_inputs import refuse_large
from ..refusals import refused


class ExtraObjectsInputs(Inputs):
    """The objects, each with its namespace filled in."""

    objects: tuple[dict[str, Any], ...]


def from_cluster(cluster: Cluster) -> ExtraObjectsInputs | None:
    """The policy's extraObjects; a namespaced one without a namespace goes where the stack is.

    Secrets are refused, and two objects of one name.
    """
    spec = cluster.spec
    objects: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], int] = {}
    for position, item in enumerate(spec.extraObjects or ()):
        body: dict[str, Any] = item if isinstance(item, dict) else item.model_dump(exclude_none=True)
        if body["kind"] == "Secret" and body["apiVersion"] == "v1":
            raise FindingsError(refused("GPU043", f"extraObjects[{position}]", name=body["metadata"]["name"]))
        if spec.kinds.namespaced(body["apiVersion"], body["kind"]) and not body["metadata"].get("namespace"):
            body = {**body, "metadata": {**body["metadata"], "namespace": spec.cluster.namespace}}
        if body["kind"] == "ConfigMap" and isinstance(body.get("data"), dict):
            refuse_large(body["data"], str(body["metadata"]["name"]), f"extraObjects[{position}].data")
        group, meta = str(body["apiVersion"]).rpartition("/")[0], body["metadata"]
        first = seen.setdefault((group, body["kind"], str(meta.get("namespace")), meta["name"]), position)
        if first != position:
            name = f"{body['kind']} {meta['name']}"
            raise FindingsError(refused("GPU204", f"extraObjects[{position}]", name=name, first=first))
        objects.append(guarded(body, spec.cluster.namespace))
    return ExtraObjectsInputs(objects=tuple(objects)) if objects else None


def guarded(body: Body, namespace: str) -> Body:
    """BODY, marked as written by nobody but who applies the render where it is a ConfigMap that pods of the stack, in
    NAMESPACE, can mount. One without content is another program's to fill, and a label of its own wins.
    """
    meta, full = body["metadata"], body.get("data") or body.get("binaryData")
    labels = meta.get("labels") or {}
    if body["kind"] != "ConfigMap" or meta.get("namespace") != namespace or not full or not isinstance(labels, dict):
        return body
    return {**body, "metadata": {**meta, "labels": {**GUARDED, **labels}}}
