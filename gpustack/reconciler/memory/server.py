"""The objects of an API server in memory, and what a request does to them.

Objects are plain dicts as the API has them. None is changed in place: a write stores a new one, so what was read, what
history holds and what a test keeps stays as it was.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ...api.objects import Object
from ..core import selectors
from ..shell.cluster import EVERYTHING, PODS, ApiError, Conflict, Kind, NotFound, Selection
from . import rules
from .rules import Document

T = TypeVar("T", bound=Object)
Key = tuple[str, str]

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-?")
"""What the API server takes as metadata.generateName: a name, or one with a dash behind it."""
_WITHOUT_GENERATION = {"nodes", "leases", "events", "controllerrevisions"}
_WITHOUT_STATUS = {"leases", "events", "controllerrevisions"}


@dataclass(frozen=True)
class Event:
    """A change in the history of a kind: the object before (None: it was created) and after (None: it was deleted)."""

    version: int
    kind: str
    before: Document | None
    after: Document | None


@dataclass(frozen=True)
class Write:
    """A request of a client that changed something."""

    actor: str
    verb: str
    kind: str
    namespace: str
    name: str
    subresource: str
    body: Mapping[str, Any]
    before: Document | None
    after: Document | None


@dataclass
class Server:
    """The API server. `now` is its clock; tests set it or call `tick`."""

    now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    version: int = 0
    writes: list[Write] = field(default_factory=list)
    history: deque[Event] = field(default_factory=deque)
    history_limit: int = 100_000
    compacted: int = 0
    """Watches from before this version are Gone."""
    watchers: set[Callable[[], None]] = field(default_factory=set)
    on_change: Callable[[Event], None] | None = None
    """Called after every change, by whomever: where a model test checks its invariants."""
    _objects: dict[str, dict[str, dict[str, Document]]] = field(default_factory=dict)
    _by_node: dict[str, dict[Key, None]] = field(default_factory=dict)
    _decoded: dict[int, tuple[Document, Any]] = field(default_factory=dict)
    _selected: dict[tuple[str, str, str, str], Sequence[Document]] = field(default_factory=dict)
    """What was asked for since anything of its kind has changed: most is asked for again and again."""
    _uids: int = 0

    # --- the harness: what others than the program do -----------------------------------------------------------------

    def tick(self, seconds: float = 1.0) -> datetime:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        return self.now

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
        return self.store(kind, old, rules.merge(old, patch))

    def update(self, kind: Kind[Any], name: str, change: Callable[[Document], None], namespace: str = "") -> Document:
        """Change a copy of an object, and store it."""
        old = self.get(kind, name, namespace)
        made = copy.deepcopy(old)
        change(made)
        return self.store(kind, old, made)

    def remove(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        """Make an object go at once, whatever its grace."""
        self.drop(kind, self.get(kind, name, namespace))

    def finish(self, namespace: str, name: str) -> None:
        """What a kubelet does when the containers of a pod that was deleted have ended."""
        pod = self.find(PODS, name, namespace)
        if pod is not None and "deletionTimestamp" in pod["metadata"]:
            self.drop(PODS, pod)

    def finish_all(self) -> int:
        """Finish every pod whose grace is over; says how many."""
        due = [pod for pod in self.all(PODS) if "deletionTimestamp" in pod["metadata"] and self._over(pod)]
        for pod in due:
            self.drop(PODS, pod)
        return len(due)

    def compact(self) -> None:
        """Forget history: whoever watches from an older version lists anew."""
        self.history.clear()
        self.compacted = self.version
        self.wake()

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

    # --- what a request does ------------------------------------------------------------------------------------------

    def add(self, kind: Kind[Any], document: Mapping[str, Any]) -> Document:
        """Create an object."""
        metadata = dict(document.get("metadata") or {})
        namespace = str(metadata.get("namespace", ""))
        if kind.namespaced and not namespace:
            raise ApiError(f"{kind.plural}: a namespace is required", 400, "BadRequest")
        self._uids += 1
        if "name" not in metadata and metadata.get("generateName"):
            if not _PREFIX.fullmatch(metadata["generateName"]):
                raise ApiError(f"{kind.name} is invalid: metadata.generateName", 422, "Invalid")
            metadata["name"] = f"{metadata['generateName']}{self._uids:05x}"
        if self.find(kind, metadata["name"], namespace) is not None:
            raise Conflict(f'{kind.plural} "{metadata["name"]}" already exists', 409, "AlreadyExists")
        metadata.setdefault("uid", f"{self._uids:08x}-0000-4000-8000-{hash_of(kind.plural):012x}")
        metadata.setdefault("creationTimestamp", stamp(self.now))
        if kind.plural not in _WITHOUT_GENERATION:
            metadata["generation"] = 1
        head = {"apiVersion": kind.api_version, "kind": kind.name}
        return self._keep(kind, None, {**head, **copy.deepcopy(dict(document)), "metadata": metadata})

    def patch(self, kind: Kind[Any], old: Document, body: Mapping[str, Any], subresource: str) -> Document:
        """Merge BODY into OLD as a client may: preconditions, and status apart from the rest."""
        wanted = body.get("metadata") or {}
        if wanted.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise Conflict(f"Precondition failed: UID in precondition: {wanted['uid']}", 409, "Conflict")
        if wanted.get("resourceVersion") not in {None, "", old["metadata"]["resourceVersion"]}:
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.plural} "{old["metadata"]["name"]}": the object has been '
                "modified; please apply your changes to the latest version and try again",
                409,
                "Conflict",
            )
        made = rules.merge(old, body)
        if subresource == "status":
            made = {**old, "status": made.get("status")}
        elif kind.plural not in _WITHOUT_STATUS:
            made = {**made, "status": old.get("status")}
        return self.store(kind, old, {key: value for key, value in made.items() if value is not None})

    def store(self, kind: Kind[Any], old: Document, made: Document) -> Document:
        """Store MADE in place of OLD; nothing happens where they are equal."""
        fixed = {key: old["metadata"][key] for key in _FIXED if key in old["metadata"]}
        metadata = {key: value for key, value in {**made["metadata"], **fixed}.items() if value not in ({}, None)}
        if "generation" in metadata and made.get("spec") != old.get("spec"):
            metadata["generation"] = old["metadata"]["generation"] + 1
        made = {**made, "metadata": metadata}
        if made == old:
            return old
        if "deletionTimestamp" in metadata and not metadata.get("finalizers") and old["metadata"].get("finalizers"):
            self.drop(kind, old)
            return made
        return self._keep(kind, old, made)

    def delete(self, kind: Kind[Any], old: Document, uid: str = "") -> None:
        """Delete an object as a client does: a pod on a node goes when its kubelet says so."""
        metadata = old["metadata"]
        if uid and uid != metadata["uid"]:
            raise Conflict(
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}",
                409,
                "Conflict",
            )
        spec = old.get("spec") or {}
        grace = spec.get("terminationGracePeriodSeconds", 30) if kind.plural == "pods" and spec.get("nodeName") else 0
        if (old.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            grace = 0
        if "deletionTimestamp" in metadata:
            return
        if not grace and not metadata.get("finalizers"):
            self.drop(kind, old)
            return
        ends = {"deletionTimestamp": stamp(self.now + timedelta(seconds=grace)), "deletionGracePeriodSeconds": grace}
        self._keep(kind, old, {**old, "metadata": {**metadata, **ends}})

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
            if len(self._decoded) > self.history_limit:
                self._decoded.clear()
            cached = (document, msgspec.convert(document, type=kind.model))
            self._decoded[id(document)] = cached
        return cached[1]

    def wake(self) -> None:
        """Tell those who watch."""
        for call in list(self.watchers):
            call()

    # --- within -------------------------------------------------------------------------------------------------------

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
        if made is None and old is not None:
            old = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        event = Event(self.version, kind.plural, old, made)
        self.history.append(event)
        if len(self.history) > self.history_limit:
            self.compacted = self.history.popleft().version
        self.wake()
        if self.on_change is not None:
            self.on_change(event)

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

    def _over(self, pod: Document) -> bool:
        return datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) <= self.now


_FIXED = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
"""What no update changes; `deletionTimestamp` is set by deleting."""


def matches(document: Document, which: Selection) -> bool:
    """Whether WHICH selects DOCUMENT."""
    metadata = document["metadata"]
    if which.namespace and metadata.get("namespace") != which.namespace:
        return False
    labels = metadata.get("labels") or {}
    if which.labels and not all(test(labels) for test in selectors.parse(which.labels)):
        return False
    return not which.fields or rules.fields(which.fields, document)


def key_of(document: Mapping[str, Any]) -> Key:
    """Namespace and name."""
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


def stamp(moment: datetime) -> str:
    """A time as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def hash_of(text: str) -> int:
    """A number for a word, the same in every process."""
    return int.from_bytes(text.encode()[:6], "big")
