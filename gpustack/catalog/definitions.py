"""A CustomResourceDefinition, or a JSON schema, as files of schemas/crds/ (kinds.py): strict, and without prose.

The direction is always what the API server does with an object that is written as it stands:

- a field that the schema doesn't have is pruned there, so it is refused here; where unknown fields are preserved, they
  may be anything;
- what has a default may be left out, also where it is required: defaults come before the validation;
- objects hold no null here, so that nothing is nullable; formats are dropped, as readers of schemas disagree on them;
- branches of allOf, anyOf, oneOf and not say something about values, and no field is unknown to them.

What no schema can say stays the API server's to judge, and is said (`OwnKind.unchecked`): rules in CEL, and patterns
that only Go reads.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import kubernetes
from .kinds import (
    GVK,
    LIST_KEYS,
    MADE_OF,
    ONE,
    SCOPE,
    SCOPES,
    SEVERAL,
    UNCHECKED,
    OwnKind,
    SchemaError,
    is_pattern,
    parsed,
)

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
API = "apiextensions.k8s.io/v1"
LIMIT = 200_000
"""Schemas within one schema, once references are written out."""
PRESERVE, EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
INT_OR_STRING, RULES, LIST_TYPE = "x-kubernetes-int-or-string", "x-kubernetes-validations", "x-kubernetes-list-type"
_SAME = {
    *("required", "enum", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "uniqueItems"),
}
"""Words that are taken as they stand."""
_PROSE = {
    *("description", "title", "default", "example", "examples", "externalDocs", "format", "nullable", "$comment"),
    *("$schema", "$id", "id", "definitions", "$defs", "deprecated", "readOnly", "writeOnly", GVK),
}
"""Words that say nothing about what is valid, or whose meaning is put in elsewhere."""
_HOLDERS = {"properties", *ONE, *SEVERAL}
"""Words that hold schemas."""


@dataclass(frozen=True)
class Made:
    """The file of one kind and version, and its TEXT."""

    kind: OwnKind
    text: str = field(repr=False)


def from_definition(body: Mapping[str, Any]) -> list[Made]:
    """Every version of the CustomResourceDefinition BODY that is served. Raises SchemaError."""
    version = body.get("apiVersion")
    if version != API:
        raise SchemaError(f"it is of {version}, which no API server since 1.22 has: take its form in {API}")
    spec = _mapping(body, "spec")
    names, crd = _mapping(spec, "names"), str(_mapping(body, "metadata").get("name", ""))
    listed = spec.get("versions")
    served = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    served = [each for each in served if each.get("served") is not False]
    if not served:
        raise SchemaError("it serves no version")
    versions = []
    for each in served:
        holder = _mapping(each, "schema", f"of {each.get('name')}")
        if "openAPIV3Schema" not in holder:
            raise SchemaError(f"its version {each.get('name')} has no schema")
        said = (spec.get("group"), each.get("name"), names.get("kind"), spec.get("scope"))
        group, name, kind, scope = map(str, said)
        heads = Heads(group, name, kind, scope, crd)
        versions.append(made(holder["openAPIV3Schema"], heads, prunes=spec.get("preserveUnknownFields") is not True))
    return versions


@dataclass(frozen=True)
class Heads:
    """What is known of a kind beside its schema. `scope` is Cluster or Namespaced."""

    group: str
    version: str
    kind: str
    scope: str
    crd: str = ""


def from_schema(raw: Mapping[str, Any], heads: Heads) -> Made:
    """The file of the kind that HEADS names, of the JSON schema RAW of a whole object. Raises SchemaError."""
    return made(_Inliner(raw).inline(raw, ()), heads)


def heads_in(raw: Mapping[str, Any]) -> tuple[str, str]:
    """API version and kind that the JSON schema RAW of a whole object says it is of; "" for what it doesn't."""
    gvk = raw.get(GVK)
    if isinstance(gvk, list) and len(gvk) == 1 and isinstance(gvk[0], dict):
        group, version, kind = (str(gvk[0].get(word, "")) for word in ("group", "version", "kind"))
        return "/".join(filter(None, (group, version))), kind
    properties = raw.get("properties")
    return _only(properties, "apiVersion"), _only(properties, "kind")


def _only(properties: Any, name: str) -> str:
    """The one value that the property NAME may have, "" where it may have others."""
    schema = properties.get(name) if isinstance(properties, dict) else None
    enum = [schema["const"]] if isinstance(schema, dict) and "const" in schema else []
    enum = enum or (schema.get("enum") if isinstance(schema, dict) else None) or []
    return str(enum[0]) if isinstance(enum, list) and len(enum) == 1 else ""


def made(raw: Any, heads: Heads, *, prunes: bool = True) -> Made:
    """The file of a kind whose objects RAW is the schema of. Raises SchemaError."""
    if not isinstance(raw, Mapping):
        raise SchemaError("its schema is not a mapping")
    if heads.scope not in SCOPES:
        raise SchemaError(f"its scope is {heads.scope}, and neither {' nor '.join(SCOPES)}")
    closer = _Closer(prunes)
    try:
        schema = closer.closed(raw, "")
    except RecursionError:
        raise SchemaError("its schema is nested too deep") from None
    said: Schema = {
        "$schema": DRAFT,
        GVK: [{"group": heads.group, "version": heads.version, "kind": heads.kind}],
        SCOPE: heads.scope,
        **({MADE_OF: heads.crd} if heads.crd else {}),
        **({UNCHECKED: unchecked} if (unchecked := list(closer.unchecked())) else {}),
    }
    api_version = "/".join(filter(None, (heads.group, heads.version)))
    properties = schema.get("properties", {})
    fixed: Schema = {
        "apiVersion": {"type": "string", "enum": [api_version]},
        "kind": {"type": "string", "enum": [heads.kind]},
        "metadata": _metadata(properties.get("metadata", {})),
    }
    required = sorted({*schema.get("required", ()), *fixed})
    whole = {**said, **schema, "type": "object", "properties": {**properties, **fixed}, "required": required}
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    kind = parsed(kubernetes.file_name(api_version, heads.kind), text.encode())
    return Made(kind, text)


def _metadata(said: Schema) -> Schema:
    """The schema of every object's metadata, and what a definition SAID of names besides."""
    path = kubernetes.schema_path("v1", "ConfigMap", kubernetes.MINORS[-1])
    assert path is not None, "a kind of every version"  # noqa: S101 - narrows the type
    meta: Schema = {**json.loads(path.read_bytes())["properties"]["metadata"], "required": ["name"]}
    names = {key: value for key, value in said.get("properties", {}).items() if key in meta["properties"]}
    return {**meta, "allOf": [{"properties": names}]} if names else meta


class _Closer:
    """Reduces the OpenAPI schema of one custom resource to structure, and closes it where the API server prunes."""

    def __init__(self, prunes: bool) -> None:
        self._prunes = prunes
        self._rules = 0
        self._patterns: list[str] = []
        self._count = 0

    def unchecked(self) -> Iterator[str]:
        """What is in the schema and nobody checks here."""
        if self._rules:
            yield f"{self._rules} rule{'s' if self._rules > 1 else ''} in CEL (x-kubernetes-validations)"
        for place in self._patterns:
            yield f"the pattern of {place}, which only Go reads"

    def closed(self, raw: Any, place: str) -> Schema:
        """RAW, which stands at PLACE of the object, as the API server's structural schema means it."""
        schema = self._reduced(raw, raw, place)
        if not isinstance(raw, Mapping):
            return schema
        self._rules += len(raw[RULES]) if isinstance(raw.get(RULES), list) else 0
        if raw.get(INT_OR_STRING) is True:
            schema["type"] = ["integer", "string"]
            # The form by which older definitions say the same; beside a type it would be said twice.
            schema.pop("anyOf", None)
        if raw.get(LIST_TYPE) == "set":
            schema["uniqueItems"] = True
        if raw.get(LIST_TYPE) == "map" and raw.get(LIST_KEYS):
            schema[LIST_KEYS] = raw[LIST_KEYS]
        if raw.get(EMBEDDED) is True:
            known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
            schema["properties"] = {**known, **schema.get("properties", {})}
            schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind"})
        is_object = schema.get("type") == "object" or "properties" in schema
        if is_object and self._prunes and raw.get(PRESERVE) is not True and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        return schema

    def _reduced(self, raw: Any, structure: Any, place: str) -> Schema:
        """RAW without prose. STRUCTURE is the structural schema of the same value, whose defaults count; where that is
        RAW itself, what is below is structural as well."""
        if isinstance(raw, bool):
            return {} if raw else {"not": {}}
        if not isinstance(raw, Mapping):
            raise SchemaError(f"the schema of {place or 'the object'} is not a mapping")
        self._count += 1
        if self._count > LIMIT:
            raise SchemaError(f"its schema has more than {LIMIT:,} parts")
        out = _words(raw, place)
        if "pattern" in raw:
            self._pattern(raw["pattern"], place, out)
        structural = raw is structure
        for word in _HOLDERS & raw.keys():
            value = raw[word]
            if word == "properties" and not isinstance(value, Mapping):
                raise SchemaError(f"the properties of {place or 'the object'} are not a mapping")
            if word == "properties":
                start = f"{place}." if place else ""
                out[word] = {
                    str(name): self._below(inner, structure, str(name), f"{start}{name}", structural=structural)
                    for name, inner in value.items()
                }
            elif word in ("items", "additionalProperties"):
                below = None if isinstance(value, bool) else self._below
                out[word] = below(value, structure, word, f"{place}[]", structural=structural) if below else value
            elif word == "not":
                out[word] = self._reduced(value, {**_plain(structure)}, place)
            elif isinstance(value, list):
                out[word] = [self._reduced(each, {**_plain(structure)}, place) for each in value]
        if "required" in out:
            out["required"] = _without_defaults(out["required"], structure)
        return out

    def _below(self, raw: Any, structure: Any, name: str, place: str, *, structural: bool) -> Schema:
        """The schema RAW of what is at NAME (or of the items) within STRUCTURE."""
        if structural:
            return self.closed(raw, place)
        inner = _plain(structure)
        below = inner.get(name) if name in ("items", "additionalProperties") else None
        if below is None:
            below = _plain(inner.get("properties")).get(name)
        return self._reduced(raw, {**_plain(below)}, place)

    def _pattern(self, value: Any, place: str, out: Schema) -> None:
        text = either_case(value) if isinstance(value, str) else ""
        if text and is_pattern(text):
            out["pattern"] = text
        else:
            self._patterns.append(place)


def either_case(pattern: str) -> str:
    """PATTERN without Go's flag (?i) at its start: each letter in both cases instead. Others as they stand."""
    start = next((start for start in ("(?i)", "^(?i)") if pattern.startswith(start)), None)
    if start is None:
        return pattern
    out, inside, escaped = start.removesuffix("(?i)"), False, False
    for char in pattern[len(start) :]:
        letter = char.isascii() and char.isalpha() and not escaped
        both = f"{char.lower()}{char.upper()}"
        out += (both if inside else f"[{both}]") if letter else char
        inside = inside if escaped else char == "[" or (inside and char != "]")
        escaped = char == "\\" and not escaped
    return out


def _words(raw: Mapping[str, Any], place: str) -> Schema:
    """What RAW says in words that hold no schema; patterns aside."""
    out: Schema = {}
    for word, value in raw.items():
        if word in _PROSE or word in _HOLDERS or word == "pattern" or str(word).startswith("x-"):
            continue
        if word == "type":
            out[word] = _type(value)
        elif word in _SAME:
            out[word] = value
        elif word == "const":
            out["enum"] = [value]
        elif word in ("exclusiveMinimum", "exclusiveMaximum"):
            _exclusive(word, value, raw, out)
        else:
            raise SchemaError(f"{word} of {place or 'the object'} isn't a word that a CustomResourceDefinition has")
    for bound in ("exclusiveMinimum", "exclusiveMaximum"):
        if bound in out and out[bound] == out.get(_inclusive(bound)):
            del out[_inclusive(bound)]
    return out


def _plain(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _type(value: Any) -> Any:
    """The types VALUE without null: objects hold none."""
    names = [name for name in value if name != "null"] if isinstance(value, list) else value
    return names[0] if isinstance(names, list) and len(names) == 1 else names


def _inclusive(word: str) -> str:
    return word.replace("exclusiveM", "m")


def _exclusive(word: str, value: Any, raw: Mapping[str, Any], out: Schema) -> None:
    """OpenAPI has a boolean beside minimum or maximum, JSON schemas since draft 6 the number itself."""
    if value is True and _inclusive(word) in raw:
        out[word] = raw[_inclusive(word)]
    elif not isinstance(value, bool):
        out[word] = value


def _without_defaults(names: Any, structure: Any) -> Any:
    """The required NAMES that have no default in STRUCTURE."""
    known = _plain(_plain(structure).get("properties"))
    has = {name for name, inner in known.items() if isinstance(inner, Mapping) and "default" in inner}
    return [name for name in names if name not in has] if isinstance(names, list) else names


def _mapping(body: Mapping[str, Any], key: str, whose: str = "") -> Mapping[str, Any]:
    mapping = body.get(key)
    if not isinstance(mapping, Mapping):
        raise SchemaError(f"its {key}{f' {whose}' if whose else ''} is missing, or no mapping")
    return mapping


class _Inliner:
    """Writes out the references of a JSON schema: to places in the same document, and in no circle."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._count = 0

    def inline(self, value: Any, following: tuple[str, ...]) -> Any:
        """VALUE with what its references lead to; FOLLOWING are those that led here."""
        self._count += 1
        if self._count > LIMIT:
            raise SchemaError(f"its references stand for more than {LIMIT:,} parts")
        if isinstance(value, list):
            return [self.inline(each, following) for each in value]
        if not isinstance(value, Mapping):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            if reference in following or len(following) > 100:
                raise SchemaError(f"it refers to itself at {reference[:80]}")
            return self.inline(self._target(reference), (*following, reference))
        skipped = ("definitions", "$defs") if value is self._root else ()
        return {key: self.inline(inner, following) for key, inner in value.items() if key not in skipped}

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise SchemaError(f"it refers to {reference[:80]}, and nothing outside of the file is read")
        target: Any = self._root
        for step in filter(None, reference[1:].split("/")):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or name not in target:
                raise SchemaError(f"it refers to {reference[:80]}, which isn't in it")
            target = target[name]
        return target
