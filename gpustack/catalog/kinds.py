"""Kinds of the user's other software: the schemas in schemas/crds/ of the policy repository.

Solves: a policy brings along a Karpenter NodePool or a Kueue ClusterQueue, and nobody but its CustomResourceDefinition
knows what one looks like. `gpustack schema add` (definitions.py) puts that here: a file per kind and version, with the
name by which kubeconform looks for it. A kind that gpustack has a schema of itself is never taken from here.

A pull request may put anything into that folder, and it is read before anybody has looked at it. So a file may not be
a link, is of bounded size and depth, and in the few words that `gpustack schema add` writes: a schema in them refers to
nothing, fetches nothing, and takes time that is linear in the object (patterns are read by an engine that never
backtracks).
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from gpustack.catalog import kubernetes
from gpustack.model import Finding, InputError, Location
from gpustack.text.regular import read_regular

FOLDER = "schemas/crds"
"""Where the files are, from the policy repository's root."""
ADD = "gpustack schema add"
SCOPE, MADE_OF = kubernetes.ADDED, "x-gpustack-crd"
UNCHECKED = "x-gpustack-unchecked"
"""Words of a file: whether objects have a namespace, the CRD that it's made of, what the API server alone checks."""
LIST_KEYS = "x-kubernetes-list-map-keys"
GVK = "x-kubernetes-group-version-kind"
LARGEST, MOST_FILES, DEEPEST = 2 * 1024 * 1024, 1000, 100
"""Bytes of a file, files of a folder, and levels of a schema. Argo's Workflow, one of the largest, has 1 MB."""
SCOPES = ("Cluster", "Namespaced")

_WORDS = {"$schema", SCOPE, MADE_OF, UNCHECKED, GVK, "type", "required", "enum", "pattern", "uniqueItems", LIST_KEYS}
_NUMBERS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
ONE, SEVERAL = {"items", "additionalProperties", "not"}, {"allOf", "anyOf", "oneOf"}
KEYWORDS = frozenset({*_WORDS, *_NUMBERS, *ONE, *SEVERAL, "properties"})
"""All words of a schema in the folder."""
_TYPES = {"object", "array", "string", "integer", "number", "boolean"}
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]{0,62}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,62}[a-z0-9])?)*")
_VERSION = re.compile(r"v[0-9][a-z0-9]{0,30}")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class SchemaError(ValueError):
    """What is wrong with a schema, as the end of a sentence about it."""


@dataclass(frozen=True)
class OwnKind:
    """A kind of the user's: its SCHEMA is that of a whole object, `crd` the definition it was made of ("": of none)."""

    group: str
    version: str
    kind: str
    namespaced: bool
    crd: str
    schema: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def file(self) -> str:
        return kubernetes.file_name(self.api_version, self.kind)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What an object may have against it that nobody tells before the API server does."""
        listed = self.schema.get(UNCHECKED, ())
        return tuple(str(each) for each in listed) if isinstance(listed, list) else ()

    def list_keys(self, path: Sequence[object]) -> tuple[str, ...] | None:
        """The fields by which the API server knows the items of the list at PATH; None where it doesn't say."""
        schema: Any = self.schema
        for step in path:
            if not isinstance(schema, Mapping):
                return None
            if isinstance(step, str):
                properties = schema.get("properties", {})
                schema = properties[step] if step in properties else schema.get("additionalProperties")
            else:
                schema = schema.get("items")
        keys = schema.get(LIST_KEYS) if isinstance(schema, Mapping) else None
        return tuple(keys) if keys else None


@dataclass(frozen=True)
class Kinds:
    """The files of a folder by name, as bytes; each is read as a schema when somebody asks for its kind. `folder` is
    where they are. Equal `digest`, equal contents."""

    folder: Path = Path()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    digest: str = ""

    def __bool__(self) -> bool:
        return bool(self.files)

    def of(self, api_version: str, kind: str) -> OwnKind | None:
        """The kind, None where no file has it or gpustack has a schema of its own. Raises InputError for a file that
        isn't in the words of `gpustack schema add`."""
        if not self.files or not kubernetes.is_kind(api_version, kind) or kubernetes.having(api_version, kind):
            return None
        name = kubernetes.file_name(api_version, kind)
        return self._read(name) if name in self.files else None

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether objects of the kind have a namespace."""
        own = self.of(api_version, kind)
        return own.namespaced if own else kind not in kubernetes.CLUSTER_SCOPED

    def all(self) -> Iterator[OwnKind]:
        """All kinds, those aside that gpustack has schemas of. Raises InputError as `of` does."""
        for name in sorted(self.files):
            own = self._read(name)
            if not kubernetes.having(own.api_version, own.kind):
                yield own

    def readable(self) -> Iterator[OwnKind]:
        """All kinds that can be read, those included that gpustack has schemas of: for whoever mends the folder."""
        for name in sorted(self.files):
            with contextlib.suppress(InputError):
                yield self._read(name)

    def named(self, kind: str) -> list[str]:
        """The API versions in which some file has KIND."""
        return [each.api_version for each in self.all() if each.kind == kind]

    def _read(self, name: str) -> OwnKind:
        if name not in self._known:
            shown = f"{FOLDER}/{name}"
            try:
                self._known[name] = parsed(name, self.files[name])
            except SchemaError as error:
                raise InputError(unusable(shown, str(error))) from None
        return self._known[name]

    @cached_property
    def _known(self) -> dict[str, OwnKind]:
        return {}


NONE = Kinds()


def kinds_in(context: Any) -> Kinds:
    """The kinds of a validation's CONTEXT."""
    return context["kinds"] if isinstance(context, dict) else NONE


def unusable(shown: str, why: str) -> Finding:
    """The finding for a file of the folder that is not a schema of ours."""
    remedy = f"make it with `{ADD} FILE` from the CustomResourceDefinition, or delete it"
    what = f"{shown} isn't a schema of `{ADD}`"
    return Finding("GPU910", "error", what, location=Location(shown), why=why, remedy=remedy)


def kinds_of(root: Path) -> Kinds:
    """The kinds of the policy repository ROOT. Raises InputError for a folder, or a file in it, that can't be used."""
    folder = root / FOLDER
    if not os.path.lexists(folder):
        return NONE
    for each in (folder.parent, folder):
        if each.is_symlink() or not each.is_dir():
            what = f"{os.path.relpath(each, root)} is not a folder"
            raise InputError.of("GPU910", what, why="the schemas of other software are in it", remedy="make it one")
    names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".json"))
    if len(names) > MOST_FILES:
        why = f"{len(names)} files are in it, and {MOST_FILES} are read at most"
        remedy = "take out those of kinds that no policy brings along"
        raise InputError.of("GPU910", f"{FOLDER} can't be used", why=why, remedy=remedy)
    contents = {name: _bytes(folder / name) for name in names}
    # A checkout of gpustack that holds policies has gpustack's own schemas there: those are counted elsewhere.
    ours = kubernetes.schema_root() / "crds"
    contents = {name: data for name, data in contents.items() if SCOPE.encode() in data or not (ours / name).is_file()}
    if not contents:
        return NONE
    sha = hashlib.sha256()
    for name, data in contents.items():
        sha.update(f"{name}:{len(data)}:".encode("utf-8", "surrogateescape"))
        sha.update(data)
    return _interned(folder, sha.hexdigest(), tuple(contents.items()))


@lru_cache(maxsize=8)
def _interned(folder: Path, digest: str, files: tuple[tuple[str, bytes], ...]) -> Kinds:
    """One object for one content, so that a schema is compiled once in a process."""
    return Kinds(folder, dict(files), digest)


def _bytes(path: Path) -> bytes:
    shown = f"{FOLDER}/{path.name}"
    try:
        data = read_regular(path, follow=False, limit=LARGEST + 1)
    except OSError as error:
        why = "it is not a plain file" if path.is_symlink() else str(error.strerror)
        raise InputError(unusable(shown, why)) from None
    if len(data) > LARGEST:
        raise InputError(unusable(shown, f"it has more than {LARGEST // 1024 // 1024} MiB"))
    return data


def parsed(name: str, data: bytes) -> OwnKind:
    """The kind in a file called NAME that holds DATA. Raises SchemaError."""
    try:
        schema = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it can't be read as JSON: {str(error)[:80]}") from None
    if not isinstance(schema, dict):
        raise SchemaError("it holds no mapping")
    own = _heads(schema)
    if own.file != name:
        raise SchemaError(f"the file of {own.api_version} {own.kind} is called {own.file}")
    check(schema)
    return own


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _heads(schema: Mapping[str, Any]) -> OwnKind:
    heads = schema.get(GVK)
    head = heads[0] if isinstance(heads, list) and len(heads) == 1 else None
    if not isinstance(head, dict) or schema.get(SCOPE) not in SCOPES:
        raise SchemaError(f"it doesn't say {GVK} and {SCOPE}")
    words = [head.get(word) for word in ("group", "version", "kind")]
    for word, pattern in zip(words, (_GROUP, _VERSION, _KIND), strict=True):
        if not isinstance(word, str) or len(word) > 200 or not (pattern.fullmatch(word)):
            raise SchemaError(f"{str(word)[:60]!r} is not a group, version or kind")
    group, version, kind = map(str, words)
    crd = schema.get(MADE_OF, "")
    return OwnKind(group, version, kind, schema[SCOPE] == "Namespaced", crd if isinstance(crd, str) else "", schema)


def check(schema: Any, depth: int = 0) -> None:
    """Raise SchemaError where SCHEMA isn't in the words of KEYWORDS, each with a value of its kind."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise SchemaError("a schema in it is not a mapping")
    if depth > DEEPEST:
        raise SchemaError(f"it is nested more than {DEEPEST} levels deep")
    for word, value in schema.items():
        if word not in KEYWORDS:
            raise SchemaError(f"the word {word[:60]!r} has no meaning there")
        for inner in _inner(word, value):
            check(inner, depth + 1)


def _inner(word: str, value: Any) -> Iterable[Any]:
    """The schemas in the VALUE of WORD."""
    if word in ONE:
        return (value,)
    if word == "properties" and isinstance(value, dict):
        return value.values()
    if word in SEVERAL and isinstance(value, list) and value:
        return value
    if word == "properties" or word in SEVERAL or not _fits(word, value):
        raise SchemaError(f"{word} is {json.dumps(value)[:60]}")
    return ()


def _fits(word: str, value: Any) -> bool:
    """Whether VALUE may stand at WORD, which holds no schema."""
    if word in _NUMBERS:
        count = word.startswith(("min", "max")) and word not in {"minimum", "maximum"}
        if isinstance(value, bool) or not isinstance(value, int if count else (int, float)):
            return False
        return value > 0 if word == "multipleOf" else value >= 0 if count else True
    if word == "type":
        names = value if isinstance(value, list) else [value]
        return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
    if word in {"required", LIST_KEYS}:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if word == "enum":
        return isinstance(value, list) and bool(value)
    if word == "pattern":
        return isinstance(value, str) and is_pattern(value)
    return isinstance(value, bool if word == "uniqueItems" else (str, list))


@lru_cache(maxsize=4096)
def is_pattern(text: str) -> bool:
    """Whether TEXT is a pattern in words that Go's reader and ours have in common: neither of them backtracks."""
    import jsonschema_rs

    if len(text) > 10_000:
        return False
    try:
        jsonschema_rs.Draft7Validator({"pattern": text}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True
