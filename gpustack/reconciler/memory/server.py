"""The objects of an API server in memory.

Objects are plain dicts as the API has them. None is changed in place: a write stores a new one, so what was read stays
as it was.
"""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from ...api.objects import Object
from ...model import merge_patch
from ..core import selectors
from ..shell.cluster import EVERYTHING, Kind, NotFound, Selection

Document = dict[str, Any]
T = TypeVar("T", bound=Object)
Key = tuple[str, str]

_WITHOUT_GENERATION = {"nodes", "leases", "events", "controllerrevisions"}
_FIXED = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
"""What no update changes; `deletionTimestamp` is set by deleting."""
_EQUAL = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s!=]*)$")
_SELECTABLE = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "involvedObject.name")


@dataclass
class Server:
    """The API server. `now` is its clock."""

    now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    version: int = 0
    most_decoded: int = 100_000
    """Objects that are kept decoded."""
    _objects: dict[str, dict[str, dict[str, Document]]] = field(default_factory=dict)
    _by_node: dict[str, dict[Key, None]] = field(default_factory=dict)
    _decoded: dict[int, tuple[Document, Any]] = field(default_factory=dict)
    _selected: dict[tuple[str, str, str, str], Sequence[Document]] = field(default_factory=dict)
    """What was asked for since anything of its kind has changed: most is asked for again and again."""
    _uids: int = 0

    def put(self, kind: Kind[Any], document: Document) -> Document:
        """Create DOCUMENT with its status, or replace the object of its name."""
        metadata = document["metadata"]
        old = self.find(kind, metadata["name"], metadata.get("namespace", ""))
        if old is None:
            return self.add(kind, document)
        made = {**copy.deepcopy(document), "metadata": {**old["metadata"], **metadata}}
        return self.store(kind, old, made)

    def edit(self, kind: Kind[Any], name: str, patch: Mapping[str, Any], namespace: str = "") -> Document:
        """Merge PATCH into an object, its status included."""
        old = self.get(kind, name, namespace)
        return self.store(kind, old, merge_patch(old, patch))

    def remove(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        """Make an object go at once, whatever its grace."""
        self.drop(kind, self.get(kind, name, namespace))

    def get(self, kind: Kind[Any], name: str, namespace: str = "") -> Document:
        """An object as it is stored; not to be changed. Raises `NotFound`."""
        document = self.find(kind, name, namespace)
        if document is None:
            raise NotFound(f'{kind.plural} "{name}" not found', 404, "NotFound")
        return document

    def find(self, kind: Kind[Any], name: str, namespace: str = "") -> Document | None:
        """As `get`, None where there is none."""
        return self._objects.get(kind.plural, {}).get(namespace, {}).get(name)

    def read(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """An object as the program sees it."""
        return self.decode(kind, self.get(kind, name, namespace))

    def all(self, kind: Kind[Any], which: Selection = EVERYTHING) -> Iterator[Document]:
        """The objects of a kind that WHICH selects."""
        key = kind.plural, which.namespace, which.labels, which.fields  # a tuple has its hash sooner than a Selection
        if key not in self._selected:
            self._selected[key] = [each for each in self._candidates(kind, which) if matches(each, which)]
        return iter(self._selected[key])

    def add(self, kind: Kind[Any], document: Mapping[str, Any]) -> Document:
        """Create an object."""
        metadata = dict(document.get("metadata") or {})
        self._uids += 1
        of = int.from_bytes(kind.plural.encode()[:6], "big")  # a number for the kind, the same in every process
        metadata.setdefault("uid", f"{self._uids:08x}-0000-4000-8000-{of:012x}")
        metadata.setdefault("creationTimestamp", stamp(self.now))
        if kind.plural not in _WITHOUT_GENERATION:
            metadata["generation"] = 1
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        return self._keep(kind, None, {**head, **copy.deepcopy(dict(document)), "metadata": metadata})

    def store(self, kind: Kind[Any], old: Document, made: Document) -> Document:
        """Store MADE in place of OLD; nothing happens where they are equal."""
        fixed = {key: old["metadata"][key] for key in _FIXED if key in old["metadata"]}
        metadata = {key: value for key, value in {**made["metadata"], **fixed}.items() if value not in ({}, None)}
        if "generation" in metadata and made.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"]["generation"] + 1
        made = {**made, "metadata": metadata}
        if made == old:
            return old
        return self._keep(kind, old, made)

    def drop(self, kind: Kind[Any], old: Document) -> None:
        """Remove an object."""
        namespace, name = key_of(old)
        del self._objects[kind.plural][namespace][name]
        self._index(kind, old, None)
        self._record(kind, old, None)

    def decode(self, kind: Kind[T], document: Document) -> T:
        """DOCUMENT as the slim model, as the client would decode it. Decoded once: lists of 5,000 stay fast."""
        cached = self._decoded.get(id(document))
        if cached is None or cached[0] is not document:
            if len(self._decoded) > self.most_decoded:
                self._decoded.clear()
            cached = (document, msgspec.convert(document, type=kind.model))
            self._decoded[id(document)] = cached
        return cached[1]

    def _keep(self, kind: Kind[Any], old: Document | None, made: Document) -> Document:
        made = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version + 1)}}
        namespace, name = key_of(made)
        self._objects.setdefault(kind.plural, {}).setdefault(namespace, {})[name] = made
        self._index(kind, old, made)
        self._record(kind, old, made)
        return made

    def _record(self, kind: Kind[Any], old: Document | None, made: Document | None) -> None:
        self.version += 1
        self._selected = {key: found for key, found in self._selected.items() if key[0] != kind.plural}

    def _index(self, kind: Kind[Any], old: Document | None, made: Document | None) -> None:
        if kind.plural != "pods":
            return
        for document, present in ((old, False), (made, True)):
            node = ((document or {}).get("spec") or {}).get("nodeName")
            if document is None or not node:
                continue
            if present:
                self._by_node.setdefault(node, {})[key_of(document)] = None
            else:
                self._by_node[node].pop(key_of(document), None)

    def _candidates(self, kind: Kind[Any], which: Selection) -> Iterable[Document]:
        by_namespace = self._objects.get(kind.plural, {})
        first = which.fields.partition(",")[0]
        if kind.plural == "pods" and first.startswith("spec.nodeName=") and not first.endswith("="):
            node = first.partition("=")[2].lstrip("=")
            return (by_namespace[namespace][name] for namespace, name in self._by_node.get(node, {}))
        if which.namespace:
            return by_namespace.get(which.namespace, {}).values()
        return (document for of in by_namespace.values() for document in of.values())


def matches(document: Document, which: Selection) -> bool:
    """Whether WHICH selects DOCUMENT."""
    metadata = document["metadata"]
    if which.namespace and metadata.get("namespace") != which.namespace:
        return False
    labels = metadata.get("labels") or {}
    if which.labels and not all(test(labels) for test in selectors.parse(which.labels)):
        return False
    return not which.fields or _fields(which.fields, document)


def key_of(document: Mapping[str, Any]) -> Key:
    """Namespace and name."""
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def stamp(moment: datetime) -> str:
    """A time as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(selector: str, document: Mapping[str, Any]) -> bool:
    """Whether DOCUMENT is what a field selector names. Raises ValueError for one that the API server would refuse."""
    return all(_field(document, part) for part in selector.split(",") if part)


def _field(document: Mapping[str, Any], text: str) -> bool:
    match = _EQUAL.match(text.strip())
    if match is None or match["key"] not in _SELECTABLE:
        raise ValueError(f"field label not supported: {text!r}")
    value: Any = document
    for part in match["key"].split("."):
        value = value.get(part) or "" if isinstance(value, Mapping) else ""
    return bool(value == match["value"]) != (match["how"] == "!=")
