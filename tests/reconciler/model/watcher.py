"""Looks at every write to the server, and raises `Violation` where one breaks an invariant."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from gpustack.reconciler.snapshot import Snapshot
from gpustack.reconciler.testing import FakeCluster, Request
from gpustack.reconciler.testing.server import Event
from gpustack.reconciler.testing.world import World

from . import moment as m
from .invariants import NODE_CHECKS
from .moment import Moment
from .podchecks import POD_CHECKS


class Violation(AssertionError):
    """An invariant does not hold."""


class Killed(BaseException):
    """The process was killed: nothing in the program may catch it."""


@dataclass
class Watcher:
    """Watches WORLD. `kill` counts down: after so many writes the writer is killed."""

    world: World
    kill: dict[str, int] = field(default_factory=dict)
    seen: dict[str, Snapshot] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    owners: dict[str, str] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    _request: tuple[str, Request] | None = None

    def __post_init__(self) -> None:
        self.world.server.on_change = self.changed

    def client(self, actor: str) -> FakeCluster:
        """A client whose writes are looked at, and which can be killed."""
        cluster = FakeCluster(self.world.server, actor=actor)

        def fault(request: Request, when: Literal["before", "after"]) -> None:
            self._request = (actor, request) if when == "before" else None
            if when == "before" or not request.writes:
                return
            self.writes[actor] += 1
            if actor in self.kill:
                self.kill[actor] -= 1
                if self.kill[actor] < 0:
                    del self.kill[actor]
                    raise Killed

        cluster.fault = fault
        return cluster

    def quiet(self) -> None:
        """No request is under way: what comes now is by others."""
        self._request = None

    def changed(self, event: Event) -> None:
        """A change of any object, by anybody."""
        actor, request = self._request or ("", None)
        known = self.seen.get(actor)
        name = str((event.after or event.before or {})["metadata"]["name"])
        now = Moment(self.world, event, request, known, self.owners.get(name, ""), self.gone.get(name))
        if now.ours and event.kind in {"nodes", "pods"}:
            for check in NODE_CHECKS if event.kind == "nodes" else POD_CHECKS:
                for text in check(now):
                    raise Violation(f"{check.__name__}: {name}: {text}")
        if event.kind == "nodes":
            self._follow(now)
        elif event.kind == "pods" and now.ours:
            self._once(now)

    def _once(self, now: Moment) -> None:
        """I11: nothing is done twice to the same pod."""
        uid = now.before["metadata"]["uid"]
        self.removed[uid] += 1
        if self.removed[uid] > 1:
            raise Violation(f"i11_once: {now.name} was removed twice")

    def _follow(self, now: Moment) -> None:
        """Remember who cordoned, and since when NFD has seen no GPU."""
        name = now.name
        if not now.after:
            self.owners.pop(name, None)
            self.gone.pop(name, None)
            return
        was, is_ = m.cordoned(now.before), m.cordoned(now.after)
        if is_ and not was:
            self.owners[name] = "us" if now.ours or m.CORDONED in m.annotations(now.after) else "others"
        elif not is_:
            self.owners.pop(name, None)
        elif m.CORDONED in m.annotations(now.before) and m.CORDONED not in m.annotations(now.after) and not now.ours:
            self.owners[name] = "others"  # who takes our mark away wants the node to stay cordoned
        elif now.ours and m.annotations(now.after).get(m.CORDONED) and self.owners.get(name) in {"others", "operator"}:
            self.owners[name] = "us"
        if m.labels(now.after).get(m.PCI) == "true":
            self.gone.pop(name, None)
        else:
            self.gone.setdefault(name, self.world.elapsed)
