"""Images that are on a node before it is taken out of service (images.py, `awaited`)."""

from __future__ import annotations

import pytest

from tests.reconciler.model.history import History
from tests.reconciler.trials import another_leads, evicted, go, loaded, phases, quiet, roll, until
from tests.reconciler.world.stack import PULLER
from tests.reconciler.world.workloads import Workload, start

MISSING = "the images of its next driver are not there"


def waiting(nodes: int, fault: str, then: str = "wait") -> History:
    """A cluster whose nodes wait for images, 300 s before THEN counts, and the first of which has FAULT; a driver is
    committed."""
    history = quiet(nodes)
    history.world.machines["n0"].faults.add(fault)
    history.want.prepull = then
    roll(history)
    return history


def told(history: History, passes: int) -> set[str]:
    """What Events say about images in so many passes."""
    said: set[str] = set()
    for _ in range(passes):
        go(history, 1, 20)
        said |= {each.message for each in history.replica.decided.tells if each.reason == "ImagesMissing"}
    return said


@pytest.mark.parametrize(
    ("fault", "why"), [("pull", "is in ImagePullBackOff: failed to pull: dial tcp 192.0.2.1:443"), ("slow", "")]
)
def test_a_node_without_images_keeps_its_driver(fault: str, why: str) -> None:
    """It is neither cordoned nor emptied, says what it waits for, and lets the others go first; after the time it says
    so in an Event, whoever leads by then, and has its turn once the images are there."""
    history = waiting(3, fault)
    start(history.world, Workload("web", 1, ends_after=1), "n0")
    said = go(history, 12, 20)
    assert any(text.startswith(f"n0 pulling: {MISSING}") and why in text for text in said)
    assert "n0" not in phases(history)
    assert not history.world.cordoned("n0")
    another_leads(history)
    events = told(history, 40)
    assert loaded(history) == ["1", "2", "2"]
    assert evicted(history) == []
    assert events
    assert all(text.endswith("for 5 minutes and more: it keeps its driver until they are") for text in events)
    history.world.machines["n0"].faults.clear()
    go(history, 30, 20)
    assert loaded(history) == ["2", "2", "2"]


def test_a_policy_that_lets_it_begin() -> None:
    """After the time the node has its turn all the same, and not before; that is told."""
    history = waiting(1, "slow", "begin")
    assert not told(history, 14)
    assert not history.world.cordoned("n0")
    (event,) = told(history, 20)
    assert loaded(history) == ["2"]
    assert event.endswith("for 5 minutes and more: it has its turn without them")


def test_images_of_a_former_driver_do_not_count() -> None:
    """A pod that is ready with what was rendered before says nothing of what is due now."""
    history = waiting(1, "none")
    go(history, 30, 20)
    assert loaded(history) == ["2"]
    history.world.machines["n0"].faults.add("slow")
    history.want.version = "3"
    history.sync(0)
    assert any(text.startswith(f"n0 pulling: {MISSING}") for text in go(history, 12, 20))
    assert loaded(history) == ["2"]


def test_a_driver_that_comes_while_pods_are_waited_for() -> None:
    """The node that is held for one driver is given back when another comes whose images it hasn't got: nobody was
    evicted yet."""
    history = waiting(1, "none")
    start(history.world, Workload("web", 1), "n0")
    upgrade = {"waitForCompletion": {"podSelector": "app=web", "timeoutSeconds": 7200}}
    history.want.pods = upgrade
    history.sync(0)
    until(history, "n0", "Held", 5)
    history.world.machines["n0"].faults.add("slow")
    history.want.version = "3"
    history.sync(0)
    said = go(history, 6, 20)
    assert phases(history) == {}
    assert any(text.startswith(f"n0 pulling: {MISSING}") for text in said)


def test_a_broken_driver_is_not_kept() -> None:
    """Nobody waits for images on a node that has failed: it serves nobody."""
    history = waiting(1, "driver")
    history.world.machines["n0"].faults |= {"driver"}
    until(history, "n0", "Quarantine", 20)
    history.world.machines["n0"].faults = {"slow"}
    history.want.version = "3"
    history.sync(0)
    go(history, 60, 20)
    assert loaded(history) == ["3"]


def test_nobody_waits_for_what_is_pulled_no_more() -> None:
    """The policy leaves it to the driver's pod again: nodes have their turn."""
    history = waiting(1, "slow")
    assert any("pulling" in text for text in go(history, 6, 20))
    history.want.prepull = ""
    history.sync(0)
    go(history, 30, 20)
    assert loaded(history) == ["2"]
    assert history.world.operand(PULLER, "n0") is None
