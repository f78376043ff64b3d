"""All that can happen in a small cluster, breadth first: what random histories may miss.

Solves: a history that breaks something must be drawn before it is found. Here a world of a few nodes is followed from
the moment that a new driver is committed, and in every state that it comes to each fault of `FAULTS` is tried, a few in
all, until no state is new. States are the same where people could not tell them apart: names are numbered, times are
ages in steps of `AGES`, attempts saturate at three. Time moves to the next moment at which anybody does something.

In every state all invariants of `watcher` hold, and nothing stops in silence: a node that is not as wanted, and for
which nothing is written, has a reason. From every state the way without a further fault ends at rest; and from every
rest, once everybody cooperates, each node comes to be as wanted.

The program goes on with what it remembers, unless a fault restarts it, so its memory is part of a state.
"""

from __future__ import annotations

import json
import math
import re
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any

import msgspec

from gpustack.reconciler.core.actions import PatchStatus, WriteLayouts
from gpustack.reconciler.memory.eviction import BUDGETS
from gpustack.reconciler.memory.server import Document
from gpustack.reconciler.shell.cluster import LEASES, NODES, PODS, POLICIES
from tests.reconciler.world.machine import APPLY, INSTALL, PATIENCE, RETRY, Task
from tests.reconciler.world.world import World

from . import moment as m
from .history import STEPS, History, copies
from .watcher import ViolationError

Step = tuple[str, int]
Key = bytes

FAULTS: tuple[Step, ...] = (
    ("kill", 0), ("kill", 1), ("away", 3), ("away", 4), ("jump", 3), ("restart", 0), ("stall", 0), ("stall", 1),
    ("deny", 0), ("deny", 1), ("unlist", 0), ("unlist", 1),
    ("works", 0), ("works", 1), ("cordon", 0), ("cordon", 1), ("hold", 0), ("pause", 0), ("pause", 1),
    ("fault", 0), ("fault", 7), ("fault", 2), ("fault", 4), ("prepull", 0), ("prepull", 1),
    ("taint", 0), ("bind", 0), ("bind", 1),
    ("workload", 4), ("driver", 0), ("revert", 0), ("replace", 1), ("record", 0), ("record", 1),
    ("forge", 0), ("forge", 2), ("spare", 0), ("spare", 3), ("spare", 12), ("ledger", 0), ("ledger", 2),
    ("undo", 0), ("undo", 4), ("undo", 8), ("marks", 0), ("edit", 0), ("edit", 2),
    ("ill", 0), ("ill", 1), ("ill", 2), ("ill", 4), ("ill", 5), ("ill", 6), ("asked", 1), ("asked", 3),
)  # fmt: skip
"""One of each kind: steps of histories, each with the number that says which node and what."""
AGES = (0, 1, 5, 12, 20, 60, 150, 300, 400, 600, 900, 1800, 3600, 7200)
"""Seconds: ages between two of these are the same."""
SATURATED = 3
PATIENT = 80
"""Passes that may leave a state as it is while its time goes on."""
STEADY = 3
"""Passes in a row in which nobody changes anything, as far apart as the program says, and a cluster is at rest."""
SOON, LATER = 5.0, 60.0
"""Seconds after which is looked again at what is changing, and at what only says the same again and again."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
PASSING = {"resourceVersion", "generation", "managedFields", "observedGeneration", "creationTimestamp", "renewTime",
           "lastHeartbeatTime", "leaseTransitions", "acquireTime", "holderIdentity", "id", "message"}  # fmt: skip
"""Fields that nothing depends on but whether they are there."""
COUNTED = {"attempt", "failures", "restarts", "recordons", "restartCount"}


class SilentStopError(ViolationError):
    """Something is due, nothing moves, and no reason is given."""


@dataclass
class Explored:
    """What there is to say in the end: the states that were followed, by form and faults that may still happen, with
    the number of ways out of each; those at rest; what is wrong and how it came."""

    followed: dict[tuple[Key, int], int] = field(default_factory=dict)
    resting: set[tuple[Key, int]] = field(default_factory=set)
    wrong: dict[str, list[Step]] = field(default_factory=dict)
    left: int = 0
    """How many states were seen and not followed; what comes after them nobody knows."""

    @property
    def whole(self) -> bool:
        """Whether no state was left out."""
        return not self.left

    @property
    def ways(self) -> int:
        """How many ways there are between states."""
        return sum(self.followed.values())

    def add(self, other: Explored) -> None:
        """What another process has found that began with other faults."""
        self.followed |= other.followed
        self.resting |= other.resting
        self.wrong = {**other.wrong, **self.wrong}
        self.left += other.left


@dataclass
class State:
    """A world on its way: how it came to be, how many faults may still happen, and its form."""

    history: History
    trace: tuple[Step, ...]
    left: int
    form: Key


def explore(
    start: History,
    faults: int,
    which: Sequence[Step] = FAULTS,
    most: int = 10**9,
    seconds: float = math.inf,
    first: Sequence[Step] | None = None,
) -> Explored:
    """Follow START through all that can happen with so many FAULTS of WHICH, the first of them one of FIRST; or through
    the first MOST states, or for so many SECONDS of processor."""
    state = State(start, (), faults, canonical(start))
    found, known, waiting = Explored(), {(state.form, faults)}, deque([state])
    until = time.process_time() + seconds
    while waiting:
        if len(found.followed) >= most or time.process_time() >= until:
            found.left = len(waiting)
            break
        state = waiting.popleft()
        key, another = (state.form, state.left), copies(state.history) if state.left else partial(_same, state.history)
        found.followed[key] = 1 + (len(which) if state.left else 0)
        some = () if not state.left else which if state.left < faults or first is None else first
        for step in (None, *some):
            try:
                after = _after(state, step, another())
            except ViolationError as violation:
                kind = str(violation).partition(":")[0]
                found.wrong.setdefault(kind, [*state.trace, *((step,) if step else ()), (str(violation), 0)])
                continue
            if after is None:
                found.resting.add(key)
            elif (after.form, after.left) not in known:
                known.add((after.form, after.left))
                waiting.append(after)
    return found


def _same(history: History) -> History:
    """HISTORY, of which no other way is followed."""
    return history


def _after(state: State, step: Step | None, after: History) -> State | None:
    """What becomes of STATE, whose copy is AFTER: by the fault STEP, or by time; None where it is at rest and comes to
    a good end."""
    if step is not None:
        STEPS[step[0]](after, step[1])
        return State(after, (*state.trace, step), state.left - 1, canonical(after))
    form = _moved_on(after, state.form)
    if form is None:
        after.settle()
        return None
    return State(after, (*state.trace, ("", 0)), state.left, form)


def _moved_on(history: History, before: Key) -> Key | None:
    """Let passes and time go on until the state is another one than BEFORE. Its form; None where it never is."""
    calm, written = 0, 0
    for count in range(PATIENT):
        changes = history.watcher.changes
        if history.once():
            written += 1
        else:
            _reasons(history)
        history.world.tick(0)  # who sees what is new does so at once, and acts on it
        soon = min(SOON * 2 ** (count // 10), LATER)
        history.world.tick(pause(history) if changes == history.watcher.changes else soon)
        if (form := canonical(history)) != before:
            return form
        calm = calm + 1 if changes == history.watcher.changes else 0
        if calm >= STEADY:
            return None
    if written:
        raise ViolationError(f"livelock: {written} passes write, and nothing changes: {history.problems()}")
    return None  # a kubelet says the same again and again


def _reasons(history: History) -> None:
    """Every node on which something is due has a reason, where nothing is written for it."""
    if not history.replica.runner.elector.leading:
        return
    decided, machines = history.replica.decided, history.world.machines
    told = {wait.node for wait in decided.waits}
    told |= {action.node for action in decided.actions if not isinstance(action, PatchStatus | WriteLayouts)}
    told |= {name for name, machine in machines.items() if machine.driver.stage not in {"", "ready"}}
    due = (text for text in history.problems() if not text.endswith(("is cordoned", "has taints")))
    silent = [text for text in due if not {"", text.split()[0]} & told]
    if silent:
        raise SilentStopError(f"silent_stop: {silent}")


# --- time -------------------------------------------------------------------------------------------------------------


def pause(history: History) -> float:
    """Seconds until somebody does something: a machine, a pod that ends, the program."""
    ends = [max(until - history.world.elapsed, 1.0) for until in _moments(history.world)]
    return min([*ends, max(history.replica.decided.again, 1.0)])


def _moments(world: World) -> Iterator[float]:
    for machine in world.machines.values():
        for task, spans in ((machine.driver, (RETRY, INSTALL, 2 * PATIENCE)), (machine.mig, (APPLY, RETRY, PATIENCE))):
            if task.stage not in {"", "ready"}:
                yield from (task.since + span for span in spans if task.since + span > world.elapsed)
                if task.stage in {"start", "assert"}:
                    yield world.elapsed + 1
    yield from world._ends.values()
    yield from world._lingering.values()


# --- states -----------------------------------------------------------------------------------------------------------


def canonical(history: History) -> Key:
    """What people could tell a state by, in short."""
    text = msgspec.json.encode(_Form(history).whole(), enc_hook=str, order="sorted")
    return blake2b(text, digest_size=16).digest()


@lru_cache(maxsize=100_000)
def _read(text: str) -> Any:
    """What TEXT is: an object, a time, or text without its times."""
    if text.startswith("{") and text != "{":
        return json.loads(text)
    return datetime.fromisoformat(text) if TIME.fullmatch(text) else TIME.sub("a time", text)


_PARTS: dict[int, tuple[Document, tuple[str, list[str], list[datetime]]]] = {}


def _parts(body: Document) -> tuple[str, list[str], list[datetime]]:
    """What BODY says that no state says otherwise, in short; what may be a name in it, and its times, each in order."""
    found = _PARTS.get(id(body))
    if found is None:
        names: list[str] = []
        times: list[datetime] = []
        text = msgspec.json.encode(_fixed(body, "", names, times))
        found = _PARTS[id(body)] = body, (blake2b(text, digest_size=16).hexdigest(), names, times)
    return found[1]


def _fixed(value: Any, key: str, names: list[str], times: list[datetime]) -> Any:
    """VALUE of KEY without its NAMES and TIMES, which are added to these."""
    if key in PASSING:
        return bool(value)
    if key in COUNTED:
        return min(int(value), SATURATED)
    if isinstance(value, dict):
        return [[_fixed(name, "", names, times), _fixed(value[name], name, names, times)] for name in sorted(value)]
    if isinstance(value, list | tuple):
        return [_fixed(item, "", names, times) for item in value]
    if not isinstance(value, str):
        return value
    found = _read(value)
    if isinstance(found, datetime):
        times.append(found)
        return "a time"
    if not isinstance(found, str):
        return _fixed(found, "", names, times)
    if not any(map(str.isdigit, found)):
        return found  # uids and the names of nodes and pods are numbered
    names.append(found)
    return "a name"


class _Form:
    """Writes a state so that equal ones are written equally."""

    def __init__(self, history: History) -> None:
        self.history, self.world = history, history.world
        self.now = self.world.server.now
        self.names: dict[str, str] = {}

    def whole(self) -> list[Hashable]:
        history, world, server = self.history, self.world, self.world.server
        for node in sorted(world.machines):
            self.names[str(world.node(node)["metadata"]["uid"])] = node
            self.names[world.machines[node].id] = f"{node}'s machine"
        pods = [self._value(body) for body in self._pods()]
        made: list[Any] = [
            [self._value(body) for body in server.all(NODES)],
            pods,
            [self._value(body) for kind in (POLICIES, BUDGETS) for body in server.all(kind)],
            [m.annotations_of(body).get(m.PAUSED) for body in server.all(LEASES)],
            [self._machine(name) for name in sorted(world.machines)],
            [[self._name(uid), self._age_of(until - world.elapsed)] for uid, until in sorted(world._ends.items())],
            [vars(each) for each in world.workloads.values()],
            vars(history.want), history.by_hand, vars(history.vexed),
            sorted(history.watcher.denied), sorted(history.watcher.unlisted), len(history.watcher.spared),
            sorted(history.watcher.owners.items()),
        ]  # fmt: skip
        return [*made, self._program()]

    def _program(self) -> list[Any]:
        """What the program remembers."""
        runner = self.history.replica.runner
        first = {f"{self._name(uid)} {what}": self._age(at) for (uid, what), at in runner.sources.seen.first.items()}
        refusals = runner.sources.refusals
        kept = [
            [self._name(uid), min(each.tries, SATURATED), self._age(each.until)]
            for of in (refusals.pods, refusals.nodes, refusals.writes)
            for uid, each in sorted(of.items())
        ]
        admitting = [self._name(uid) for uid in runner.elector.admitting]
        ids = {str(body["metadata"]["uid"]): m.operation(body).get("id") for body in self.world.server.all(NODES)}
        ledger = [
            [self._name(uid), ids.get(uid) == each.op, each.lists(ids.get(uid) or "")]
            for uid, each in (runner.elector.ledger or {}).items()
        ]
        away = [self._age(at) for gap in runner.away for at in gap]
        return [first, kept, sorted(admitting), sorted(ledger), runner.elector.leading, away]

    def _machine(self, name: str) -> list[Any]:
        machine = self.world.machines[name]
        tasks = [self._task(task) for task in (machine.driver, machine.mig)]
        return [machine.loaded, machine.geometry, sorted(machine.faults), tasks]

    def _task(self, task: Task) -> list[Any]:
        lasts = task.stage not in {"", "ready"}
        return [task.stage, lasts and self._age_of(self.world.elapsed - task.since), task.value, task.restarted]

    def _pods(self) -> list[Document]:
        """The pods by node and by what they are, numbered in the order in which they were made."""

        def place(body: Document) -> tuple[str, str, str]:
            labels = body["metadata"].get("labels") or {}
            return body["spec"].get("nodeName", ""), str(labels.get("app", labels)), body["metadata"]["uid"]

        pods = sorted(self.world.server.all(PODS), key=place)
        for number, body in enumerate(pods):
            self.names[body["metadata"]["uid"]] = self.names[body["metadata"]["name"]] = f"pod-{number}"
        return pods

    def _value(self, body: Document) -> list[Any]:
        """BODY, which is never changed: what stays as it is in any state, and what a state says of the rest."""
        fixed, names, times = _parts(body)
        return [fixed, [self._name(text) for text in names], [self._age(at) for at in times]]

    def _name(self, text: str) -> str:
        return self.names.get(text, text)

    def _age(self, at: datetime) -> int:
        return self._age_of((self.now - at) / timedelta(seconds=1))

    def _age_of(self, seconds: float) -> int:
        return bisect_right(AGES, seconds) if seconds >= 0 else -bisect_right(AGES, -seconds)
