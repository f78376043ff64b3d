"""A client of the server in memory: `cluster.Cluster`, with faults.

Every request calls `fault` before it takes effect and after. What that raises is what the caller gets: raised before,
nothing happened; raised after, it did and nobody was told. `fault` may be a coroutine function, for requests that hang.
Of a watch, "after" is called whenever something happened: what it raises there is a connection that broke.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeVar

from gpustack.api.objects import Metadata, Object
from gpustack.reconciler.memory.eviction import Stored
from gpustack.reconciler.memory.server import Document, matches
from gpustack.reconciler.shell.cluster import (
    EVERYTHING,
    PODS,
    Answer,
    ApiError,
    Body,
    Change,
    Conflict,
    Forbidden,
    Gone,
    Kind,
    Listing,
    Selection,
)

from .eviction import evict
from .server import Event, Server, Write

T = TypeVar("T", bound=Object)
R = TypeVar("R")
Verb = Literal["list", "watch", "patch", "create", "delete"]


@dataclass(frozen=True)
class Request:
    """A request that is about to happen, or just did. `number` counts the requests of this client from 1."""

    number: int
    verb: Verb
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    which: Selection = EVERYTHING
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.verb in {"patch", "create", "delete"} and not self.dry_run and self.kind != _REVIEWS


Fault = Callable[[Request, Literal["before", "after"]], "Awaitable[None] | None"]
Tamper = Callable[[Kind[Any], Sequence[Change[Any]]], Sequence[Change[Any]]]

_REVIEWS = "selfsubjectaccessreviews"


@dataclass
class FakeCluster:
    """One client of SERVER, called ACTOR in the log of writes."""

    server: Server = field(default_factory=Server)
    actor: str = ""
    fault: Fault | None = None
    tamper: Tamper | None = None
    """Drops, repeats or reorders what a watch says; gets each batch of changes."""
    bookmarks: bool = True
    denied: set[tuple[str, str]] = field(default_factory=set)
    """(verb, plural) that RBAC refuses, as RBAC names them: ("patch", "nodes/status"), ("create", "pods/eviction")."""
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Requests so far by (verb, plural with its subresource)."""
    _ended: tuple[int, bool] = (0, False)

    @property
    def count(self) -> int:
        """All requests so far."""
        return sum(self.requests.values())

    def end_watches(self, *, gone: bool = False) -> None:
        """End the open watches: as at the server's timeout, or with an ERROR event that says 410."""
        self._ended = (self._ended[0] + 1, gone)
        self.server.wake()

    async def list(self, kind: Kind[T], which: Selection = EVERYTHING) -> Listing[T]:
        """All objects that WHICH selects."""
        request = await self._begin("list", kind, which.namespace, which=which)
        answer = await Stored(self.server).list(kind, which)
        await self._call(request, "after")
        return answer

    async def watch(self, kind: Kind[T], which: Selection, resource_version: str) -> AsyncGenerator[Change[T], None]:
        """What happens after RESOURCE_VERSION, until `end_watches`."""
        request = await self._begin("watch", kind, which.namespace, which=which)
        position, ended, woken = int(resource_version or self.server.version), self._ended, asyncio.Event()
        self.server.watchers.add(woken.set)
        try:
            while True:
                woken.clear()
                if position < self.server.compacted:
                    raise Gone(f"too old resource version: {position} ({self.server.compacted})", 410, "Expired")
                changes = self._since(kind, which, position)
                position = self.server.version
                for change in self.tamper(kind, changes) if self.tamper else changes:
                    yield change
                if self._ended != ended:
                    if self._ended[1]:
                        raise Gone(f"too old resource version: {position}", 410, "Expired")
                    return
                if changes and self.bookmarks:
                    yield Change("BOOKMARK", kind.model(metadata=Metadata(resourceVersion=str(position))))
                if position == self.server.version:
                    await woken.wait()
                    await self._call(request, "after")
        finally:
            self.server.watchers.discard(woken.set)

    async def patch(
        self, kind: Kind[T], name: str, body: Body, *, namespace: str = "", subresource: str = ""
    ) -> Answer:
        """Merge BODY into an object."""
        request = await self._begin("patch", kind, namespace, name, subresource=subresource, body=body)
        old = self.server.get(kind, name, namespace)
        made = self.server.patch(kind, old, body, subresource)
        self._log(request, old, made)
        await self._call(request, "after")
        return self._answer(made)

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        *,
        namespace: str = "",
        of: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Create an object, or post BODY to the SUBRESOURCE of the object OF."""
        request = await self._begin("create", kind, namespace, of, subresource=subresource, body=body, dry_run=dry_run)
        if kind.plural == _REVIEWS:
            made = self._review(body)
        elif subresource == "eviction" and kind is PODS:
            pod = self.server.get(PODS, of, namespace)
            evict(self.server, pod, body, dry_run=dry_run)
            made = {"metadata": {}}
            self._log(request, pod, self.server.find(PODS, of, namespace))
        elif subresource:
            raise ApiError(f"the server does not know {kind.plural}/{subresource}", 404, "NotFound")
        else:
            space = {"namespace": namespace} if namespace else {}
            made = self.server.add(kind, {**body, "metadata": {**(body.get("metadata") or {}), **space}})
            self._log(request, None, made)
        await self._call(request, "after")
        return self._answer(made)

    async def delete(self, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "", version: str = "") -> None:
        """Delete the object that has UID, in that version."""
        request = await self._begin("delete", kind, namespace, name, body={"uid": uid} if uid else {})
        old = self.server.get(kind, name, namespace)
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict("Precondition failed: ResourceVersion in precondition", 409, "Conflict")
        self.server.delete(kind, old, uid)
        self._log(request, old, self.server.find(kind, name, namespace))
        await self._call(request, "after")

    # --- within -------------------------------------------------------------------------------------------------------

    async def _begin(
        self,
        verb: Verb,
        kind: Kind[Any],
        namespace: str,
        name: str = "",
        *,
        subresource: str = "",
        body: Body | None = None,
        which: Selection = EVERYTHING,
        dry_run: bool = False,
    ) -> Request:
        of = f"{kind.plural}/{subresource}" if subresource else kind.plural
        self.requests[verb, of] += 1
        request = Request(self.count, verb, kind.plural, namespace, name, subresource, body or {}, which, dry_run)
        await self._call(request, "before")
        if (verb, of) in self.denied:
            raise Forbidden(f'{of} is forbidden: {self.actor or "it"} cannot {verb} resource "{of}"', 403, "Forbidden")
        return request

    async def _call(self, request: Request, when: Literal["before", "after"]) -> None:
        if self.fault is not None:
            waits = self.fault(request, when)
            if inspect.isawaitable(waits):
                await waits

    def _since(self, kind: Kind[T], which: Selection, position: int) -> Sequence[Change[T]]:
        """The changes after POSITION, as seen through a selector: what leaves the selection is deleted."""
        changes = []
        for event in reversed(self.server.history):
            if event.version <= position:
                break
            if event.kind == kind.plural and (change := self._change(kind, which, event)) is not None:
                changes.append(change)
        return changes[::-1]

    def _change(self, kind: Kind[T], which: Selection, event: Event) -> Change[T] | None:
        before = event.before if event.before is not None and matches(event.before, which) else None
        after = event.after if event.after is not None and matches(event.after, which) else None
        if after is not None:
            return Change("ADDED" if before is None else "MODIFIED", self.server.decode(kind, after))
        if before is None:
            return None
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(event.version)}}
        return Change("DELETED", self.server.decode(kind, last))

    def _review(self, body: Body) -> Document:
        asked = body["spec"]["resourceAttributes"]
        of = f"{asked['resource']}/{asked['subresource']}" if asked.get("subresource") else asked["resource"]
        return {**body, "status": {"allowed": (asked["verb"], of) not in self.denied}}

    def _log(self, request: Request, before: Document | None, after: Document | None) -> None:
        if request.writes and before is not after:
            name = request.name or (after or {"metadata": {}})["metadata"].get("name", "")
            where = (request.namespace, name, request.subresource)
            self.server.writes.append(
                Write(self.actor, request.verb, request.kind, *where, request.body, before, after)
            )

    def _answer(self, made: Document) -> Answer:
        metadata = made.get("metadata") or {}
        return Answer(metadata.get("resourceVersion", ""), metadata.get("uid", ""), self.server.now, made)


def drive(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end, on one event loop for all calls: a loop for each would take most of a test's time.

    Within a running loop, the coroutine may wait for nothing but a fake.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _loop().run_until_complete(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("the coroutine waits for something that only an event loop gives it")


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    made = asyncio.new_event_loop()
    atexit.register(made.close)
    return made
