"""Looks at every write to the server, and raises `ViolationError` where one breaks an invariant."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from gpustack.api import keys
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.cluster import CONFIG_MAPS, ApiError, TooMany, Unreachable
from tests.reconciler.memory import FakeCluster, Request
from tests.reconciler.memory.server import Event
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.world import World

from . import moment as m
from .invariants import NODE_CHECKS
from .moment import Moment
from .podchecks import POD_CHECKS

TWICE = 2
"""How often a pass may ask the same: a fence and the write behind it, a list and one after a conflict."""
SOONEST = 2.5
"""Seconds after which an eviction that was refused may be asked for again: half of the first back-off."""


class ViolationError(AssertionError):
    """An invariant does not hold."""


class Killed(BaseException):
    """The process was killed: nothing in the program may catch it."""


@dataclass
class Eye:
    """What WATCHER sees of the requests of one process of ACTOR, which makes none any more once it was killed."""

    watcher: Watcher
    actor: str
    dead: bool = False

    async def __call__(self, request: Request, when: Literal["before", "after"]) -> None:
        if self.dead:
            raise Killed
        if when == "before":
            await self.watcher.before(self.actor, request)
            return
        self.watcher.made(self.actor, request)
        if self.watcher.dead[self.actor]:
            self.dead = True
            raise Killed


@dataclass
class Watcher:
    """Watches WORLD. `kill` counts down: after so many writes the writer is killed."""

    world: World
    kill: dict[str, int] = field(default_factory=dict)
    seen: dict[str, Snapshot] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    owners: dict[str, str] = field(default_factory=dict)
    gone: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    empty: dict[str, int] = field(default_factory=dict)
    """By node: how many lists in a row showed no pod that uses a GPU, to whoever led."""
    changes: int = 0
    """Of nodes and pods, by anybody."""
    asked: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    """How often a request was made in this pass, by what it is about."""
    evictions: dict[tuple[str, str], tuple[datetime, float]] = field(default_factory=dict)
    """By writer and pod: when its eviction was asked for."""
    denied: dict[str, ApiError] = field(default_factory=dict)
    """Nodes that the API server lets the program not change, and what it says."""
    unlisted: dict[str, ApiError] = field(default_factory=dict)
    """Nodes whose pods it does not list, and what it says."""
    spared: dict[tuple[str, str], ApiError] = field(default_factory=dict)
    """Pods that it lets the program not evict (`create`) or `delete`, as verb and name, and what it says."""
    _request: tuple[str, Request] | None = None
    dead: dict[str, bool] = field(default_factory=dict)
    """Whether the present process of an actor was killed."""
    _gates: dict[str, tuple[int, asyncio.Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.server.on_change = self.changed

    def client(self, actor: str) -> FakeCluster:
        """A client whose writes are looked at, and which can be killed."""
        cluster, self.dead[actor] = FakeCluster(self.world.server, actor=actor), False
        self.evictions = {key: at for key, at in self.evictions.items() if key[0] != actor}
        cluster.fault = Eye(self, actor)
        return cluster

    async def before(self, actor: str, request: Request) -> None:
        """ACTOR is about to make REQUEST."""
        if _counts(request) and actor in self._gates:
            left, gate = self._gates[actor]
            self._gates[actor] = left - 1, gate
            if left == 0:
                await gate.wait()
        self._request = actor, request
        self._again(actor, request)
        self._refuse(request)

    def made(self, actor: str, request: Request) -> None:
        """ACTOR has made REQUEST."""
        self._request = None
        if not _counts(request):
            return
        self.writes[actor] += 1
        if actor in self.kill:
            self.kill[actor] -= 1
            if self.kill[actor] < 0:
                del self.kill[actor]
                self.dead[actor] = True

    def _refuse(self, request: Request) -> None:
        """Answer with what stands against it."""
        node = request.which.fields.removeprefix("spec.nodeName=")
        error = self.denied.get(request.name) if (request.verb, request.kind) == ("patch", "nodes") else None
        if request.kind == "pods":
            error = error or self.unlisted.get(node) or self.spared.get((request.verb, request.name))
        if error:
            actor = self._request[0] if self._request else ""
            if isinstance(error, Unreachable) or (isinstance(error, TooMany) and not error.causes):
                self.evictions.pop((actor, request.name), None)  # the loop waits before the next pass
            self._request = None
            raise error

    def killed(self, actor: str) -> bool:
        """Whether the present process of ACTOR was killed."""
        return self.dead[actor]

    def stall(self, actor: str, writes: int) -> asyncio.Event:
        """Stop ACTOR before it has made so many more writes; the gate lets it go on."""
        gate = asyncio.Event()
        self._gates[actor] = writes, gate
        return gate

    def release(self, actor: str, gate: asyncio.Event) -> None:
        """Let ACTOR go on."""
        del self._gates[actor]
        gate.set()

    def saw(self, actor: str, known: Snapshot) -> None:
        """What a pass of ACTOR decides on."""
        before = self.seen.get(actor)
        self.seen[actor] = known
        if before is not None and before.pods is known.pods:
            return
        for node in self.world.machines:
            if (listed := known.pods.get(node)) is not None:  # a list that nobody answered says nothing
                used = any(pod.labels.get("uses-gpu") == "true" for pod in listed)
                self.empty[node] = 0 if used else self.empty.get(node, 0) + 1

    def quiet(self) -> None:
        """The pass has ended, no request is under way: what comes now is by others."""
        self._request = None
        self.asked.clear()

    def _again(self, actor: str, request: Request) -> None:
        """I26: no request is made again and again, neither within a pass nor, where it was refused, in the next."""
        if request.verb == "watch" or request.kind in {"leases", "events"}:
            return  # that is how the Lease is held; each Event is another object
        about = (request.verb, request.kind, request.namespace, request.name, request.subresource, request.which)
        self.asked[about] += not request.dry_run
        if self.asked[about] > TWICE:
            raise ViolationError(f"i26_requests: {self.asked[about]} times in a pass: {about}")
        if request.subresource != "eviction" or request.dry_run:
            return
        pod, now = (actor, request.name), (self.world.server.now, self.world.elapsed)
        before = self.evictions.get(pod)
        self.evictions[pod] = now
        if before and now[1] - before[1] < SOONEST and now[0] - before[0] < timedelta(seconds=SOONEST):
            raise ViolationError(
                f"i26_requests: {request.name} is to be evicted again {now[1] - before[1]:.0f} s later"
            )

    def changed(self, event: Event) -> None:
        """A change of any object, by anybody."""
        actor, request = self._request or ("", None)
        known = self.seen.get(actor)
        name = str((event.after or event.before or {})["metadata"]["name"])
        now = Moment(
            self.world,
            event,
            request,
            known,
            owner=self.owners.get(name, ""),
            empty_lists=self.empty.get(name, 0),
            gone_since=self.gone.get(name),
        )
        if now.ours and event.kind in {"nodes", "pods"}:
            for check in NODE_CHECKS if event.kind == "nodes" else POD_CHECKS:
                for text in check(now):
                    raise ViolationError(f"{check.__name__}: {name}: {text}")
        if self.world.uncommanded and now.world.server.find(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE):
            raise ViolationError(f"i27_commanded: {self.world.uncommanded}")
        self.changes += event.kind in {"nodes", "pods"}
        if event.kind == "nodes":
            self._follow(now)
        elif event.kind == "pods" and now.ours:
            self._once(now)

    def _once(self, now: Moment) -> None:
        """I11: nothing is done twice to the same pod."""
        uid = now.before["metadata"]["uid"]
        self.removed[uid] += 1
        if self.removed[uid] > 1:
            raise ViolationError(f"i11_once: {now.name} was removed twice")

    def _follow(self, now: Moment) -> None:
        """Remember who cordoned, and since when NFD has seen no GPU."""
        name = now.name
        if not now.after:
            self.owners.pop(name, None)
            self.gone.pop(name, None)
            return
        commanded = m.labels(now.before).get(keys.MIG_CONFIG) != m.labels(now.after).get(keys.MIG_CONFIG)
        if commanded and (machine := self.world.machines.get(name)):
            machine.cut = None
        was, is_ = m.cordoned(now.before), m.cordoned(now.after)
        if is_ and not was:
            self.owners[name] = "us" if now.ours or m.CORDONED in m.annotations_of(now.after) else "others"
        elif not is_:
            self.owners.pop(name, None)
        elif (
            m.CORDONED in m.annotations_of(now.before)
            and m.CORDONED not in m.annotations_of(now.after)
            and not now.ours
        ):
            self.owners[name] = "others"  # who takes our mark away wants the node to stay cordoned
        elif (
            now.ours and m.annotations_of(now.after).get(m.CORDONED) and self.owners.get(name) in {"others", "operator"}
        ):
            self.owners[name] = "us"
        if m.labels(now.after).get(m.PCI) == "true":
            self.gone.pop(name, None)
        else:
            self.gone.setdefault(name, (self.world.server.now, self.world.elapsed))


def _counts(request: Request) -> bool:
    """Whether a process may be killed by the REQUEST, or held up."""
    return request.writes and request.kind in {"nodes", "pods", "nodepolicies"}
