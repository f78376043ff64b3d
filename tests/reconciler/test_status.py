"""What a NodePolicy's status says of nodes that wait."""

from __future__ import annotations

from datetime import UTC, datetime

from gpustack.api.node_policy import Breaker, NodePolicy, Spec
from gpustack.reconciler.core import status
from gpustack.reconciler.core.actions import Wait
from gpustack.reconciler.core.snapshot import Snapshot

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


def rolled_out(policy: NodePolicy, tally: status.Tally) -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    made = status.status(Snapshot(now=NOW, namespace="gpu"), policy, tally, Breaker())
    (found,) = (each for each in made.conditions if each.type == "RolledOut")
    return found.status, found.reason, found.message


def test_nothing_is_done_with_no_nodes() -> None:
    """A pool that an autoscaler has emptied is as it should be, and not called done; one that should have nodes is not
    rolled out, and neither is one whose nodes match nothing any more."""
    assert rolled_out(NodePolicy(), status.Tally())[:2] == ("True", "NoNodes")
    expecting = NodePolicy(spec=Spec(minNodes=8))
    assert rolled_out(expecting, status.Tally()) == (
        "False",
        "NoNodes",
        "no node matches it, and its pools have 8 at least",
    )
    assert rolled_out(expecting, status.Tally(nodes=7, current=7))[:2] == ("True", "Done")
    lost = rolled_out(NodePolicy(), status.Tally(lost=["a", "b", "c"]))
    assert lost[:2] == ("False", "NoNodes")
    assert lost[2].startswith("a and 2 more belonged to it")
