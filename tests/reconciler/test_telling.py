"""What people see: logs, metrics, Events, the HTTP pages."""

from __future__ import annotations

import asyncio
import contextlib
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gpustack.api import keys
from gpustack.api.node_policy import Breaker, NodePolicy, Status
from gpustack.api.objects import Metadata
from gpustack.reconciler.core import status
from gpustack.reconciler.core.actions import Decision, DeletePod, Evict, PatchNode, PatchStatus, Tell, Wait, WaitKind
from gpustack.reconciler.core.record import Last, Operation, read, write
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell import report
from gpustack.reconciler.shell.cluster import EVENTS, NODES, Forbidden
from gpustack.reconciler.shell.events import Events
from gpustack.reconciler.shell.health import Health
from gpustack.reconciler.shell.log import Log
from gpustack.reconciler.shell.metrics import Histogram, Metrics, Series
from tests.reconciler.memory import drive
from tests.reconciler.shell import World, fail

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


def test_log_is_one_object_a_line() -> None:
    """Level, time, message and whatever belongs to it; lines below the level are not written."""
    stream = io.StringIO()
    log = Log("info", stream, lambda: NOW)
    log.debug("hidden")
    log.warning("two\nlines", node="a", error=ValueError("x"))
    lines = stream.getvalue().splitlines()
    assert [msgspec.json.decode(line) for line in lines] == [
        {"time": "2026-01-05T09:00:00Z", "level": "warning", "message": "two\nlines", "node": "a", "error": "x"}
    ]


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    """A closed stream is no reason to stop in the middle of an operation."""
    stream = io.StringIO()
    stream.close()
    Log("info", stream).info("x")


def test_prometheus_text() -> None:
    """The format of the Prometheus text exposition: HELP, TYPE, escaped label values."""
    series = Series("x", "A gauge.", ("policy",))
    series.set(2, 'a"b\\c\nd')
    assert list(series.lines()) == ['gpustack_reconciler_x{policy="a\\"b\\\\c\\nd"} 2']
    text = Metrics().text()
    assert "# TYPE gpustack_reconciler_operation_seconds histogram\n" in text
    assert "# HELP gpustack_reconciler_leader " in text


def test_histogram_buckets_are_cumulative() -> None:
    """A bucket counts all values up to its bound, +Inf all of them."""
    histogram = Histogram("h", "", (1, 2.5))
    for value in (0.5, 1, 2, 9):
        histogram.observe(value)
    assert list(histogram.lines()) == [
        'gpustack_reconciler_h_bucket{le="1"} 2',
        'gpustack_reconciler_h_bucket{le="2.5"} 3',
        'gpustack_reconciler_h_bucket{le="+Inf"} 4',
        "gpustack_reconciler_h_sum 12.5",
        "gpustack_reconciler_h_count 4",
    ]


def operation(**more: Any) -> Operation:
    """An open operation of policy p."""
    made: dict[str, Any] = {"id": "1", "acts": ["driver"], "phase": "Acting", "since": NOW, "started": NOW}
    return Operation(**{**made, "policy": "p", **more})


def policy(**status: Any) -> NodePolicy:
    """The policy p."""
    return NodePolicy(metadata=Metadata(name="pool", uid="p"), status=Status(**status))


def test_gauges_show_open_operations_only(world: World) -> None:
    """A series for each node that something happens on, none for the others; waits by reason; the new status counts."""
    world.node("a", annotations={keys.OPERATION: write(operation())})
    world.node("b")
    world.node("c", annotations={keys.OPERATION: "not a record"})
    nodes = drive(world.cluster.list(NODES)).items
    metrics, pool = Metrics(), policy(nodes=1)
    made = Decision(
        (PatchStatus(pool, Status(nodes=3, current=2, breaker=Breaker(open=True))),),
        waits=(Wait("b", "pool", "budget", "x"), Wait("c", "pool", "budget", "y")),
    )
    report.show(metrics, Snapshot(NOW, "n", nodes, [pool]), made)
    lines = metrics.text().splitlines()
    since = f"{int(NOW.timestamp())}"
    for line in (
        'operations{policy="pool",kind="driver",phase="Acting"} 1',
        f'node_phase_since_seconds{{node="a",policy="pool",kind="driver",phase="Acting"}} {since}',
        'waiting{policy="pool",reason="budget"} 2',
        'nodes{policy="pool",state="all"} 3',
        'breaker_open{policy="pool"} 1',
    ):
        assert f"gpustack_reconciler_{line}" in lines
    assert sum("node_phase_since_seconds{" in line for line in lines) == 1
    report.clear(metrics)
    assert "Acting" not in metrics.text()


def test_uncovered_nodes_are_counted() -> None:
    """What the alert NodeNotCovered looks at: nodes without a driver DaemonSet, and under "" those of no policy."""
    metrics = Metrics()
    waits = (Wait("a", "pool", "not-covered", "x"), Wait("b", "", "membership", "y"), Wait("c", "", "membership", "y"))
    report.show(metrics, Snapshot(NOW, "n", policies=[policy()]), Decision(waits=waits))
    assert metrics.nodes.values["pool", "uncovered"] == 1
    assert metrics.nodes.values["", "uncovered"] == 2


def test_since_when_nothing_moves(world: World) -> None:
    """Something is due and no node of the policy moves on: since when is kept, whatever the reason is by then. A step
    of one of its nodes begins it anew; what somebody has paused, or nothing that is due, ends it."""
    world.node("a", annotations={keys.OPERATION: write(operation())})
    nodes = drive(world.cluster.list(NODES)).items
    metrics = Metrics()

    def after(minutes: int, *kinds: WaitKind, moves: bool = False) -> list[float]:
        known = Snapshot(NOW + timedelta(minutes=minutes), "n", nodes, [policy()])
        made = Decision(waits=tuple(Wait("a", "pool", kind, "x") for kind in kinds))
        step = PatchNode("a", "", "", "", annotations={keys.OPERATION: write(operation(phase="Verifying"))})
        report.stand(metrics, known, made, [step] if moves else [])
        return [(NOW + timedelta(minutes=minutes)).timestamp() - at for at in metrics.still.values.values()]

    assert after(0, "refused") == [0]
    assert after(50, "checking") == [3000]
    assert after(51, "parallel", "acting", moves=True) == [0]
    assert after(71, "parallel") == [1200]
    assert after(72, "paused") == []
    assert after(73) == []
    assert after(80, "blocked", "paused") == [0]


@pytest.mark.parametrize(
    ("annotations", "outcome"),
    [
        ({keys.OPERATION: None, keys.LAST: write(Last(outcome="done"))}, "done"),
        ({keys.OPERATION: write(operation(phase="Quarantine"))}, "quarantine"),
        ({keys.OPERATION: write(operation(phase="Verifying"))}, None),
        ({}, None),
    ],
)
def test_finished_operations_are_measured(
    world: World, annotations: dict[str, str | None], outcome: str | None
) -> None:
    """From the start of the operation to its end, by outcome; a step in between is no end."""
    world.node("a", annotations={keys.OPERATION: write(operation())})
    before = {"a": world.server.read(NODES, "a")}
    metrics, action = Metrics(), PatchNode("a", "", "", "", annotations=annotations)
    report.finished(metrics, Snapshot(NOW, "n", policies=[policy()]), before, action, NOW + timedelta(minutes=10))
    assert metrics.seconds.sums == ({("pool", "driver", outcome): 600} if outcome else {})


def test_decisions_in_words() -> None:
    """`--plan` names each action with its reason, and who waits for what."""
    made = Decision(
        (
            PatchNode("a", "", "", "Held", labels={"x": "y", "z": None}, unschedulable=True),
            Evict("a", "work", "p", "", "uses a GPU"),
            DeletePod("a", "n", "d", "", "old"),
            PatchStatus(policy(), Status()),
        ),
        (Tell("a", "Quarantine", "look"),),
        (Wait("b", "pool", "budget", "1 of 1"),),
    )
    assert list(report.describe(made)) == [
        "node a: Held [cordon, x=y, z-]",
        "node a: evict pod work/p: uses a GPU",
        "node a: delete pod n/d: old",
        "NodePolicy pool: write its status",
        "node a: event Quarantine: look",
        "node b: waits (budget): 1 of 1",
    ]


@pytest.fixture
def world() -> World:
    """An empty cluster."""
    return World()


def events(world: World, **bounds: Any) -> Events:
    """A sender of Events."""
    return Events(world.cluster, "me", world.clock, world.log, Metrics(), lambda node: f"uid-{node}", **bounds)


def said(sender: Events, *tells: Tell) -> None:
    """Tell and send."""
    sender.tell(tells)
    drive(sender.send())


def test_events_are_told_once(world: World) -> None:
    """The same text on a node once in ten minutes; another text at once. Node Events are in `default`."""
    sender = events(world)
    tell = Tell("a", "Quarantined", "the driver failed", warning=True)
    for each in (tell, tell, Tell("a", "Quarantined", "again"), Tell("b", "Quarantined", "the driver failed")):
        said(sender, each)
    world.tick(601)
    said(sender, Tell("a", "Quarantined", "again"))
    found = list(world.server.all(EVENTS))
    assert [(each["regarding"]["name"], each["note"]) for each in found] == [
        ("a", "the driver failed"),
        ("a", "again"),
        ("b", "the driver failed"),
        ("a", "again"),
    ]
    first = found[0]
    assert (first["metadata"]["namespace"], first["type"], first["regarding"]["uid"]) == ("default", "Warning", "uid-a")
    assert first["reportingController"] == "gpustack.dev/reconciler"


def test_events_are_bounded(world: World) -> None:
    """A thousand failing nodes send as many Events as the bucket holds; the rest is counted."""
    sender = events(world, burst=50)
    said(sender, *(Tell(f"n{number}", "Quarantined", "x") for number in range(1000)))
    assert len(list(world.server.all(EVENTS))) == 50
    assert sender.metrics.events_dropped.values == {(): 950}
    world.tick(5)
    said(sender, *(Tell(f"m{number}", "Quarantined", "x") for number in range(20)))
    assert len(list(world.server.all(EVENTS))) == 60


def test_events_wait_in_a_queue_that_is_bounded(world: World) -> None:
    """Telling sends nothing, and so waits for nothing; what no longer fits is dropped and counted."""
    sender = events(world, burst=50, most=20)
    sender.tell(Tell(f"n{number}", "Quarantined", "x") for number in range(30))
    assert world.cluster.count == 0
    assert sender.metrics.events_dropped.values == {(): 10}
    drive(sender.send())
    assert len(list(world.server.all(EVENTS))) == 20


def test_events_that_fail_stop_nothing(world: World) -> None:
    """Nothing depends on an Event."""
    world.cluster.fault = fail(Forbidden("no"), "before", lambda request: request.kind == "events")
    said(events(world), Tell("a", "x", "y"))


# --- HTTP -------------------------------------------------------------------------------------------------------------


def ask(*texts: bytes, health: Health | None = None, pause: float = 0) -> list[bytes]:
    """What a server answers to raw requests, all at once."""
    server = health or Health({"/healthz": lambda: (200, "ok\n"), "/bad": lambda: (503, "no\n")})
    server.port, server.host = 0, "127.0.0.1"

    async def one(port: int, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(text)
            await writer.drain()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def all_of_them() -> list[bytes]:
        port = await server.start()
        answers = await asyncio.gather(*(one(port, text) for text in texts))
        await asyncio.sleep(pause)
        await server.stop()
        return list(answers)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET /healthz?verbose HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /bad HTTP/1.1\r\n\r\n", b"503"),
        (b"GET /other HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_pages(text: bytes, status: bytes) -> None:
    """What each request is answered with; the connection is closed after it."""
    answer = ask(text)[0]
    assert answer.split(b" ")[1] == status
    assert b"Connection: close\r\n" in answer


def test_head_has_no_body() -> None:
    """HEAD is GET without the text."""
    assert ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")[0].endswith(b"Content-Length: 3\r\nConnection: close\r\n\r\n")


def test_slow_and_large_requests_are_cut_off() -> None:
    """A head that never ends, in time or in size, gets no answer, and others get theirs meanwhile."""
    health = Health({"/healthz": lambda: (200, "ok\n")}, seconds=0.2)
    slow, large, good = ask(
        b"GET /healthz HTTP/1.1\r\n",
        b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000,
        b"GET /healthz HTTP/1.1\r\n\r\n",
        health=health,
    )
    assert (slow, large) == (b"", b"")
    assert good.startswith(b"HTTP/1.1 200")


def test_connections_that_say_nothing_keep_nobody_out() -> None:
    """Forty idle ones, and a probe is answered at once; they are closed instead, the oldest first, and never more are
    open than the server takes."""
    health = Health({"/healthz": lambda: (200, "ok\n")}, port=0, host="127.0.0.1", seconds=60)

    async def scenario() -> tuple[bytes, list[bytes]]:
        port = await health.start()
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        for _, writer in idle:
            writer.write(b"GET")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(5):
            answer = await reader.read()
            closed = [await _rest(each) for each, _ in idle[:9]]
        await health.stop()
        for each in (writer, *(each for _, each in idle)):
            await _close(each)
        return answer, closed

    answer, closed = asyncio.run(scenario())
    assert answer.startswith(b"HTTP/1.1 200")
    assert closed == [b""] * 9


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_whoever_has_most_connections_loses_one() -> None:
    """One connection of another address stays, though it is the oldest of all."""
    health = Health({"/healthz": lambda: (200, "ok\n")}, port=0, host="127.0.0.1", seconds=60, most=3)

    async def scenario() -> bytes:
        port = await health.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        async with asyncio.timeout(5):
            await _rest(crowd[0][0])
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            answer = await reader.read()
        await health.stop()
        for each in (writer, *(each for _, each in crowd)):
            await _close(each)
        return answer

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 200")


def test_event_about_a_node_with_a_long_dotted_name(world: World) -> None:
    """A node's name of 253 characters with a dot where the Event's name is cut is no reason for the API server, which
    takes no dot before the dash, to refuse the Event.
    """
    sender = events(world)
    said(sender, Tell(f"{'a' * 199}.{'b' * 53}", "Reason", "text"))
    (event,) = world.server.all(EVENTS)
    assert event["metadata"]["name"].startswith(f"{'a' * 199}-")
    assert not sender.metrics.events_dropped.values


@pytest.mark.parametrize(("text", "kept"), [("x" * 1024, 1024), ("x" * 1025, 1024), ("ä" * 1000, 1023), ("ä" * 9, 18)])
def test_notes_of_events_are_measured_in_bytes(world: World, text: str, kept: int) -> None:
    """As the API server measures them: a reason may be in any language."""
    said(events(world), Tell("a", "OperationReleased", text, warning=True))
    (event,) = world.server.all(EVENTS)
    assert len(event["note"].encode()) == kept


def test_words_of_others_are_cut() -> None:
    """No annotation and no status grows by what somebody wrote as a reason."""
    now = datetime(2026, 1, 5, tzinfo=UTC)
    operation = Operation(id="a", acts=["driver"], phase="Held", since=now, started=now, reason="€" * 100_000)
    assert len(write(operation).encode()) < 1300
    assert len(write(Last(reason="x" * 100_000)).encode()) < 1300
    waits = [Wait("a", "pool", "hold", "x" * 100_000)]
    found = status.status(Snapshot(now=now, namespace="n"), NodePolicy(), status.Tally(1, waits=waits), Breaker())
    assert len(msgspec.json.encode(found)) < 3000
    assert read(Operation, write(operation)).reason.endswith("€...")  # type: ignore[union-attr]
