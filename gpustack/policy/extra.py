"""`extraObjects` and `references`: what a policy brings along, and what others bring."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from .base import Section
from .forms import refuse
from .types import ConfigKey, DnsLabel, DnsSubdomain, Kind


class Reference(Section):
    """An object that others put into the cluster and that the policy counts on."""

    kind: Kind
    """Kind of the object: ConfigMap, Secret, PriorityClass, ..."""
    name: DnsSubdomain
    """Name of the object."""
    namespace: DnsLabel | None = None
    """Namespace of the object. Absent: `cluster.namespace`, for kinds that have one."""
    keys: list[ConfigKey] | None = None
    """Keys of a ConfigMap or Secret. Absent: not known, and then no key is checked."""


def _manifest(body: dict[str, Any]) -> dict[str, Any]:
    """Return BODY without its nulls, or say what it lacks to be a Kubernetes object."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    found = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata.name": name}
    missing = [path for path, value in found.items() if not isinstance(value, str) or not value]
    if missing:
        raise refuse("extra_object", f"a manifest without {' and '.join(missing)}", f"add {missing[0]}, as text")
    if not re.fullmatch(r"(?!\.\.?$)[^/%\x00-\x1f]+", str(name)):
        raise refuse("extra_object", f"{name!r} is no name of a Kubernetes object", "leave out '/' and '%'")
    if not re.fullmatch(r"[^/]+(/[^/]+)?", str(body["apiVersion"])):
        raise refuse("extra_object", f"{body['apiVersion']!r} is no apiVersion", "write v1, apps/v1 or the like")
    if not isinstance(body["metadata"].get("namespace", ""), str | None):
        raise refuse("extra_object", "metadata.namespace is no text", "write the name of a namespace, in quotes")
    return {key: _without_nulls(value) for key, value in body.items() if value is not None}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if None in value:
            raise refuse("extra_object", "a list of a manifest has an empty item", "fill it in or leave it out")
        return [_without_nulls(item) for item in value]
    return value


Manifest = Annotated[
    dict[str, Any],
    AfterValidator(_manifest),
    Field(
        json_schema_extra={
            "required": ["apiVersion", "kind", "metadata"],
            "properties": {
                "apiVersion": {"type": "string", "minLength": 1},
                "kind": {"type": "string", "minLength": 1},
                "metadata": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string", "minLength": 1}},
                },
            },
        }
    ),
]
"""A Kubernetes object as plain data: never None in it, apiVersion, kind and metadata.name set."""
