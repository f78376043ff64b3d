"""What a NodePolicy's status says of nodes that wait."""

from __future__ import annotations

from datetime import UTC, datetime

from gpustack.reconciler import status
from gpustack.reconciler.actions import Wait
from gpustack.reconciler.policy import Breaker, NodePolicy
from gpustack.reconciler.snapshot import Snapshot

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def test_reasons_are_counted_and_one_is_told_whole() -> None:
    """Nodes that wait for the same kind of thing are one entry, up to 20 named, in the words of the first: a disruption
    budget that blocks is named there, whatever order the nodes came in."""
    waits = [
        Wait(f"n{number:02d}", "pool", "blocked", f"pod p{number}: budget b{number}") for number in range(24, -1, -1)
    ]
    tally = status.Tally(nodes=26, current=1, waits=[*waits, Wait("n30", "pool", "window", "no window is open")])
    made = status.status(Snapshot(now=NOW, namespace="gpu"), NodePolicy(), tally, Breaker())
    found = {each.reason: each for each in made.waiting}
    assert (found["blocked"].count, len(found["blocked"].nodes)) == (25, 20)
    assert found["blocked"].message == "pod p0: budget b0"
    assert found["window"].message == "no window is open"
