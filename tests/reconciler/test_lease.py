"""One leader at a time, and a fence where that is not enough (reconciler.md A1, T8)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.core.queue import AT_ONCE, OPEN
from gpustack.reconciler.core.record import Operation, write
from gpustack.reconciler.core.snapshot import Seen
from gpustack.reconciler.shell.cluster import LEASES, NODES, ApiError, Conflict, Forbidden, Unreachable
from gpustack.reconciler.shell.lease import KEPT, NAME, Admission, Elector, NotLeadingError, admissions_in
from tests.reconciler.memory import drive
from tests.reconciler.shell import NAMESPACE, World, fail


@pytest.fixture
def world() -> World:
    """A cluster with a node."""
    made = World()
    made.node("n")
    return made


def elector(world: World, name: str) -> Elector:
    """A candidate with its own client and clock."""
    return Elector(world.client(name), NAMESPACE, name, world.clock_of(), world.log)


def lease(world: World) -> Any:
    """The Lease as it is stored."""
    return world.server.read(LEASES, NAME, NAMESPACE)


def uid(world: World) -> str:
    """Of the node."""
    return world.server.read(NODES, "n").uid


def begin(world: World, version: str, op: str = "op1", actor: str = "a") -> None:
    """The patch by which an operation begins, on the version that it was decided on."""
    now = world.server.now
    text = write(Operation(id=op, acts=["driver"], phase="Held", since=now, started=now))
    metadata = {"resourceVersion": version, "annotations": {keys.OPERATION: text}}
    drive(world.client(actor).patch(NODES, "n", {"metadata": metadata}))


def test_one_leads_and_renews(world: World) -> None:
    """The first takes it; the second does not, however long it watches, while it is renewed."""
    a, b = elector(world, "a"), elector(world, "b")
    for _ in range(20):
        drive(a.step())
        drive(b.step())
        world.tick(5)
    assert (a.leading, b.leading) == (True, False)
    assert lease(world).spec.leaseTransitions == 0


def test_expiry_is_what_was_seen_and_not_what_is_written(world: World) -> None:
    """A time in the Lease that is long past, by a clock that goes wrong, is no expiry; 30 s without a change are."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    old = {"spec": {"renewTime": "2001-01-01T00:00:00.000000Z"}}
    world.server.edit(LEASES, NAME, old, NAMESPACE)
    drive(b.step())
    world.tick(29)
    drive(b.step())
    assert not b.leading
    world.tick(2)
    drive(b.step())
    assert b.leading
    assert lease(world).spec.leaseTransitions == 1


def test_a_leader_stops_before_another_may_start(world: World) -> None:
    """20 s after the start of the last renewal that worked; another begins 30 s after at the earliest."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(b.step())
    a.cluster.fault = fail(Unreachable("x"), "before", lambda _: True)  # type: ignore[attr-defined]
    for _ in range(60):
        world.tick(0.5)
        for each in (a, b):
            with contextlib.suppress(ApiError):
                drive(each.step())
        assert not (a.leading and b.leading)
    world.tick(1)
    drive(b.step())
    assert b.leading


def test_a_paused_leader_finds_that_it_no_longer_leads(world: World) -> None:
    """After a stop of a minute it neither writes nor renews against the new leader."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(b.step())
    world.tick(60)
    drive(b.step())
    assert not a.leading
    with pytest.raises(NotLeadingError):
        drive(a.admit({uid(world): Admission("n", "op1")}))
    with pytest.raises(NotLeadingError):
        drive(a.step())
    drive(a.step())
    assert (a.leading, b.leading) == (False, True)


def test_a_leader_that_stood_still_says_that_it_no_longer_leads(world: World) -> None:
    """The log says so, and whoever waits for a change is told, also when leadership was lost between two steps."""
    a, b = elector(world, "a"), elector(world, "b")
    changes: list[bool] = []
    a.changed = lambda: changes.append(a.leading)
    naps = 0

    async def nap(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 2:
            raise asyncio.CancelledError
        await b.step()
        world.tick(60)
        await b.step()

    with pytest.raises(asyncio.CancelledError):
        drive(a.run(nap))
    assert b.leading
    assert changes == [True, False]


def test_who_stands_by_says_for_whom(world: World) -> None:
    """Once for each leader: a Lease that somebody holds for years is otherwise a program that does nothing."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    naps = 0

    async def nap(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 5:
            raise asyncio.CancelledError
        world.tick(5)
        await a.step()

    with pytest.raises(asyncio.CancelledError):
        drive(b.run(nap))
    said = [(line["message"], line["leader"]) for line in world.logged()]
    assert said == [("standing by while another one leads", "a")]


def test_a_renewal_that_happened_without_an_answer(world: World) -> None:
    """The next step finds the Lease its own, and goes on."""
    a = elector(world, "a")
    drive(a.step())
    a.cluster.fault = fail(Unreachable("x"), "after", lambda request: request.verb == "patch")  # type: ignore[attr-defined]
    world.tick(5)
    with pytest.raises(Unreachable):
        drive(a.step())
    a.cluster.fault = None  # type: ignore[attr-defined]
    drive(a.step())
    assert a.remaining == 20


def test_release_lets_the_next_lead_at_once(world: World) -> None:
    """No wait for an expiry after SIGTERM."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(b.step())
    drive(a.release())
    assert not a.leading
    drive(b.step())
    assert b.leading


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_release_after_a_write_that_was_cut_off(world: World, first: bool, when: str) -> None:
    """SIGTERM while the Lease is taken or renewed: whether that happened is read, and the next one leads at once."""
    a, b = elector(world, "a"), elector(world, "b")
    if not first:
        drive(a.step())
    world.tick(5)
    cut = fail(asyncio.CancelledError(), when, lambda request: request.writes)  # type: ignore[arg-type]
    a.cluster.fault = cut  # type: ignore[attr-defined]
    with pytest.raises(asyncio.CancelledError):
        drive(a.step())
    a.cluster.fault = None  # type: ignore[attr-defined]
    drive(a.release())
    drive(b.step())
    assert (a.leading, b.leading) == (False, True)


def test_a_lease_of_others_is_not_released(world: World) -> None:
    """Somebody else has taken it while our write was under way."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    a.cluster.fault = fail(Unreachable("x"), "before", lambda request: request.writes)  # type: ignore[attr-defined]
    drive(b.step())
    world.tick(31)
    drive(b.step())
    with pytest.raises(Unreachable):
        drive(a.step())
    a.cluster.fault = None  # type: ignore[attr-defined]
    drive(a.release())
    assert b.leading
    assert lease(world).spec.holderIdentity == "b"


def test_somebody_else_may_annotate_the_lease(world: World) -> None:
    """`gpustack rollout pause` changes the version under the leader: it reads, keeps the annotation, goes on."""
    a = elector(world, "a")
    drive(a.step())
    world.server.edit(LEASES, NAME, {"metadata": {"annotations": {keys.PAUSED: "fire"}}}, NAMESPACE)
    drive(a.step())
    assert a.leading
    assert a.paused == "fire"
    assert lease(world).annotations[keys.PAUSED] == "fire"


def test_nothing_is_admitted_after_a_pause(world: World) -> None:
    """Not even by a leader that had not seen it: the announcement finds it (reconciler.md I14)."""
    a = elector(world, "a")
    drive(a.step())
    world.server.edit(LEASES, NAME, {"metadata": {"annotations": {keys.PAUSED: ""}}}, NAMESPACE)
    with pytest.raises(NotLeadingError, match="paused"):
        drive(a.admit({uid(world): Admission("n", "op1")}))
    assert not a.admitting


def test_an_admission_is_announced_in_the_renewal(world: World) -> None:
    """One compare-and-swap renews and announces; what was made is cleared, and its slot is the node's own."""
    a = elector(world, "a")
    drive(a.step())
    before = len(world.server.writes)
    drive(a.admit({uid(world): Admission("n", "op1")}))
    assert len(world.server.writes) == before + 1
    assert admissions_in(lease(world)) == {uid(world): Admission("n", "op1")}
    drive(a.step())
    assert uid(world) in a.admitting, "it is under way: nobody fences it"
    drive(a.done({uid(world)}))
    assert keys.ADMITTING not in lease(world).annotations


def test_what_is_admitted_is_in_the_ledger_until_it_ends(world: World) -> None:
    """It outlives the announcement and the leader; without a record it goes, but not at once: a watch may lag."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(a.admit({uid(world): Admission("n", "op1")}))
    drive(a.done({uid(world)}))
    drive(a.release())
    drive(b.step())
    assert {key: each.op for key, each in (b.ledger or {}).items()} == {uid(world): "op1"}
    b.tend({uid(world): "op1"})
    world.tick(600)
    drive(b.step())
    b.tend({})
    drive(b.step())
    assert uid(world) in (b.ledger or {})
    for _ in range(13):
        world.tick(10)
        drive(b.step())
        b.tend({})
    assert b.ledger == {}
    assert keys.LEDGER not in lease(world).annotations


def test_a_retry_that_was_announced_and_never_written_leaves_the_failed_attempt_in_the_ledger(world: World) -> None:
    """Until the next attempt has a record, the one before is what is open; afterwards it opens nothing any more."""
    a = elector(world, "a")
    drive(a.step())
    drive(a.admit({uid(world): Admission("n", "op1")}))
    drive(a.admit({uid(world): Admission("n", "op2", again="op1")}))
    drive(a.done({uid(world)}))
    for _ in range(30):
        a.tend({uid(world): "op1"})
        world.tick(10)
        drive(a.step())
    entry = (a.ledger or {})[uid(world)]
    assert entry.lists("op1")
    assert entry.lists("op2")
    assert not entry.lists("")
    a.tend({uid(world): "op2"})
    drive(a.step())
    b = elector(world, "b")
    drive(b.look())
    assert (b.ledger or {})[uid(world)].lists("op2")
    assert not (b.ledger or {})[uid(world)].lists("op1")


def test_the_late_patch_of_a_former_leader_conflicts(world: World) -> None:
    """a announces, stalls, loses the Lease; b fences the node; then a's patch arrives and fails."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(b.step())
    version = world.server.read(NODES, "n").metadata.resourceVersion
    drive(a.admit({uid(world): Admission("n", "op1")}))
    drive(b.step())
    world.tick(31)
    drive(b.step())
    assert b.leading
    assert not b.admitting
    with pytest.raises(Conflict):
        begin(world, version)
    assert keys.FENCE in world.server.read(NODES, "n").annotations


def test_a_new_leader_counts_what_is_announced_until_it_is_fenced(world: World) -> None:
    """While the node can't be read or written, the announcement stays in the budget, and says why; for a minute."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(b.step())
    drive(a.admit({uid(world): Admission("n", "op1")}))
    drive(b.step())
    world.tick(31)
    b.cluster.fault = fail(Unreachable("x"), "before", lambda request: request.kind == "nodes")  # type: ignore[attr-defined]
    drive(b.step())
    assert b.leading
    assert set(b.admitting) == {uid(world)}
    assert b.announced[uid(world)].trouble == "its admission was announced, and it can't be fenced: x"
    b.cluster.fault = None  # type: ignore[attr-defined]
    drive(b.step())
    assert not b.admitting


def test_an_admission_that_came_to_pass_is_not_fenced(world: World) -> None:
    """The node has the operation: nothing is written there."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(a.admit({uid(world): Admission("n", "op1")}))
    begin(world, world.server.read(NODES, "n").metadata.resourceVersion)
    drive(a.release())
    drive(b.step())
    assert not b.admitting
    assert keys.FENCE not in world.server.read(NODES, "n").annotations


@pytest.mark.parametrize("how", ["deleted", "made again"])
def test_an_announcement_for_a_node_that_is_gone_is_dropped(world: World, how: str) -> None:
    """A patch that carries the old UID or version can't reach a new node of that name."""
    a, b = elector(world, "a"), elector(world, "b")
    drive(a.step())
    drive(a.admit({uid(world): Admission("n", "op1")}))
    world.server.remove(NODES, "n")
    if how == "made again":
        world.node("n")
    drive(a.release())
    drive(b.step())
    assert not b.admitting


def test_an_answer_that_never_came_is_settled_by_the_same_leader(world: World) -> None:
    """The patch got no answer: it is left to the fence, which sees that it did not happen and makes sure of it."""
    a = elector(world, "a")
    drive(a.step())
    version = world.server.read(NODES, "n").metadata.resourceVersion
    drive(a.admit({uid(world): Admission("n", "op1")}))
    a.leave({uid(world)})
    drive(a.step())
    assert not a.admitting
    with pytest.raises(Conflict):
        begin(world, version)


def test_a_fence_is_fresh_each_time(world: World) -> None:
    """A patch that changes nothing raises no version and fences nothing: each fence has another value."""
    a = elector(world, "a")
    drive(a.step())
    values = set()
    for number in range(3):
        drive(a.admit({uid(world): Admission("n", f"op{number}")}))
        a.leave({uid(world)})
        drive(a.step())
        values.add(world.server.read(NODES, "n").annotations[keys.FENCE])
    assert len(values) == 3


@pytest.mark.parametrize("error", [Forbidden("a policy denies it", 403), ApiError("webhook", 500), Unreachable("none")])
def test_a_node_that_can_not_be_fenced_holds_up_no_other(world: World, error: ApiError) -> None:
    """Each admission is settled by itself, whichever comes first; the one that can't be counts for a minute more."""
    for name in ("a1", "z1"):
        world.node(name)
    a = elector(world, "a")
    drive(a.step())
    uids = {name: world.server.read(NODES, name).uid for name in ("a1", "n", "z1")}
    drive(a.admit({uids[name]: Admission(name, f"op-{name}") for name in uids}))
    a.leave(uids.values())
    a.cluster.fault = fail(error, "before", lambda each: (each.verb, each.name) == ("patch", "n"))  # type: ignore[attr-defined]
    drive(a.step())
    assert set(a.admitting) == {uids["n"]}
    assert str(error) in a.announced[uids["n"]].trouble
    for _ in range(13):
        world.tick(5)
        drive(a.step())
    assert a.leading
    assert not a.admitting


def test_a_node_that_has_changed_needs_no_fence(world: World) -> None:
    """The late patch carries the version that it was decided on: where that is no more, nothing has to be written."""
    a = elector(world, "a")
    drive(a.step())
    version = world.server.read(NODES, "n").metadata.resourceVersion
    drive(a.admit({uid(world): Admission("n", "op1", version)}))
    world.server.edit(NODES, "n", {"metadata": {"labels": {"x": "y"}}})
    a.leave({uid(world)})
    drive(a.step())
    assert not a.admitting
    assert keys.FENCE not in world.server.read(NODES, "n").annotations
    with pytest.raises(Conflict):
        begin(world, version)


def test_the_lease_has_room_for_all_that_it_may_hold(world: World) -> None:
    """As many announcements, open operations and times as there may be, with names as long as they may be: what an
    object's annotations may hold (256 KiB) is not reached."""
    a = elector(world, "a")
    drive(a.step())
    uids = [f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(OPEN)]
    for begin in range(0, OPEN, AT_ONCE):
        some = uids[begin : begin + AT_ONCE]
        node = "n" * 63
        drive(a.admit({uid: Admission(node, "f" * 12, "9" * 10, False, "e" * 12, "d" * 8) for uid in some}))
        if begin + AT_ONCE < OPEN:
            drive(a.done(set(some)))
    now = a.clock.now()
    a.tend({}, Seen({(uid, "driver-failing still"): now for uid in uids}))
    drive(a.step())
    size = sum(len(key) + len(text) for key, text in lease(world).annotations.items())
    assert len(a.ledger or {}) == OPEN
    assert len(a.times.first) == KEPT
    assert 150_000 < size < 256 * 1024
