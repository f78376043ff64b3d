"""The JSON schema of policy files, for editors and for other people's tools: schemas/clusterpolicy.schema.json.

It says what one file may hold, before layers and defaults are put together. So it differs from the models in three
ways: only items of lists have required fields (maps are merged with those of layers), null is allowed wherever a
field may be absent, and `extends` is there. One schema serves clusters and layers, because editors pick a schema by
file name and explain the branches of a `oneOf` badly.

Rules that look at several fields (MPS with MIG, names of pools) are the models' own: a file that this schema accepts
may still be refused.

Rejected: pydantic's own generator. It knows neither absence by null nor our descriptions, writes a model that is
used once in place, and what it writes changes with its versions; the few kinds of annotation that we use are quickly
read.
"""

import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from annotated_types import Ge, Le, MinLen
from pydantic.fields import FieldInfo

from gpustack.catalog import alerts, drivers, gpus, kubernetes, mig, oses, platforms, releases
from gpustack.model import INT32

from ..language.base import Section
from ..language.forms import Form, Number, TextAt
from ..language.node_pools import Count
from ..language.spec import PolicyLayer, PolicySpec
from ..loading.envelope import API_VERSION
from ..loading.ring import Renderer, Rollout
from .describe import descriptions, models, nested, summary

Schema = dict[str, Any]
NULL = {"type": "null"}
TYPES = {bool: "boolean", int: "integer", str: "string"}
KINDS = ["ClusterPolicy", "PolicyLayer", "PolicyChange"]
DRIVERS = ("Driver", "DriverSettings", "NvidiaDriver")
SUGGESTED: dict[str, Callable[[], Iterable[str]]] = {
    "platform": platforms.names,
    "gpuProduct": gpus.products,
    "alert": alerts.names,
    "release": releases.names,
    "kubernetesVersion": lambda: kubernetes.MINORS,
    "os": oses.os_names,
    "containerRuntime": lambda: ("containerd", "cri-o", "docker"),
    "layout": lambda: sorted({str(each.name) for board in mig.boards() for each in mig.board_profiles(board)}),
    **{f"{each}.version": lambda: drivers.listed_versions(releases.latest()) for each in DRIVERS},
}
"""Fields, alone or of one section, that take any text or key, and the values that are known, for editors to offer."""
EXTENDS: Schema = {
    "description": "Names of layers (files below layers/) to build on, the most general first. Absent: none.",
    "type": ["array", "null"],
    "items": {"type": "string"},
}


def export() -> Schema:
    """The schema as data; the same in every process."""
    items = set(_items(PolicyLayer))
    used: list[type[Section]] = [*models(PolicyLayer), Rollout]
    definitions = {model.__name__: _definition(model, model in items) for model in used}
    properties = definitions.pop(PolicyLayer.__name__)["properties"]
    properties["rollout"] = {"description": summary(Rollout), **nullable(shape(Rollout))}
    properties |= _definition(Renderer, False)["properties"]
    spec = definitions[PolicySpec.__name__]
    spec["properties"] = {"extends": EXTENDS, **spec["properties"]}
    properties["apiVersion"] = {"description": properties["apiVersion"]["description"], "const": API_VERSION}
    properties["kind"] = {
        "description": "ClusterPolicy for a cluster, PolicyLayer for what clusters share, PolicyChange for what they "
        "get ring by ring.",
        "enum": KINDS,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpustack policy",
        "description": "The GPU stack of a cluster, or a layer that clusters share.",
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind"],
        "properties": properties,
        "if": {"properties": {"kind": {"const": "ClusterPolicy"}}},
        "then": {"required": ["metadata", "spec"], "properties": {"metadata": {"required": ["name"]}}},
        "$defs": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(export(), indent=1) + "\n"


def shape(annotation: Any, metadata: Iterable[Any] = (), extra: Any = None) -> Schema:
    """The schema of a value of type ANNOTATION with the METADATA of `Annotated`; EXTRA is what a `Field` adds."""
    schema = _plain(annotation)
    for item in metadata:
        match item:
            case Form() | Number():
                schema = item.schema()
            case TextAt():
                schema = {"anyOf": [{"type": "string"}, schema]}
            case Ge(ge=bound):
                schema["minimum"] = bound
            case Le(le=bound):
                schema["maximum"] = bound
            case MinLen(min_length=bound):
                schema["minItems" if schema.get("type") == "array" else "minLength"] = bound
            case FieldInfo():
                schema = {**schema, **shape(annotation, item.metadata, item.json_schema_extra)}
    return {**schema, **(extra or {})}


def nullable(schema: Schema) -> Schema:
    """SCHEMA, or null: in a policy null counts as absent."""
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    options = schema.get("anyOf", [schema])
    return {"anyOf": [*options, NULL]} if options != [{}] else {}


def _items(root: type[Section]) -> Iterator[type[Section]]:
    """The models below ROOT that are items of a list."""
    for model in models(root):
        for field in model.model_fields.values():
            if typing.get_origin(field.annotation) is list:
                yield from nested(field.annotation)


def _definition(model: type[Section], item: bool) -> Schema:
    """The schema of MODEL, each field with its description; where it is an ITEM of a list, with what is required."""
    texts = descriptions(model)
    schema: Schema = {"type": "object", "additionalProperties": False}
    for name, field in model.model_fields.items():
        value = shape(field.annotation, field.metadata, field.json_schema_extra)
        if known := SUGGESTED.get(f"{model.__name__}.{name}") or SUGGESTED.get(name):
            value = _offering(known(), value)
        if item and field.is_required():
            schema.setdefault("required", []).append(name)
        else:
            value = nullable(value)
        schema.setdefault("properties", {})[name] = {"description": texts[name], **value}
    if model is Count:
        schema = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": INT32}, schema]}
    return {"description": summary(model), **schema}


def _offering(known: Iterable[str], value: Schema) -> Schema:
    """VALUE with values or keys that are KNOWN: editors complete them, texts in quotes where YAML wants some; others of
    its form pass."""
    if value.get("type") == "object":
        return {**value, "properties": dict.fromkeys(known, value["additionalProperties"])}
    return {"anyOf": [{"type": "string", "enum": list(known)}, value]}


def _plain(annotation: Any) -> Schema:
    """The schema of ANNOTATION, without regard to what stands around it."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return shape(arguments[0], arguments[1:])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        options = [shape(option) for option in arguments if option is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is list:
        return {"type": "array", "items": shape(arguments[0])}
    if origin is dict:
        return {"type": "object", **_keys(shape(arguments[0])), "additionalProperties": nullable(shape(arguments[1]))}
    if annotation is Any:
        return {}
    if annotation in TYPES:
        return {"type": TYPES[annotation]}
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    raise TypeError(f"no schema for {annotation!r}")


def _keys(keys: Schema) -> Schema:
    """The keyword about the KEYS of a map; they are text anyway."""
    names = {key: value for key, value in keys.items() if key != "type"}
    return {"propertyNames": names} if names else {}
