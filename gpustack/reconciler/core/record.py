"""What is remembered on a node: the open operation, how the last one ended, and whom the node belongs to.

Solves: a program that may be killed between any two writes must find everything on the object that it changes. Each of
the three is one annotation, so that a transition is one write. Fields that a newer version wrote are kept. A record
that can't be read is never guessed at: `Unreadable`, and nothing is done on that node but saying so (reconciler.md I21,
A16).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

import msgspec

from ...api import keys
from ...api.node_policy import Drain, PodDeletion, PodRule, WaitForCompletion
from ...api.objects import Slim, Time
from .bounds import brief

COMPONENT = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LATEST = 4_000_000_000
"""Seconds since 1970, in 2096."""
MOST = 10_000
"""Attempts."""
FORMAT = 1
"""Version of the records that are written, and the newest that can be read."""

Phase = Literal["Held", "Evicting", "Acting", "Verifying", "Quarantine"]
"""Queued is derived and Releasing is one write: neither is ever stored."""

Act = Literal["driver", "mig", "repair", "mode", "install", "health"]
"""One thing to do on a node; an operation is one or several of them, in this order of precedence."""

Request = Literal["", "reset", "reboot"]
"""What a node with a fault needs that only others can do."""

Part = Act | Literal["drain", ""]
"""Where a phase has parts, as this version writes them."""


class Target(Slim, kw_only=True):
    """What an operation brings a node to."""

    revision: str = ""
    """The driver DaemonSet's revision hash."""
    mig: str = ""
    """The MIG configuration."""
    mig_digest: str = ""
    labels: dict[str, str] = {}
    """The labels that a change of mode swaps in."""
    deploy: list[str] = []
    """The components whose deploy labels a change of mode leaves."""
    health: Literal["", "cordon", "drain"] = ""
    """What becomes of a node with a fault: no pod comes any more, or those that use its GPUs go, too."""
    request: Request = ""

    def __str__(self) -> str:
        parts = [self.revision and f"driver {self.revision}", self.mig and f"mig {self.mig}@{self.mig_digest}"]
        parts += [f"{self.health} for a fault", self.request] if self.health else []
        parts += [f"{key}={value}" for key, value in sorted(self.labels.items())]
        return ", ".join(part for part in parts if part) or "-"


class Finish(Slim, kw_only=True):
    """All that finishing needs, so that an operation survives the policy that started it (A2)."""

    daemonSet: str = ""
    resources: dict[str, int] = {}
    layout: str = ""
    """The MIG layout with which a node offers them."""
    runtimeClasses: list[str] = []
    startupTaints: list[str] = []
    """As kubectl writes them, key:effect."""
    podDeletion: PodDeletion = msgspec.field(default_factory=PodDeletion)
    drain: Drain = msgspec.field(default_factory=Drain)
    wait: WaitForCompletion = msgspec.field(default_factory=WaitForCompletion)
    podRules: list[PodRule] = []
    ignoreBudgets: bool = False
    """Whether pods are deleted whose budgets refuse: they have held up the node for as long as the policy lets them."""
    driverSeconds: int = 5400
    migSeconds: int = 1800
    verifySeconds: int = 900
    requestSeconds: int = 3600
    maxAttempts: int = 3
    validator: bool = True


class Operation(Slim, kw_only=True):
    """The open operation of a node. Times are the API server's."""

    v: int = FORMAT
    id: str
    acts: list[Act]
    phase: Phase
    step: str = ""
    """Where a phase has parts: the act of Acting, "drain" of Evicting."""
    target: Target = msgspec.field(default_factory=Target)
    policy: str = ""
    """UID of the NodePolicy that started it."""
    since: Time
    """When the phase began."""
    started: Time
    acted: Time | None = None
    """When the node was first touched beyond a cordon: validators must have started later."""
    deadline: Time | None = None
    attempt: int = 1
    failures: int = 0
    """How often it has failed at its target past the point of no return."""
    notBefore: Time | None = None
    cordon: bool = False
    """Whether the cordon is ours."""
    restartOnly: bool = False
    restarts: int = 0
    """How often the MIG manager's pod was restarted to make it try again."""
    restarted: Time | None = None
    """When it was last decided: pods of the MIG manager that are older are deleted."""
    emptySince: Time | None = None
    """Since when nothing uses the GPUs of a node that is emptied."""
    heard: str = ""
    heardAt: Time | None = None
    """What the MIG manager last said, and when that was first seen. None: it was not told the layout, or somebody has
    named it another since, so that no success is an answer (reconciler.md I17)."""
    boot: str = ""
    """Which boot of the machine it was when a reset or reboot was asked for."""
    recordons: int = 0
    """How often somebody took the cordon away."""
    annotated: list[str] = []
    """Annotations for autoscalers that are ours to remove."""
    reason: str = ""
    finish: Finish = msgspec.field(default_factory=Finish)

    @property
    def kind(self) -> str:
        """As people call it: "driver", "mig", "driver+mig"."""
        return "+".join(self.acts)

    @property
    def install(self) -> bool:
        """Whether it sets up a new node: no cordon, outside the budget."""
        return "install" in self.acts

    @property
    def disruptive(self) -> bool:
        """Whether it holds a slot: everything but an install, until quarantine gives the slot back."""
        return not self.install and self.phase != "Quarantine"

    @property
    def returnable(self) -> bool:
        """Whether the node has not been touched yet beyond its cordon."""
        return self.phase in {"Held", "Evicting"}


class Last(Slim, kw_only=True):
    """How the last operation ended."""

    id: str = ""
    kind: str = ""
    target: str = ""
    outcome: Literal["done", "released", "adopted", ""] = ""
    at: Time | None = None
    attempt: int = 0
    """Failed attempts at this target so far."""
    notBefore: Time | None = None
    reason: str = ""
    inTheWay: str = ""
    """Names whose pod it was that could not be evicted."""
    budgets: bool = False
    """Whether a PodDisruptionBudget refused that."""


class Memory(Slim, kw_only=True):
    """Whom the node belongs to, and what was proved about it."""

    policy: str = ""
    """UID of its NodePolicy."""
    name: str = ""
    uid: str = ""
    """The Node object under which the stack was last proved: a new object of the same name is a new node."""
    machine: str = ""
    """The kubelet's machineID then."""
    mig: str = ""
    """The MIG configuration that was last proved."""
    mig_digest: str = ""


def moment(at: int, latest: int = LATEST) -> datetime:
    """AT, in seconds since 1970, as a time up to LATEST: somebody may have written any number."""
    return datetime.fromtimestamp(min(max(at, 0), latest), UTC)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An open operation in the ledger: its id, and when it was admitted, in seconds since 1970. One that is tried again
    keeps the id of the attempt before until the next has a record: whoever announced it may never have written it.
    `policy` is how the UID of its NodePolicy begins: what a node says of that is not believed."""

    op: str
    at: int
    before: str = ""
    policy: str = ""

    @property
    def since(self) -> datetime:
        """When it was admitted."""
        return moment(self.at)

    def lists(self, op: str) -> bool:
        """Whether the operation OP is the one that is open."""
        return op == self.op or (self.before != "" and op == self.before)


class Unreadable(Exception):  # noqa: N818 - what it is, not that it failed
    """A record that this version can't read; the text says why."""


R = TypeVar("R", Operation, Last, Memory)


def read(of: type[R], text: str | None) -> R | None:
    """The record in TEXT, None for no text; nobody changes it. Raises `Unreadable`."""
    return cast(R, _read(of, text)) if text else None


def readable(of: type[R], text: str | None) -> R | None:
    """As `read`, and None for what can't be read: for who only counts and tells."""
    try:
        return read(of, text)
    except Unreadable:
        return None


@lru_cache(maxsize=4096)
def _read(of: type[Operation | Last | Memory], text: str) -> Operation | Last | Memory:
    """A pass reads an open operation several times, and the next one again; a fleet has no more of them than this."""
    try:
        decoded = msgspec.json.decode(text, type=of)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreadable(f"it is no {of.__name__.lower()} record: {error}") from None
    if isinstance(decoded, Operation) and not 1 <= decoded.v <= FORMAT:
        raise Unreadable(f"its format is {decoded.v}; this version reads up to {FORMAT}")
    if isinstance(decoded, Operation):
        _sound(decoded)
    return decoded


def _sound(operation: Operation) -> None:
    """Refuse what no version writes: it would be done for ever, or something of somebody else's be removed."""
    if not operation.acts:
        raise Unreadable("it names nothing to do")
    if len(set(operation.acts)) < len(operation.acts):
        raise Unreadable("it names something to do twice")
    if label := next((key for key in operation.target.labels if not key.startswith(keys.NVIDIA)), ""):
        raise Unreadable(f"it would set the label {label!r}, which doesn't begin with {keys.NVIDIA}")
    if odd := next((name for name in operation.target.deploy if not COMPONENT.fullmatch(name)), ""):
        raise Unreadable(f"{odd!r} is not a component")
    if operation.attempt > MOST or operation.failures > MOST:
        raise Unreadable(f"it was tried {max(operation.attempt, operation.failures)} times")
    if foreign := set(operation.annotated) - set(keys.AUTOSCALERS):
        raise Unreadable(f"it calls the annotation {min(foreign)!r} its own")


def write(record: Operation | Last | Memory, before: str | None = None) -> str:
    """RECORD as the text of an annotation, with the fields of BEFORE that this version does not know."""
    made: dict[str, Any] = msgspec.to_builtins(record)
    if "reason" in made:
        made["reason"] = brief(made["reason"])
    if isinstance(record, Operation):
        made["v"] = record.v  # a default is left out, and the next version's default will be another
    for key, value in _unknown(type(record), before).items():
        made.setdefault(key, value)
    return msgspec.json.encode(made, order="sorted").decode()


def _unknown(of: type[Slim], before: str | None) -> Mapping[str, Any]:
    try:
        data = msgspec.json.decode(before) if before else {}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    known = _names(of)
    return {key: value for key, value in data.items() if key not in known} if isinstance(data, dict) else {}


@lru_cache
def _names(of: type[Slim]) -> frozenset[str]:
    return frozenset(each.encode_name for each in msgspec.structs.fields(of))
