"""`extraObjects`, `constructs`, `references` and `compat`: what a policy brings along (sections that a team's own
distributions bring: policy/loading/constructs.py), what others bring, and what they look for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from gpustack.catalog.kinds import kinds_in
from gpustack.model import DEEPEST, Path

from .base import Section
from .forms import Form, form, refuse, refuse_as, refuse_at
from .types import DNS_LABEL, KIND, ConfigKey, DnsLabel, DnsSubdomain, Kind

if TYPE_CHECKING:
    from ..loading.constructs import Constructs


class Compat(Section):
    """What other software finds of the operator where it looks for one. Nothing here acts on it."""

    clusterPolicy: bool = False
    """Whether the effective settings are rendered as an inert ClusterPolicy of the operator, with an open definition of
    its kind, for programs that read one. Not where an operator runs. Absent: false."""


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


_NAME = form("object_name")
"""What all kinds have in common: those of RBAC may have a colon. What a kind asks for besides, a rule over objects
knows (checks/objects/api_server.py)."""


def _manifest(body: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """Return BODY without its nulls, or say what it lacks to be a Kubernetes object."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    required = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata.name": name}
    missing = [path for path, value in required.items() if not isinstance(value, str) or not value]
    if missing:
        raise refuse_as("extra_object", "missing", missing=" and ".join(missing), first=missing[0])
    if not re.fullmatch(r"[^/]+(/[^/]+)?", str(body["apiVersion"])):
        raise refuse_as("extra_object", "version", version=repr(body["apiVersion"]))
    _check(("kind",), KIND, body["kind"])
    _check(("metadata", "name"), _NAME, body["metadata"]["name"])
    place, namespace = ("metadata", "namespace"), body["metadata"].get("namespace")
    if namespace not in (None, ""):
        if not isinstance(namespace, str):
            raise refuse_as("extra_object", "namespace")
        if not kinds_in(info.context).namespaced(body["apiVersion"], body["kind"]):
            raise refuse_at(place, refuse_as("extra_object", "scope", kind=body["kind"]), namespace)
        _check(place, DNS_LABEL, namespace)
    return {key: _without_nulls(value, (key,)) for key, value in body.items() if value is not None}


def _check(place: Path, form: Form, value: str) -> None:
    """Hold VALUE, which stands at PLACE of a manifest, to FORM."""
    try:
        form.check(value)
    except PydanticCustomError as error:
        raise refuse_at(place, error, value) from None


def _without_nulls(value: Any, place: Path) -> Any:
    """VALUE without its nulls; PLACE says where it stands in the manifest."""
    if len(place) >= DEEPEST and isinstance(value, dict | list):
        raise refuse_at(place[:3], refuse_as("extra_object", "deep", most=DEEPEST), value)
    if isinstance(value, dict):
        return {key: _without_nulls(item, (*place, key)) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if None in value:
            raise refuse_as("extra_object", "empty")
        return [_without_nulls(item, (*place, index)) for index, item in enumerate(value)]
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
                "$replace": {
                    "const": True,
                    "description": "Take the place of the object of a layer that has this name.",
                },
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


def constructs_in(context: Any) -> Constructs | None:
    """The constructs of a validation's CONTEXT; None where it has none: the spec was valid before."""
    return context["constructs"] if isinstance(context, dict) else None


def checked(given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """GIVEN, each section held to its own model, with the place of all that is wrong."""
    known = constructs_in(info.context)
    wrong: list[InitErrorDetails] = []
    if known is None:
        return given
    for name, section in given.items():
        try:
            known.check(name, section)
        except PydanticCustomError as error:
            wrong.append(InitErrorDetails(type=error, loc=(name,), input=section))
        except ValidationError as error:
            wrong += (_within(name, each) for each in error.errors(include_url=False))
    if wrong:
        raise ValidationError.from_exception_data("constructs", wrong)
    return given


def _within(name: str, details: Mapping[str, Any]) -> InitErrorDetails:
    """What DETAILS say is wrong within the section NAME."""
    steps = tuple(details["loc"])
    remedy = "see what the distribution's own documentation says"
    said = str(details["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")  # pydantic's words
    if details["type"] == "missing":
        said, steps, remedy = f"{steps[-1]} is missing", steps[:-1], f"add {steps[-1]}"
    elif details["type"] == "extra_forbidden":
        said, remedy = f"{steps[-1]} is not a field of the construct {name}", f"remove {steps[-1]}"
    return InitErrorDetails(type=refuse("construct", said, remedy), loc=(name, *steps), input=details["input"])
