"""The loop: passes on change, by the leader alone, cut off with its lead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.core import engine
from gpustack.reconciler.core.actions import Decision, PatchNode, Tell
from gpustack.reconciler.core.engine import Wanted
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.clock import Clock
from gpustack.reconciler.shell.cluster import LEASES, NODES, Unreachable
from gpustack.reconciler.shell.lease import NAME, Terms
from gpustack.reconciler.shell.runner import Runner
from tests.reconciler.memory import Request, drive
from tests.reconciler.shell import NAMESPACE, World, fail

FAST = Terms(duration=2, deadline=1.0, retry=0.05)


def mark(known: Snapshot) -> Decision:
    """A decision: nodes without the label get it, and while one lacks it look again soon."""
    todo = [node for node in known.nodes if node.labels.get("x") != "1"]
    actions = tuple(
        PatchNode(node.name, node.uid, node.metadata.resourceVersion, "mark", labels={"x": "1"}) for node in todo
    )
    return Decision(actions)


class Passes:
    """A core that counts."""

    def __init__(self, decide: Callable[[Snapshot], Decision] = mark) -> None:
        self.known: list[Snapshot] = []
        self._decide = decide

    def decide(self, known: Snapshot) -> Decision:
        """As the engine."""
        self.known.append(known)
        return self._decide(known)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    """In place of the engine."""
    made = Passes()
    monkeypatch.setattr(engine, "survey", lambda known: Wanted())
    monkeypatch.setattr(engine, "decide", made.decide)
    return made


@pytest.fixture
def world() -> World:
    """Two nodes."""
    made = World()
    made.node("a")
    made.node("b")
    return made


def runner(world: World, name: str = "me") -> Runner:
    """A replica that is quick, on real time."""
    return Runner(world.client(name), NAMESPACE, name, Clock(), world.log, terms=FAST, settle=0.01)


async def until(test: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait for it."""
    async with asyncio.timeout(seconds):
        while not test():
            await asyncio.sleep(0.01)


def running(of: Runner, *steps: Callable[[], Any]) -> None:
    """Run a replica; after each step, wait until what it returns is true."""

    async def scenario() -> None:
        task = asyncio.create_task(of.run())
        try:
            for step in steps:
                await until(step)
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


def labelled(world: World, *names: str) -> Callable[[], bool]:
    """Whether nodes have what the decision gives."""
    return lambda: all(world.server.read(NODES, name).labels.get("x") == "1" for name in names)


def test_a_change_is_a_pass(world: World, passes: Passes) -> None:
    """At start, and whenever something is new; the Lease is free at the end."""
    made = runner(world)

    def add() -> bool:
        world.node("c")
        return True

    running(made, labelled(world, "a", "b"), add, labelled(world, "c"))
    assert made.ready
    assert made.healthy
    assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == ""


def test_nothing_is_written_when_nothing_changes(world: World, passes: Passes) -> None:
    """Two passes on the same state: the second writes nothing (reconciler.md I10)."""
    made = runner(world)

    async def twice() -> int:
        await made.sources.refresh()
        await made.elector.step()
        await made.once()
        before = len(world.server.writes)
        await made.once()
        return len(world.server.writes) - before

    assert drive(twice()) == 0


def test_who_does_not_lead_does_nothing(world: World, passes: Passes) -> None:
    """A standby watches, is ready, and decides nothing."""
    other = runner(world, "other")
    drive(other.elector.step())
    made = runner(world)
    made.terms = Terms()
    running(made, lambda: made.ready, lambda: made.metrics.leader.values == {(): 0.0})
    assert passes.known == []


def test_time_alone_is_a_reason(world: World, passes: Passes) -> None:
    """A decision says when to look again."""
    passes._decide = lambda _: Decision(again=0.05)
    running(runner(world), lambda: len(passes.known) > 3)


def test_a_pause_of_the_fleet_and_its_end_are_reasons(world: World, passes: Passes) -> None:
    """Nobody else changes anything: the pass that knows of it comes with the next renewal of the Lease."""
    made = runner(world)

    def annotate(value: str | None) -> bool:
        world.server.edit(LEASES, NAME, {"metadata": {"annotations": {keys.PAUSED: value}}}, NAMESPACE)
        return True

    running(
        made,
        labelled(world, "a", "b"),
        lambda: annotate("fire"),
        lambda: passes.known[-1].paused == "fire",
        lambda: annotate(None),
        lambda: passes.known[-1].paused == "",
    )


def test_failures_are_tried_again_with_pauses(world: World, passes: Passes) -> None:
    """A request that fails is decided again in a later pass, and not at once."""
    made = runner(world)
    patches = fail(Unreachable("x"), "before", lambda request: (request.verb, request.kind) == ("patch", "nodes"))
    made.cluster.fault = patches  # type: ignore[attr-defined]

    def mend() -> bool:
        if len(passes.known) < 1:
            return False
        made.cluster.fault = None  # type: ignore[attr-defined]
        return True

    running(made, mend, labelled(world, "a", "b"))
    assert len(passes.known) < 6


def test_a_pass_is_cut_off_with_the_lead(world: World, passes: Passes) -> None:
    """A request hangs, the Lease can't be renewed: within the deadline the pass is over, and another may lead."""
    made = runner(world)
    hung = asyncio.Event()

    async def fault(request: Request, when: str) -> None:
        if hung.is_set() and request.kind == "leases":
            raise Unreachable("x")
        if (request.verb, request.kind, request.name, when) == ("patch", "nodes", "a", "before"):
            hung.set()
            await asyncio.sleep(60)

    made.cluster.fault = fault  # type: ignore[attr-defined]
    over = ("a pass failed", "a pass was cut off: this replica no longer leads")
    running(
        made,
        hung.is_set,
        lambda: not made.elector.leading,
        lambda: any(line["message"] in over for line in world.logged()),
    )
    assert world.server.read(NODES, "a").labels == {}


def test_nothing_is_admitted_on_old_news(world: World, passes: Passes) -> None:
    """The watch missed that a node went out of service: before an admission nodes are read, and it is decided again."""

    def admit(known: Snapshot) -> Decision:
        down = sum(node.spec.unschedulable for node in known.nodes)
        node = known.nodes[0]
        action = PatchNode(
            node.name,
            node.uid,
            node.metadata.resourceVersion,
            "Held",
            labels={"x": "1"},
            unschedulable=True,
            admits="1",
        )
        return Decision((action,) if down == 0 else ())

    passes._decide = admit
    made = runner(world)

    async def scenario() -> None:
        await made.sources.refresh()
        await made.elector.step()
        world.server.edit(NODES, "b", {"spec": {"unschedulable": True}})
        await made.once()

    drive(scenario())
    assert world.server.read(NODES, "a").labels == {}
    assert len(passes.known) == 2


def test_announced_admissions_are_in_the_snapshot(world: World, passes: Passes) -> None:
    """The budget counts what a former leader began, and the fleet's pause is known."""
    made = runner(world)
    annotations = {keys.ADMITTING: '{"u": {"node": "a", "op": "1"}}', keys.PAUSED: "fire"}
    metadata = {"name": NAME, "namespace": NAMESPACE, "annotations": annotations}
    world.server.put(LEASES, {"metadata": metadata, "spec": {}})
    drive(made.plan())
    assert (set(passes.known[0].admitting), passes.known[0].paused) == ({"u"}, "fire")


def test_a_plan_changes_nothing(world: World, passes: Passes) -> None:
    """The same decision that would be carried out (reconciler.md I22), and no write."""
    made = runner(world)
    decision = drive(made.plan())
    assert [action.node for action in decision.actions if isinstance(action, PatchNode)] == ["a", "b"]
    assert world.server.writes == []


def test_a_defect_is_not_hidden(world: World, passes: Passes) -> None:
    """What is no error of the API server ends the program, and the Lease is free for another replica."""

    def broken(_: Snapshot) -> Decision:
        raise ZeroDivisionError

    passes._decide = broken
    made = runner(world)

    async def scenario() -> None:
        async with asyncio.timeout(5):
            await made.run()

    with pytest.raises(ExceptionGroup) as error:
        asyncio.run(scenario())
    assert isinstance(error.value.exceptions[0], ZeroDivisionError)
    assert world.server.read(LEASES, NAME, NAMESPACE).spec.holderIdentity == ""


def test_events_hold_up_no_pass(world: World) -> None:
    """The API server takes for ever over an Event: passes go on meanwhile."""

    def decide(known: Snapshot) -> Decision:
        return Decision(mark(known).actions, (Tell("a", "Reason", "text"),))

    async def fault(request: Request, when: str) -> None:
        if request.kind == "events" and when == "before":
            await asyncio.sleep(3600)

    made = runner(world)
    made.cluster.fault = fault  # type: ignore[attr-defined]

    def add() -> bool:
        world.node("c")
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "survey", lambda known: Wanted())
        patch.setattr(engine, "decide", decide)
        running(made, labelled(world, "a", "b"), add, labelled(world, "c"))


def test_the_loop_paces_itself_by_its_work(world: World, passes: Passes) -> None:
    """A pass that waited long for the API server has not worked long: the next begins when there is something new."""

    async def fault(request: Request, when: str) -> None:
        if request.kind == "nodes" and request.verb == "patch" and when == "before":
            await asyncio.sleep(0.3)

    made = runner(world)
    made.cluster.fault = fault  # type: ignore[attr-defined]
    began = 0.0

    def add() -> bool:
        nonlocal began
        world.node("c")
        began = time.monotonic()
        return True

    running(made, labelled(world, "a", "b"), add, labelled(world, "c"))
    assert time.monotonic() - began < 0.75, "the pass itself takes 0.3 s"
