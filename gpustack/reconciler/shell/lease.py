"""Who may write, and the fence that keeps a late write of a former leader out.

Solves: holding a Lease says nothing about a request that is still under way when it is lost (reconciler.md A1). So an
admission is announced first, in the same compare-and-swap that renews the Lease. Whoever leads next finds the
announcement, sees on the node whether it came to pass, and if not writes something there: the late request then carries
an outdated version and fails.

Expiry is judged by how long this process has seen the Lease unchanged, never by the times in it.

It is longer than other files on purpose: election, announcement and fence are one argument, and share one write. The
fence works only as long as there is time to renew, what it settles is taken out of the same Lease, and since when an
admission is announced stands in the ledger there.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

import msgspec

from ...api import keys
from ...api.objects import Lease
from ..core import record
from ..core.snapshot import Announced, Seen
from .clock import Clock
from .cluster import LEASES, NODES, Answer, ApiError, Cluster, Conflict, NotFound, Selection, Unreachable
from .log import Log

NAME = "gpustack-reconciler"
LOOSE_FOR = 60.0
"""Seconds after which an admission counts no more that can't be fenced: the API server ends a request by then, and what
it answers us it answers a late one."""
KEPT = 500
"""How many times since when something is so the Lease has room for."""
UNWATCHED, REMEMBERED, GAPS = timedelta(minutes=15), timedelta(days=1), 20
"""How long a time is at least in which nobody has led, how long it is remembered, and how many of them."""
CLOSED_FOR = 120.0
"""Seconds without a record after which an operation is out of the ledger."""

NOTHING = Seen()
A = TypeVar("A")


class NotLeadingError(ApiError):
    """This process does not lead, or may not admit."""


class Admission(msgspec.Struct, frozen=True):
    """An announced admission: the node by name, and the operation that is to begin there; the version of the node that
    the write carries, whether it sets up a new node, the failed operation whose record it replaces, and how the UID of
    its policy begins."""

    node: str
    op: str
    version: str = ""
    install: bool = False
    again: str = ""
    policy: str = ""


@dataclass
class Loose:
    """An admission that nobody is at: since when, when it was last looked at, and why it could not be settled."""

    since: float
    tried: float = float("-inf")
    trouble: str = ""


@dataclass(frozen=True)
class Terms:
    """Seconds. A leader stops after `deadline`, others wait for `duration`; what lies between is for clocks that run
    unevenly and for requests under way."""

    duration: int = 30
    deadline: float = 20.0
    retry: float = 5.0

    @classmethod
    def lasting(cls, seconds: int) -> Self:
        """In the same proportions, for another duration."""
        part = seconds / cls.duration
        return cls(seconds, cls.deadline * part, cls.retry * part)


@dataclass
class Elector:
    """One candidate. `leading` is what writes depend on."""

    cluster: Cluster
    namespace: str
    identity: str
    clock: Clock
    log: Log
    terms: Terms = Terms()
    changed: Callable[[], None] = lambda: None
    name: str = NAME
    """The Lease's; another program of ours has another one."""
    seen: Lease | None = None
    contact: float = float("-inf")
    """When the Lease was last read or written, by the steady clock."""
    admitting: Mapping[str, Admission] = field(default_factory=dict)
    """Announced admissions by node UID, as last seen in the Lease."""
    _unchanged: float = 0.0
    """Since when the Lease has been seen as it is."""
    _until: float = float("-inf")
    _unanswered: bool = False
    """Whether it isn't known what became of our last write."""
    _open: dict[str, record.Entry] = field(default_factory=dict)
    _since: dict[str, int] = field(default_factory=dict)
    _gaps: list[tuple[int, int]] = field(default_factory=list)
    _tries: int = 0
    """How often in a row the Lease was to be renewed and was not, with the present time."""
    _closed: dict[str, float] = field(default_factory=dict)
    """Since when no record has been seen of an operation that is open by the ledger, by node UID."""
    _under_way: set[str] = field(default_factory=set)
    _loose: dict[str, Loose] = field(default_factory=dict)
    """Admissions that nobody is at and that could not be settled, by node UID."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def leading(self) -> bool:
        """Whether this process may write now."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """For how many seconds it may, if the Lease can't be renewed."""
        return max(self._until - self.clock.monotonic(), 0.0)

    @property
    def announced(self) -> Mapping[str, Announced]:
        """The announced admissions as a pass takes them."""
        return {
            uid: Announced(each.install, self._loose[uid].trouble if uid in self._loose else "")
            for uid, each in self.admitting.items()
        }

    @property
    def ledger(self) -> Mapping[str, record.Entry] | None:
        """The operations that were begun and have not ended, by node UID, as last seen; None without a Lease."""
        return None if self.seen is None else self._open

    @property
    def term(self) -> int:
        """Which time of somebody's leading it is, as last seen."""
        return (self.seen.spec.leaseTransitions or 0) if self.seen else 0

    @property
    def times(self) -> Seen:
        """Since when the leader has seen what it waits for."""
        latest = int(self.clock.now().timestamp())
        known = ((*text.partition(" "), at) for text, at in self._since.items())
        return Seen({(uid, what): record.moment(at, latest) for uid, _, what, at in known})

    @property
    def away(self) -> tuple[tuple[datetime, datetime], ...]:
        """From when to when nobody has led, the API server gave no answer or its clock has jumped, in the last day:
        whoever leads renews the Lease every few seconds, and knows how long ago."""
        heard = self._ours and self._tries <= 1
        now, ours = self.clock.now(), timedelta(seconds=self.clock.monotonic() - self.contact if heard else 0)
        gaps = [(record.moment(begin), record.moment(end)) for begin, end in self._gaps]
        with contextlib.suppress(ValueError, OverflowError):
            renewed = datetime.fromisoformat((self.seen and self.seen.spec.renewTime) or "").astimezone(UTC)
            gaps += [(renewed, now - ours)] if now - renewed - ours >= UNWATCHED else []
        return tuple(sorted(gap for gap in gaps if now - REMEMBERED < gap[1] <= now))[-GAPS:]

    def tend(self, operations: Mapping[str, str], seen: Seen = NOTHING) -> None:
        """Of what is in the ledger, that goes with the next renewal of which no record has been seen for a while.
        OPERATIONS are those that records say to be open, by node UID, "" for one that can't be read: a watch may lag
        behind the write of one. What was SEEN goes into the Lease, for the next leader: the longest, as far as there is
        room."""
        longest = sorted(seen.first.items(), key=lambda each: each[1])[:KEPT]
        self._since = {f"{uid} {what}": int(at.timestamp()) for (uid, what), at in longest}
        now = self.clock.monotonic()
        begun = {uid for uid, each in self._open.items() if each.before and operations.get(uid) == each.op}
        self._open = {
            uid: msgspec.structs.replace(each, before="") if uid in begun else each for uid, each in self._open.items()
        }
        self._closed = {
            uid: self._closed.get(uid, now)
            for uid, each in self._open.items()
            if (op := operations.get(uid)) != "" and not each.lists(op or "") and uid not in self.admitting
        }

    @property
    def paused(self) -> str:
        """Why somebody paused the whole fleet, as last seen in the Lease."""
        value = self.seen.annotations.get(keys.PAUSED) if self.seen else None
        return "" if value is None else value or "no reason given"

    async def run(self, sleep: Callable[[float], Any] = asyncio.sleep) -> None:
        """Campaign and renew until cancelled."""
        led = False  # as last told: leadership is lost between two steps too, when this process stood still
        paused, leader = self.paused, ""
        while True:
            try:
                await self.step()
            except ApiError as error:
                self.log.warning("the Lease could not be read or renewed", error=str(error), status=error.status)
            if led != self.leading:
                led = self.leading
                self.log.info("leading" if led else "no longer leading", identity=self.identity)
                self.changed()
            holder = self.seen.spec.holderIdentity or "" if self.seen and not self.leading else ""
            if holder not in {leader, self.identity}:
                self.log.info("standing by while another one leads", identity=self.identity, leader=holder)
            leader = holder
            if paused != self.paused:  # nothing else tells a pass that the fleet was paused or resumed
                paused = self.paused
                self.changed()
            await sleep(self.terms.retry * (0.8 + 0.4 * secrets.randbelow(1000) / 1000))

    async def step(self) -> None:
        """Take the Lease if it is free, renew it if it is ours, and settle admissions that nobody is at."""
        async with self._lock:
            self._tries += 1
            if self.seen is None or not self._ours:
                await self._read()
            if self.seen is not None and not self._ours and not self._free:
                return
            await self._enter(self.admitting)
        await self._settle()

    async def admit(self, admissions: Mapping[str, Admission]) -> None:
        """Announce ADMISSIONS, by node UID. Raises `ApiError`: then none of them may be made."""
        async with self._lock:
            self._may_admit()
            at = int(self.clock.now().timestamp())
            self._closed = {uid: since for uid, since in self._closed.items() if uid not in admissions}
            opened = {uid: record.Entry(each.op, at, each.again, each.policy) for uid, each in admissions.items()}
            await self._enter({**self.admitting, **admissions}, opened)
            self._under_way |= admissions.keys()

    def leave(self, uids: Iterable[str]) -> None:
        """Nobody is at the admissions of UIDS any more: where they are still listed, the fence settles them."""
        self._under_way -= set(uids)

    async def done(self, uids: set[str]) -> None:
        """The admissions of UIDS were made, or refused for good."""
        self.leave(uids)
        async with self._lock:
            if self.leading and uids & self.admitting.keys():
                with contextlib.suppress(ApiError):  # what stays listed is settled by the next step
                    await self._write({uid: each for uid, each in self.admitting.items() if uid not in uids})

    async def release(self) -> None:
        """Let the next one lead at once. What is announced stays for it.

        A write that was under way when the program was told to stop may have been made: then what is there is read."""
        async with self._lock:
            self._until = float("-inf")
            if self._unanswered:
                await self._read()
            if not self._ours or self.seen is None:
                return
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self.clock.stamp()}
            await self._patch(self.seen, {keys.SINCE: _text(self._since)}, spec)
            self.seen = None

    async def give_up(self) -> None:
        """Release it at the end of a program, whatever it ends in; where that fails, the next one waits."""
        try:
            async with asyncio.timeout(5):
                await self.release()
        except (ApiError, TimeoutError) as error:
            self.log.warning("the Lease was not released: the next replica waits for its end", error=str(error))

    # --- within -------------------------------------------------------------------------------------------------------

    @property
    def _ours(self) -> bool:
        return self.seen is not None and self.seen.spec.holderIdentity == self.identity

    @property
    def _free(self) -> bool:
        """Whether nobody holds it, or the holder has shown no sign of life for as long as it said."""
        if self.seen is None or not self.seen.spec.holderIdentity:
            return True
        duration = self.seen.spec.leaseDurationSeconds or self.terms.duration
        return self.clock.monotonic() - self._unchanged > duration

    async def look(self) -> None:
        """Read the Lease, for who only wants to know."""
        async with self._lock:
            await self._read()

    async def _read(self) -> None:
        which = Selection(self.namespace, fields=f"metadata.name={self.name}")
        listing = await self._soon(self.cluster.list(LEASES, which))
        self.clock.observe(listing.date)
        self._note(listing.items[0] if listing.items else None)

    def _note(self, lease: Lease | None) -> None:
        self.contact = self.clock.monotonic()
        before = self.seen.metadata.resourceVersion if self.seen else ""
        if lease is None or lease.metadata.resourceVersion != before:
            self._unchanged = self.clock.monotonic()
        self.seen = lease
        if lease is not None:  # of one that somebody deleted all goes on that is known
            self.admitting = admissions_in(lease)
            self._open = _read(lease, keys.LEDGER, dict[str, record.Entry]) or {}
            self._since = _read(lease, keys.SINCE, dict[str, int]) or {}
            self._gaps = _read(lease, keys.AWAY, list[tuple[int, int]]) or []

    def _may_admit(self) -> None:
        if not self.leading:
            raise NotLeadingError("the Lease is not ours any more")
        if self.paused:
            raise NotLeadingError(f"the fleet is paused: {self.paused}")

    async def _enter(
        self, admitting: Mapping[str, Admission], opened: Mapping[str, record.Entry] | None = None
    ) -> None:
        """Write the Lease. If somebody else did, and it is still ours (it was paused, say) or gone, write once more,
        with all that is open: whoever took the ledger away did not know what it is for."""
        mine, open_ = self._ours, self._open
        try:
            return await self._write(admitting, opened)
        except (Conflict, NotFound):
            await self._read()
        if mine and (self._ours or self.seen is None):
            self._open = {**open_, **self._open}
        else:
            self._until = float("-inf")
            raise NotLeadingError(f"the Lease is held by {self.seen.spec.holderIdentity if self.seen else 'nobody'}")
        if opened:
            self._may_admit()
        return await self._write({**self.admitting, **admitting}, opened)

    async def _write(
        self, admitting: Mapping[str, Admission], opened: Mapping[str, record.Entry] | None = None
    ) -> None:
        """Take or renew, by compare-and-swap, and enter what is OPENED. It holds from before the request."""
        began = self.clock.monotonic()
        over = {uid for uid, since in self._closed.items() if began - since >= CLOSED_FOR}
        ledger = {**{uid: each for uid, each in self._open.items() if uid not in over}, **(opened or {})}
        spec: dict[str, Any] = {"renewTime": self.clock.stamp(), "leaseDurationSeconds": self.terms.duration}
        if not self._ours:
            transitions = (self.seen.spec.leaseTransitions or 0) + 1 if self.seen else 0
            spec |= {"holderIdentity": self.identity, "acquireTime": spec["renewTime"], "leaseTransitions": transitions}
        notes = {keys.ADMITTING: _text(admitting), keys.LEDGER: _text(ledger), keys.SINCE: _text(self._since)}
        notes[keys.AWAY] = _text([[int(at.timestamp()) for at in gap] for gap in self.away])
        self._unanswered = True
        if self.seen is None:
            there = {key: text for key, text in notes.items() if text}
            made = {"metadata": {"name": self.name, "annotations": there}, "spec": spec}
            answer = await self._soon(self.cluster.create(LEASES, made, namespace=self.namespace))
        else:
            answer = await self._soon(self._patch(self.seen, notes, spec))
        self.clock.observe(answer.date)
        try:
            self._note(msgspec.convert(answer.body, type=Lease))
        except msgspec.ValidationError as error:
            raise Unreachable(f"the Lease: the answer can't be read: {error}") from None
        self._unanswered, self._tries = False, 0
        self._until = began + self.terms.deadline

    def _patch(self, seen: Lease, notes: Mapping[str, str | None], spec: Mapping[str, Any]) -> Awaitable[Answer]:
        """Write NOTES and SPEC into the Lease, if it is still as it was SEEN."""
        metadata = {"resourceVersion": seen.metadata.resourceVersion, "annotations": notes}
        return self.cluster.patch(LEASES, self.name, {"metadata": metadata, "spec": spec}, namespace=self.namespace)

    async def _soon(self, request: Awaitable[A], seconds: float = 0.0) -> A:
        """A request that must not take as long as others may."""
        try:
            async with asyncio.timeout(seconds or self.terms.deadline / 2):
                return await request
        except TimeoutError:
            raise Unreachable("the Lease: no answer in time") from None

    async def _settle(self) -> None:
        """See to the admissions that nobody is at: of a former leader, or of ours that got no answer.

        Each by itself, first those that were longest not looked at: a node that can't be fenced holds up no other."""
        waiting = {uid: each for uid, each in self.admitting.items() if uid not in self._under_way}
        self._loose = {uid: self._loose.get(uid, Loose(self._announced(uid))) for uid in waiting}
        settled = set()
        for uid, loose in sorted(self._loose.items(), key=lambda each: each[1].tried):
            if self.remaining < self.terms.deadline / 2:
                break  # renew first
            loose.tried = self.clock.monotonic()
            if await self._over(uid, waiting[uid], loose):
                settled.add(uid)
        if settled:
            self._loose = {uid: each for uid, each in self._loose.items() if uid not in settled}
            await self.done(settled)
            self.changed()

    def _announced(self, uid: str) -> float:
        """When the admission on the node UID was announced, by the steady clock: perhaps to another leader."""
        entry, now = self._open.get(uid), self.clock.monotonic()
        return now - max(self.clock.now().timestamp() - entry.at, 0.0) if entry else now

    async def _over(self, uid: str, admission: Admission, loose: Loose) -> bool:
        """Whether the admission has come to pass, or can't any more; if that can't be found out, `loose` says why."""
        try:
            return await self._fence(uid, admission)
        except ApiError as error:
            self.log.warning("an admission that was announced can't be fenced", node=admission.node, error=str(error))
            if loose.trouble != (text := f"its admission was announced, and it can't be fenced: {error}"):
                loose.trouble = text
                self.changed()
            return self.clock.monotonic() - loose.since >= LOOSE_FOR

    async def _fence(self, uid: str, admission: Admission) -> bool:
        """Whether the admission has come to pass or can't any more."""
        which = Selection(fields=f"metadata.name={admission.node}")
        listing = await self._soon(self.cluster.list(NODES, which), self.terms.deadline / 4)
        node = next((each for each in listing.items if each.uid == uid), None)
        open_ = record.readable(record.Operation, node.annotations.get(keys.OPERATION)) if node else None
        if node is None or (open_ and open_.id == admission.op):
            return True
        if admission.version and node.metadata.resourceVersion != admission.version:
            return True  # the late write carries a version that is no more
        fence = f"{self.identity} {self.clock.stamp()} {secrets.token_hex(4)}"
        metadata = {"uid": uid, "annotations": {keys.FENCE: fence}}  # on whatever version there is now
        try:
            request = self.cluster.patch(NODES, admission.node, {"metadata": metadata})
            await self._soon(request, self.terms.deadline / 4)
        except NotFound:
            return True
        except Conflict:
            return False  # another node by now, or the server gave up among many writes: look again
        self.log.info("an admission that was announced did not happen: fenced", node=admission.node, op=admission.op)
        return True


def admissions_in(lease: Lease | None) -> dict[str, Admission]:
    """The admissions that LEASE announces. One that can't be read was not written by us and can't be settled."""
    return _read(lease, keys.ADMITTING, dict[str, Admission]) or {}


def _read(lease: Lease | None, key: str, of: type[A]) -> A | None:
    text = lease.annotations.get(key) if lease else None
    try:
        return msgspec.json.decode(text, type=of) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def _text(entries: Mapping[str, Any] | Sequence[Any]) -> str | None:
    return msgspec.json.encode(entries, order="sorted").decode() if entries else None
