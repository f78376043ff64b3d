"""The list-and-watch loop: it follows the cluster whatever becomes of the watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gpustack.api.objects import Node
from gpustack.reconciler.shell.cluster import (
    NODES,
    Answer,
    ApiError,
    Change,
    Forbidden,
    Gone,
    Kind,
    NotFound,
    Selection,
    TooMany,
    Unreachable,
)
from gpustack.reconciler.shell.watch import Watch, newer
from tests.reconciler.memory import Request, drive
from tests.reconciler.shell import World, fail


@pytest.fixture
def world() -> World:
    """A cluster of two nodes."""
    made = World()
    made.node("a")
    made.node("b")
    return made


class Follower:
    """A watch that runs, with the pauses that it makes."""

    def __init__(self, world: World) -> None:
        self.world, self.changes, self.pauses = world, 0, list[float]()
        self.watch: Watch[Node] = Watch(
            world.cluster, NODES, Selection(), world.clock, world.log, self.note, self.sleep
        )

    def note(self) -> None:
        """Something is new."""
        self.changes += 1

    async def sleep(self, seconds: float) -> None:
        """Remember the pause, and make none."""
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def labels(self) -> dict[str, str]:
        """What the store believes, by node."""
        return {node.name: node.labels.get("x", "") for node in self.watch.all()}

    def during(self, *steps: Callable[[], object]) -> None:
        """Run the watch, do STEPS one after another, and let it settle after each."""

        async def scenario() -> None:
            task = asyncio.create_task(self.watch.run())
            for step in (lambda: None, *steps):
                step()
                for _ in range(20):
                    await asyncio.sleep(0)
            task.cancel()

        asyncio.run(scenario())


def put(world: World, name: str, value: str) -> Callable[[], object]:
    """A step that labels a node."""
    return lambda: world.server.edit(NODES, name, {"metadata": {"labels": {"x": value}}})


def test_follows(world: World) -> None:
    """What is there, what is added, what changes, what goes."""
    follower = Follower(world)
    follower.during(put(world, "a", "1"), lambda: world.node("c"), lambda: world.server.remove(NODES, "b"))
    assert follower.labels() == {"a": "1", "c": ""}
    assert follower.watch.synced
    assert follower.changes == 4
    assert world.cluster.requests == {("list", "nodes"): 1, ("watch", "nodes"): 1}


def test_heartbeats_are_no_news(world: World) -> None:
    """A change of nothing that the slim model has wakes nobody."""
    follower = Follower(world)
    follower.during(lambda: world.server.edit(NODES, "a", {"status": {"images": [{"names": ["x"]}]}}))
    assert follower.changes == 1
    assert follower.watch.all()[0].metadata.resourceVersion == world.server.read(NODES, "a").metadata.resourceVersion


def test_a_watch_that_ends_goes_on_where_it_was(world: World) -> None:
    """The server's timeout costs a request, not a list."""
    follower = Follower(world)
    follower.during(put(world, "a", "1"), world.cluster.end_watches, put(world, "a", "2"))
    assert follower.labels()["a"] == "2"
    assert world.cluster.requests["list", "nodes"] == 1


@pytest.mark.parametrize("gone", ["at the start", "in the middle"])
def test_gone_lists_anew(world: World, gone: str) -> None:
    """Both kinds of 410: of the request, and as an ERROR event."""
    follower = Follower(world)

    def lose() -> None:
        world.server.remove(NODES, "b")
        world.server.compact()
        world.cluster.end_watches()

    steps = [lose] if gone == "at the start" else [lambda: world.cluster.end_watches(gone=True)]
    follower.during(*steps, put(world, "a", "1"))
    assert follower.labels()["a"] == "1"
    assert ("b" in follower.labels()) == (gone == "in the middle")
    assert world.cluster.requests["list", "nodes"] == 2
    assert len(follower.pauses) == 1


def test_broken_connections_are_tried_again_with_pauses(world: World) -> None:
    """Each try after a longer pause at most; what the server asks for is kept."""
    follower = Follower(world)
    errors = [Unreachable("x"), Unreachable("x"), TooMany("x", 30.0)]

    def fault(_: Request, when: str) -> None:
        if when == "before" and errors:
            raise errors.pop(0)

    world.cluster.fault = fault
    follower.during()
    assert follower.labels() == {"a": "", "b": ""}
    assert len(follower.pauses) == 3
    assert follower.pauses[0] <= 0.5
    assert follower.pauses[1] <= 1.0
    assert follower.pauses[2] >= 30.0


def test_a_server_that_ends_watches_at_once_is_not_asked_at_once(world: World) -> None:
    """No hot loop (reconciler.md I26)."""
    follower = Follower(world)
    follower.during(*[world.cluster.end_watches] * 5)
    assert len(follower.pauses) == 5
    assert follower.pauses[4] > 0.1 * 0.5 * 16 * 0.99


def tampered(world: World, how: Callable[[Sequence[Change[Any]]], Sequence[Change[Any]]]) -> Follower:
    """A follower of a watch that says things wrong."""

    def tamper(_: Kind[Any], changes: Sequence[Change[Any]]) -> Sequence[Change[Any]]:
        return how(changes)

    world.cluster.tamper = tamper
    return Follower(world)


def twice(world: World) -> Callable[[], object]:
    """A step of two changes."""

    def step() -> None:
        put(world, "a", "1")()
        put(world, "a", "2")()

    return step


def test_duplicates_are_harmless(world: World) -> None:
    """A change that is told twice is one."""
    follower = tampered(world, lambda changes: [change for change in changes for _ in range(2)])
    follower.during(put(world, "a", "1"))
    assert follower.labels()["a"] == "1"
    assert follower.changes == 2


@pytest.mark.parametrize("how", ["late", "lost"])
def test_late_and_lost_changes_are_mended_by_reading(world: World, how: str) -> None:
    """The store may be behind; a conflict makes one object be read again, and a list from time to time all."""
    follower = tampered(world, lambda changes: changes[::-1] if how == "late" else [])
    follower.during(twice(world))
    assert follower.labels()["a"] == ("1" if how == "late" else "")
    drive(follower.watch.reread("a"))
    assert follower.labels()["a"] == "2"
    put(world, "b", "3")()
    drive(follower.watch.refresh())
    assert follower.labels() == {"a": "2", "b": "3"}


def test_reading_what_is_gone_forgets_it(world: World) -> None:
    """A deletion that was never told."""
    follower = tampered(world, lambda _: [])
    follower.during(lambda: world.server.remove(NODES, "a"))
    assert "a" in follower.labels()
    drive(follower.watch.reread("a"))
    assert "a" not in follower.labels()


def test_a_late_deletion_spares_the_successor(world: World) -> None:
    """The node was deleted and made again: news of the first one's end does not touch the second."""

    def step() -> None:
        world.server.remove(NODES, "a")
        world.node("a")

    follower = tampered(world, lambda changes: changes[::-1])
    follower.during(step)
    assert follower.watch.get("a") == world.server.read(NODES, "a")


def test_our_own_writes_are_known_at_once(world: World) -> None:
    """Before the watch tells, and against older news that it brings; not for ever, should the news never come."""
    follower = Follower(world)
    drive(follower.watch.refresh())
    old = Change("MODIFIED", world.server.read(NODES, "a"))
    answer = drive(world.cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "ours"}}}))
    follower.watch.learn(answer)
    assert follower.labels()["a"] == "ours"
    follower.watch._apply(old)
    assert follower.labels()["a"] == "ours"
    world.tick(11)
    follower.watch._apply(old)
    assert follower.labels()["a"] == ""
    follower.watch.learn(Answer(body={"metadata": 5}))


def test_a_refresh_replaces_what_an_older_watch_says(world: World) -> None:
    """After a new list, changes from before it are not applied: the watch starts again from the list."""
    follower = Follower(world)

    def step() -> None:
        put(world, "a", "1")()
        drive(follower.watch.refresh())
        put(world, "a", "2")()

    follower.during(step, lambda: None)
    assert follower.labels()["a"] == "2"
    assert world.cluster.requests["watch", "nodes"] == 2


def test_everything_is_listed_from_time_to_time(world: World) -> None:
    """In case that something was never told."""
    follower = tampered(world, lambda _: [])
    follower.during(put(world, "a", "1"), lambda: world.tick(1801), world.cluster.end_watches)
    assert follower.labels()["a"] == "1"


def test_what_the_list_raises_is_retried(world: World) -> None:
    """Gone while listing too."""
    errors = [Gone("x", 410)]
    world.cluster.fault = lambda request, when: (
        fail(errors.pop(), when, lambda _: True)(request, when) if errors and request.verb == "list" else None
    )
    follower = Follower(world)
    follower.during()
    assert follower.watch.synced


@pytest.mark.parametrize(
    ("error", "level"), [(NotFound("x", 404), "warning"), (Unreachable("x"), "warning"), (Forbidden("x", 403), "error")]
)
def test_what_cannot_be_listed_is_said_once(world: World, error: ApiError, level: str) -> None:
    """A missing CustomResourceDefinition stops everything, so it stands in the log; in five minutes for once."""
    world.log.level = "info"
    world.cluster.fault = fail(error, "before", lambda request: request.verb == "list")
    follower = Follower(world)
    follower.during(*[lambda: world.tick(1)] * 10, lambda: world.tick(300))
    said = [(line["level"], line["kind"]) for line in world.logged()]
    assert said == [(level, "nodes")] * 2
    assert len(follower.pauses) > 20
    assert ("CustomResourceDefinition" in world.logged()[0]["error"]) == isinstance(error, NotFound)


def test_watches_that_end_are_nothing_to_tell(world: World) -> None:
    """They do all the time."""
    world.log.level = "info"
    world.cluster.fault = fail(Unreachable("x"), "before", lambda request: request.verb == "watch")
    Follower(world).during(lambda: world.tick(1))
    assert world.logged() == []


def test_a_line_ends_the_trouble(world: World) -> None:
    """Watches that tell something and then break, minute after minute: each is a new trouble, and none is waited for
    longer than the first (a roll-out waited 55 s for its watch after some quiet minutes)."""
    follower = Follower(world)
    lines = 8

    def tamper(_: Kind[Any], changes: Sequence[Change[Any]]) -> Sequence[Change[Any]]:
        return changes

    def fault(request: Request, when: str) -> None:
        nonlocal lines
        if request.verb == "watch" and when == "after" and lines:
            lines -= 1
            raise Unreachable("it broke")

    world.cluster.tamper, world.cluster.fault = tamper, fault
    follower.during(*[put(world, "a", str(number)) for number in range(20)])
    assert lines == 0
    assert max(follower.pauses) <= 1.0


def test_a_line_that_can_not_be_read_is_listed_over(world: World) -> None:
    """The same watch would come to it again and again, and the store would stay as it was: a list is read instead."""
    follower = Follower(world)
    broken = True

    def tamper(_: Kind[Any], changes: Sequence[Change[Any]]) -> Sequence[Change[Any]]:
        nonlocal broken
        if broken and changes:
            broken = False
            raise ApiError("nodes: the answer can't be read")
        return changes

    world.cluster.tamper = tamper
    follower.during(put(world, "a", "1"), put(world, "b", "2"))
    assert world.cluster.requests["list", "nodes"] == 2
    assert follower.labels() == {"a": "1", "b": "2"}


def test_our_own_write_is_no_news_where_another_came_after_it(world: World) -> None:
    """The watch has told of a controller's write on top of ours before our own answer came: the newer one stays."""
    follower = Follower(world)
    drive(follower.watch.refresh())
    answer = drive(world.cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "ours"}}}))
    world.server.edit(NODES, "a", {"metadata": {"labels": {"x": "theirs"}}})
    follower.watch._apply(Change("MODIFIED", world.server.read(NODES, "a")))
    follower.watch.learn(answer)
    assert follower.labels()["a"] == "theirs"
    assert follower.watch.get("a") == world.server.read(NODES, "a")


@pytest.mark.parametrize(
    ("one", "other", "after"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("b", "a", True), ("a", "a", False), ("7", "", True)],
)
def test_versions_are_compared_as_numbers(one: str, other: str, after: bool) -> None:
    """Where they are numbers; whatever else a server says may only be told apart."""
    assert newer(one, other) is after
