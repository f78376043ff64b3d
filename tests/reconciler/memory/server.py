"""What requests do to the objects of the server in memory, its history, and what others than the program do."""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gpustack.model import merge_patch
from gpustack.reconciler.memory import server
from gpustack.reconciler.memory.server import Document, stamp
from gpustack.reconciler.shell.cluster import PODS, ApiError, Conflict, Kind

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-?")
"""What the API server takes as metadata.generateName: a name, or one with a dash behind it."""
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
class Server(server.Server):
    """The API server. `now` is its clock; tests set it or call `tick`."""

    writes: list[Write] = field(default_factory=list)
    history: deque[Event] = field(default_factory=deque)
    history_limit: int = 100_000
    compacted: int = 0
    """Watches from before this version are Gone."""
    watchers: set[Callable[[], None]] = field(default_factory=set)
    on_change: Callable[[Event], None] | None = None
    """Called after every change, by whomever: where a model test checks its invariants."""

    def __post_init__(self) -> None:
        self.most_decoded = self.history_limit

    # --- the harness: what others than the program do -----------------------------------------------------------------

    def tick(self, seconds: float = 1.0) -> datetime:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        return self.now

    def update(self, kind: Kind[Any], name: str, change: Callable[[Document], None], namespace: str = "") -> Document:
        """Change a copy of an object, and store it."""
        old = self.get(kind, name, namespace)
        made = copy.deepcopy(old)
        change(made)
        return self.store(kind, old, made)

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

    # --- what a request does ------------------------------------------------------------------------------------------

    def add(self, kind: Kind[Any], document: Mapping[str, Any]) -> Document:
        """Create an object."""
        metadata = dict(document.get("metadata") or {})
        namespace = str(metadata.get("namespace", ""))
        if kind.namespaced and not namespace:
            raise ApiError(f"{kind.plural}: a namespace is required", 400, "BadRequest")
        number = self._uids + 1
        if "name" not in metadata and metadata.get("generateName"):
            if not _PREFIX.fullmatch(metadata["generateName"]):
                raise ApiError(f"{kind.name} is invalid: metadata.generateName", 422, "Invalid")
            metadata["name"] = f"{metadata['generateName']}{number:05x}"
        if self.find(kind, metadata["name"], namespace) is not None:
            self._uids = number
            raise Conflict(f'{kind.plural} "{metadata["name"]}" already exists', 409, "AlreadyExists")
        return super().add(kind, {**document, "metadata": metadata})

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
        made = merge_patch(old, body)
        if subresource == "status":
            made = {**old, "status": made.get("status")}
        elif kind.plural not in _WITHOUT_STATUS:
            made = {**made, "status": old.get("status")}
        return self.store(kind, old, {key: value for key, value in made.items() if value is not None})

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

    def wake(self) -> None:
        """Tell those who watch."""
        for call in list(self.watchers):
            call()

    # --- within -------------------------------------------------------------------------------------------------------

    def _keep(self, kind: Kind[Any], old: Document | None, made: Document) -> Document:
        metadata, before = made["metadata"], old["metadata"] if old else {}
        if "deletionTimestamp" in metadata and before.get("finalizers") and not metadata.get("finalizers"):
            self.drop(kind, old or made)
            return made
        return super()._keep(kind, old, made)

    def _record(self, kind: Kind[Any], old: Document | None, made: Document | None) -> None:
        super()._record(kind, old, made)
        if made is None and old is not None:
            old = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        event = Event(self.version, kind.plural, old, made)
        self.history.append(event)
        if len(self.history) > self.history_limit:
            self.compacted = self.history.popleft().version
        self.wake()
        if self.on_change is not None:
            self.on_change(event)

    def _over(self, pod: Document) -> bool:
        return datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) <= self.now
