"""Is a rendered object one that the cluster's API server would take? The verdict in microseconds, the reason on demand.

The verdict is jsonschema-rs': a compiled validator per kind, built when the kind is first met, so that a stack costs
milliseconds. It explains little, so jsonschema tells what is wrong, but only for an object that was refused: importing
it takes longer than validating a hundred stacks.

A kind without a schema is an error, never a pass: a validator that skips what it doesn't know says "fine" to anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpustack.catalog import kubernetes
from gpustack.catalog.kinds import ADD, FOLDER, NONE, Kinds, OwnKind
from gpustack.model import Body, Finding, dotted
from gpustack.model import Path as Steps

from .refusals import said

if TYPE_CHECKING:
    import jsonschema_rs
    from jsonschema.exceptions import ValidationError

PATTERNS = {
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$": "DNS label",
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$": "label value",
}
"""Patterns that the schemas have for names and labels (tools/kubernetes_words.py), with their cases of the table."""
SHOWN = 12
"""A finding lists the allowed fields up to this number, above it the nearest ones."""


def validate(body: Body, minor: str, kinds: Kinds = NONE) -> list[Finding]:
    """Return what a cluster of Kubernetes MINOR ("1.33") with the user's KINDS would refuse in BODY.

    GPU901: it breaks its schema, one finding per place, a path in BODY. GPU902: this version has no such kind."""
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return [_told(body, "no kind")]
    path = kubernetes.schema_path(api_version, kind, minor)
    own = kinds.of(api_version, kind) if path is None else None
    if path is None and own is None:
        return [_no_schema(body, api_version, kind, minor, kinds)]
    try:
        if (_validator(path) if path else _validator(Path(own.file if own else ""), kinds)).is_valid(body):
            return list(_twins(own, body, body, ())) if own else []
    except ValueError as error:  # a date, bytes or a key that is not a string: what YAML can say and JSON can't
        return [_told(body, "no JSON", error=error)]
    if own:
        return _explain(body, own.schema, own.file, f"{own.api_version} {kind}")
    assert path is not None, "returned above"  # noqa: S101 - narrows the type
    return _explain(body, json.loads(path.read_bytes()), path.name, f"Kubernetes {minor}")


@lru_cache(maxsize=512)
def _validator(path: Path, kinds: Kinds = NONE) -> jsonschema_rs.Draft7Validator:
    """Compile the schema in PATH, or what KINDS have by that name: once, also where it serves several versions."""
    return _compiled(kinds.files[path.name].decode("utf-8") if kinds else path.read_text("utf-8"))


def _compiled(schema: str) -> jsonschema_rs.Draft7Validator:
    import jsonschema_rs

    # The plain engine takes linear time for any input and reads patterns as Go does.
    return jsonschema_rs.Draft7Validator(schema, pattern_options=jsonschema_rs.RegexOptions())


def _twins(own: OwnKind, body: Body, value: Any, path: Steps) -> Iterator[Finding]:
    """What is wrong with lists of BODY, from VALUE at PATH on, whose items the API server knows by keys: two of one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _twins(own, body, inner, (*path, key))
    elif isinstance(value, list):
        keys, seen = own.list_keys(path) if any(isinstance(item, dict) for item in value) else None, set()
        for index, item in enumerate(value):
            yield from _twins(own, body, item, (*path, index))
            if keys and isinstance(item, dict):
                name = json.dumps([item.get(key) for key in keys])
                if name in seen:
                    whose = f"{own.api_version} {own.kind}"
                    yield _told(body, "twice", dotted((*path, index)), whose=whose, keys=" and ".join(keys))
                seen.add(name)


def _no_schema(body: Body, api_version: str, kind: str, minor: str, kinds: Kinds) -> Finding:
    having = kubernetes.having(api_version, kind)
    what = f"{_title(body)}: no schema for {api_version} {kind} in Kubernetes {minor}"
    if having:
        why = f"Kubernetes has this kind from {having[0]} to {having[-1]}"
        remedy = "set spec.cluster.kubernetesVersion to a version that has it, or leave the object out"
        return Finding("GPU902", "error", what, "kind", why=why, remedy=remedy)
    known = [*_known_kinds(minor, kinds)]
    named = _nearest(kind, [each.partition(" ")[2] for each in known], 3)
    near = _nearest(f"{api_version} {kind}", [each for each in known if each.partition(" ")[2] in named])
    why = "what can't be checked is not rendered"
    add = f"run `{ADD} FILE` with the CustomResourceDefinition of {api_version} {kind}"
    others = kinds.named(kind)
    if others:
        why += f"; {FOLDER} has {kind} in {' and '.join(others)}"
    remedy = f"did you mean {near[0]}? Else {add}" if near else add
    if "." not in api_version:  # a group of Kubernetes itself
        remedy = f"did you mean {near[0]}?" if near else "check apiVersion and kind"
    return Finding("GPU902", "error", what, "kind", why=why, remedy=remedy)


def _known_kinds(minor: str, kinds: Kinds = NONE) -> Iterator[str]:
    """Yield "apps/v1 DaemonSet" for each schema of MINOR, and KINDS. Reads them all: for errors only."""
    for folder in kubernetes.schema_folders(minor):
        for path in folder.glob("*.json"):
            properties = json.loads(path.read_bytes())["properties"]
            yield f"{properties['apiVersion']['enum'][0]} {properties['kind']['enum'][0]}"
    yield from (f"{each.api_version} {each.kind}" for each in kinds.all())


def _explain(body: Body, schema: Any, file: str, whose: str) -> list[Finding]:
    """Turn a refusal into findings, one per place in BODY, in order. SCHEMA of FILE is WHOSE ("Kubernetes 1.33")."""
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import extend

    linear: Any = extend(Draft7Validator, {"pattern": _matches})  # type: ignore[no-untyped-call]  # jsonschema has no types
    errors = linear(schema).iter_errors(body)
    best = filter(None, (best_match([error]) for error in errors))
    findings: dict[tuple[str, str], Finding] = {}
    for error in sorted(best, key=lambda e: [f"{s:06}" if isinstance(s, int) else s for s in e.absolute_path]):
        for finding in _describe(error, body, whose):
            findings.setdefault((finding.what, finding.why), finding)
    if not findings:
        return [_told(body, "unexplained", schema=file, whose=whose)]
    return list(findings.values())


def _matches(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Hold VALUE to PATTERN by the engine of the verdict: Python's own may take for ever."""
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not _compiled(json.dumps({"pattern": pattern})).is_valid(value):
        yield ValidationError(f"does not match {pattern}")


def _describe(error: ValidationError, body: Body, whose: str) -> Iterator[Finding]:
    steps: Steps = tuple(error.absolute_path)
    instance: Any = error.instance
    rule: Any = error.validator_value
    if error.validator == "additionalProperties" and isinstance(error.schema, Mapping):
        known = sorted(error.schema.get("properties", {}))
        for name in sorted(set(instance).difference(known)):
            yield _unknown_field(error, body, (*steps, name), known, whose)
    elif error.validator == "required":
        for name in (name for name in rule if name not in instance):
            yield _told(body, "missing", dotted((*steps, name)), whose=whose)
    else:
        case, words = _wrong_value(str(error.validator), rule, instance)
        if body.get("kind") == "Secret" and case == "type":
            words["remedy"] = "put it in quotes, or write a value of the right type"
        yield _told(body, case, dotted(steps), shown=_shown(instance, body), **words)


def _told(body: Body, case: str, at: str = "", **words: object) -> Finding:
    """What the table says is wrong with BODY, AT a place of it."""
    return said("GPU901", case, at=at, severity="error", title=_title(body), place=at, **words)


def _unknown_field(error: ValidationError, body: Body, steps: Steps, known: list[str], whose: str) -> Finding:
    name = str(steps[-1])
    if len(known) > SHOWN:
        why = f"{len(known)} fields are allowed here; the nearest are {', '.join(_nearest(name, known, 3, 0.0))}"
    else:
        why = f"allowed here: {', '.join(known) or 'nothing'}"
    having = _versions_with(error, body, name)
    near = _nearest(name, known)
    if having:
        versions = f"{having[0]} to {having[-1]}" if len(having) > 1 else having[0]
        remedy = f"remove it: only Kubernetes {versions} has the field; or correct spec.cluster.kubernetesVersion"
    elif near:
        remedy = f"did you mean {near[0]}?"
    else:
        remedy = f"remove {dotted(steps)}"
    return _told(body, "no field", dotted(steps), whose=whose, known=why, remedy=remedy)


def _versions_with(error: ValidationError, body: Body, name: str) -> list[str]:
    """Return the Kubernetes versions that have the field NAME in the place of ERROR."""
    having = []
    for minor in kubernetes.MINORS:
        path = kubernetes.schema_path(body["apiVersion"], body["kind"], minor)
        part: Any = json.loads(path.read_bytes()) if path else {}
        for step in list(error.absolute_schema_path)[:-1]:
            if isinstance(part, Mapping):
                part = part.get(step)
            else:
                part = part[step] if isinstance(part, Sequence) and isinstance(step, int) and step < len(part) else None
        if isinstance(part, Mapping) and name in part.get("properties", {}):
            having.append(minor)
    return having


_TYPES = {"object": "a mapping", "array": "a list", "integer": "an integer", "boolean": "true or false"}


def _wrong_value(keyword: str, rule: Any, value: object) -> tuple[str, dict[str, str]]:
    """What is wrong with VALUE by the schema's KEYWORD: RULE, as a case of the table, with the words of its texts."""
    if keyword == "anyOf":  # alternatives that differ in type; a reference is to a type that is an object
        keyword, rule = "type", [part.get("type", "object") for part in rule]
    if keyword == "type":
        names = [rule] if isinstance(rule, str) else list(rule)
        wanted = " or ".join(_TYPES.get(name, f"a {name}") for name in names)
        return "type", {"wanted": wanted, "remedy": _retyped(value, names)}
    if keyword == "enum":
        return "enum", {"allowed": ", ".join(str(word) for word in rule if word != "")}  # "" is absence to the API
    if keyword == "minItems":
        return "empty list", {}
    if keyword == "pattern":
        case = "quantity" if "[KMGTPE]i" in rule else "base64" if rule.startswith("^[A-Za-z0-9+/=") else "pattern"
        return PATTERNS.get(rule, case), {"pattern": rule}
    return "other", {"keyword": keyword, "rule": json.dumps(rule)[:80]}


def _retyped(value: object, names: Sequence[str]) -> str:
    """Say how VALUE would be written as one of the types NAMES, where that is plain."""
    if value is None:
        return "leave the field out"
    if "string" in names and isinstance(value, bool | int | float):
        return f"put it in quotes: {json.dumps(json.dumps(value))}"
    if isinstance(value, str):
        text = value.strip()
        plain = "boolean" in names and text in ("true", "false")
        if plain or (("integer" in names or "number" in names) and text.lstrip("-").isdecimal()):
            return f"remove the quotes: {text}"
    if "array" in names and not isinstance(value, list):
        return "write a list, even of one item"
    return "write a value of that type"


def _shown(value: object, body: Body) -> str:
    """Return VALUE as JSON, shortened. Contents of a Secret are not shown to whoever reads the log."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if body.get("kind") == "Secret":
        return "a string (hidden)" if isinstance(value, str) else "another value (hidden)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _title(body: Body) -> str:
    """Name an object that may lack anything: DaemonSet gpu-operator/nvidia-driver-daemonset."""
    metadata = body.get("metadata")
    names = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, dict) else []
    return f"{body.get('kind') or 'object'} {'/'.join(str(n) for n in names if n) or '(no name)'}"


def _nearest(name: str, known: Sequence[str], count: int = 1, cutoff: float = 0.7) -> list[str]:
    from difflib import get_close_matches

    lower = {other.lower(): other for other in known}
    return [lower[near] for near in get_close_matches(name.lower(), lower, n=count, cutoff=cutoff)]
