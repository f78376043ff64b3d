"""One list-and-watch loop, for every kind: a store that follows the cluster.

Solves: watches end, are answered twice, late or not at all, and grow too old. The store is only ever a hint: whatever
is written carries the version that it was decided on, so a store that lags costs a conflict and nothing else.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from ...api.objects import Object
from . import wire
from .clock import Backoff, Clock
from .cluster import Answer, ApiError, Change, Cluster, Forbidden, Gone, Kind, NotFound, Selection, TooMany, Unreachable
from .log import Log

T = TypeVar("T", bound=Object)
Key = tuple[str, str]
Sleep = Callable[[float], Awaitable[None]]


@dataclass
class Watch(Generic[T]):
    """The objects of a kind that WHICH selects. `changed` is called when anything that the slim model has is new."""

    cluster: Cluster
    kind: Kind[T]
    which: Selection
    clock: Clock
    log: Log
    changed: Callable[[], None] = lambda: None
    sleep: Sleep = asyncio.sleep
    relist: float = 1800.0
    """After so many seconds everything is listed again, in case that something was never told."""
    trust: float = 10.0
    """For so many seconds what we wrote ourselves stands against older news."""
    again: float = 300.0
    """After so many seconds the same trouble is told again."""
    synced: bool = False
    """Whether it has been listed at all."""
    items: dict[Key, T] = field(default_factory=dict)
    _version: str = ""
    _epoch: int = 0
    _listed: float = 0.0
    _told: tuple[str, float] = "", 0.0
    _ours: dict[Key, tuple[str, float]] = field(default_factory=dict)

    def all(self) -> list[T]:
        """The objects, by name."""
        return [self.items[key] for key in sorted(self.items)]

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name."""
        return self.items.get((namespace, name))

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        backoff = Backoff(0.5, 60.0)
        while True:
            pause = 0.0
            try:
                if not self._version:
                    await self.refresh()
                began = self.clock.monotonic()
                told = await self._follow(backoff)
                if told or self.clock.monotonic() - began > 1.0:
                    backoff.reset()
                else:
                    pause = backoff.next()  # a server that ends watches at once is not asked at once
            except ApiError as error:
                if isinstance(error, Gone) or _unreadable(error):
                    self._version = ""
                pause = backoff.next(error.retry_after if isinstance(error, TooMany) else 0.0)
                self._tell(error, pause)
            if self.clock.monotonic() - self._listed > self.relist:
                self._version = ""
            if pause:
                await self.sleep(pause)

    def _tell(self, error: ApiError, pause: float) -> None:
        """Say what went wrong: watches end all the time, but without a list nothing is done at all."""
        text = str(error)
        if isinstance(error, NotFound) and not self._version:
            text = f"{text}: the API server doesn't know the kind; is its CustomResourceDefinition there?"
        now, (told, at) = self.clock.monotonic(), self._told
        ended = bool(self._version) or isinstance(error, Gone)
        if _unreadable(error):
            text = f"{text}; it is listed anew"
        loud = isinstance(error, Forbidden) or not ended
        if loud and (text != told or now - at >= self.again):
            self._told = text, now
            say = self.log.error if isinstance(error, Forbidden) else self.log.warning
        else:
            say = self.log.debug
        what = "watch ended" if ended else "it can't be listed, and nothing is done without"
        say(what, kind=self.kind.plural, error=text, status=error.status, pause=round(pause, 1))

    async def refresh(self) -> None:
        """List everything, as of now. A watch that is under way begins anew from there."""
        listing = await self.cluster.list(self.kind, self.which)
        self.clock.observe(listing.date)
        listed = {_key(each): each for each in listing.items}
        news = not self.synced or listed.keys() != self.items.keys()
        news = news or any(_news(self.items[key], each) for key, each in listed.items())
        self.items, self._version, self.synced = listed, listing.resource_version, True
        self._listed = self.clock.monotonic()
        self._epoch += 1
        self._ours.clear()
        if news:
            self.changed()

    async def reread(self, name: str) -> None:
        """Read one object: what we believed of it was wrong."""
        namespace = self.which.namespace
        which = Selection(namespace, self.which.labels, f"metadata.name={name}")
        with contextlib.suppress(ApiError):
            listing = await self.cluster.list(self.kind, which)
            self._ours.pop((namespace, name), None)
            for each in listing.items:
                self._ours[_key(each)] = (each.metadata.resourceVersion, self.clock.monotonic() + self.trust)
                self._store(each)
            if not listing.items and self.items.pop((namespace, name), None):
                self.changed()

    def learn(self, answer: Answer) -> None:
        """What a write of ours made of an object, before the watch tells.

        Another's write may have been told of meanwhile, since our own answer takes as long as any: the newer one stays.
        """
        with contextlib.suppress(msgspec.MsgspecError):
            made = msgspec.convert(wire.present(answer.body), type=self.kind.model)
            old = self.items.get(_key(made))
            version = made.metadata.resourceVersion
            if old is not None and old.uid == made.uid and not newer(version, old.metadata.resourceVersion):
                return
            self._ours[_key(made)] = (version, self.clock.monotonic() + self.trust)
            self._store(made)

    async def _follow(self, backoff: Backoff) -> bool:
        """Watch until that ends. Whether anything was told, or there is a newer list to watch from.

        A line is a sign that all is well, whatever the watch ends in after it: BACKOFF begins anew."""
        epoch, told = self._epoch, False
        async with aclosing(self.cluster.watch(self.kind, self.which, self._version)) as changes:
            async for change in changes:
                if epoch != self._epoch:
                    return True
                told = True
                backoff.reset()
                self._version = change.object.metadata.resourceVersion or self._version
                if change.type != "BOOKMARK":
                    self._apply(change)
        return told or epoch != self._epoch

    def _apply(self, change: Change[T]) -> None:
        key, version = _key(change.object), change.object.metadata.resourceVersion
        ours, until = self._ours.get(key, ("", 0.0))
        if change.type != "DELETED" and ours and until > self.clock.monotonic() and newer(ours, version):
            return  # older than what we wrote
        self._ours.pop(key, None)
        if change.type != "DELETED":
            self._store(change.object)
            return
        old = self.items.get(key)
        if old is not None and old.uid == change.object.uid:
            del self.items[key]
            self.changed()

    def _store(self, made: T) -> None:
        old = self.items.get(_key(made))
        self.items[_key(made)] = made
        if old is None or _news(old, made):
            self.changed()


def newer(version: str, other: str) -> bool:
    """Whether VERSION comes after OTHER. Those of one kind are numbers that grow, which the API has promised since
    Kubernetes 1.35 and has kept before; where a server's are something else, a different one is newer."""
    if version.isdecimal() and other.isdecimal():
        return int(version) > int(other)
    return version != other


def _unreadable(error: ApiError) -> bool:
    """Whether an answer came and made no sense: the same watch would come to the same line again, so a list is read,
    and if that can't be read either, everybody hears of it."""
    return not error.status and not isinstance(error, Unreachable)


def _key(of: Object) -> Key:
    return of.metadata.namespace, of.metadata.name


def _news(old: Any, new: Any) -> bool:
    """Whether anything but the version differs: a kubelet's heartbeat is no reason for a pass."""
    version = new.metadata.resourceVersion
    if version == old.metadata.resourceVersion:
        return False
    new.metadata.resourceVersion = old.metadata.resourceVersion
    try:
        return bool(new != old)
    finally:
        new.metadata.resourceVersion = version
