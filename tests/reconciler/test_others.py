"""Nothing begins on a node that somebody else takes out of service (P22; the marks are those of their own programs)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.shell.cluster import NODES
from tests.reconciler.model import moment as m
from tests.reconciler.model.history import History

CONFIG = "machineconfiguration.openshift.io/"
MARKS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "kured": (
        {"metadata": {"annotations": {"weave.works/kured-reboot-in-progress": "2027-01-01T00:00:00Z"}}},
        {"metadata": {"annotations": {"weave.works/kured-reboot-in-progress": None}}},
        "maintenance",
        "kured reboots the node",
    ),
    "network": (
        {"metadata": {"labels": {"nvidia.com/ofed-driver-upgrade-state": "drain-required"}}},
        {"metadata": {"labels": {"nvidia.com/ofed-driver-upgrade-state": "upgrade-done"}}},
        "maintenance",
        "nvidia.com/ofed-driver-upgrade-state=drain-required",
    ),
    "openshift": (
        {"metadata": {"annotations": {f"{CONFIG}currentConfig": "gpu-1", f"{CONFIG}desiredConfig": "gpu-2"}}},
        {"metadata": {"annotations": {f"{CONFIG}currentConfig": "gpu-2"}}},
        "maintenance",
        "brings the node to gpu-2",
    ),
    "node maintenance": (
        {"spec": {"taints": [{"key": "medik8s.io/drain", "effect": "NoSchedule"}]}},
        {"spec": {"taints": None}},
        "maintenance",
        "a NodeMaintenance drains the node",
    ),
    "autoscaler": (
        {"spec": {"taints": [{"key": keys.CANDIDATE_TAINT, "effect": "PreferNoSchedule"}]}},
        {"spec": {"taints": None}},
        "leaving",
        "cluster-autoscaler means to remove the node",
    ),
}
"""Who it is: the mark, what the node is like without, the reason and words of it."""


def one_node() -> History:
    """A node whose driver is current."""
    return History(1, limits=3)


def waits(history: History) -> dict[str, str]:
    """Why the nodes wait."""
    return {wait.kind: wait.message for wait in history.replica.decided.waits}


@pytest.mark.parametrize("who", MARKS)
def test_nothing_begins_meanwhile(who: str) -> None:
    """A driver that is due waits until they are done, and the status says for whom."""
    history = one_node()
    mark, without, kind, words = MARKS[who]
    history.world.server.edit(NODES, "n0", mark)
    history.driver(0)
    history.go(0)
    history.go(0)
    assert not m.operation(history.world.node("n0"))
    assert words in waits(history)[kind]
    history.world.server.edit(NODES, "n0", without)
    history.settle()
    assert history.world.machines["n0"].loaded == history.want.digest


@pytest.mark.parametrize("who", MARKS)
def test_what_is_under_way_goes_on(who: str) -> None:
    """The node is empty by then: to give it back would cost its workloads a second move. One of a taint that the driver
    doesn't tolerate is given back before its pod is deleted, as with any taint (A12)."""
    history = one_node()
    history.workload(5)
    history.driver(0)
    while m.operation(history.world.node("n0")).get("phase") != "Evicting":
        history.once()
        history.world.tick(1)
    history.world.server.edit(NODES, "n0", MARKS[who][0])
    for _ in range(3):
        history.once()
    assert bool(m.operation(history.world.node("n0"))) == (who != "node maintenance")


@pytest.mark.parametrize("state", ["", "upgrade-done", "upgrade-required"])
def test_who_only_queues_holds_up_nobody(state: str) -> None:
    """A network driver that waits for its turn has not touched the node, and would wait for ours in vain."""
    history = one_node()
    history.world.label("n0", {"nvidia.com/ofed-driver-upgrade-state": state})
    history.driver(0)
    history.settle()
    assert history.world.machines["n0"].loaded == history.want.digest


def test_a_new_node_that_is_idle_is_set_up() -> None:
    """cluster-autoscaler means to remove what nobody uses, as nobody can use a node without a driver: were that waited
    for, the node would go, and the next come for the same pods."""
    history = one_node()
    history.world.add_node("new", "gpus", "a")
    history.world.server.edit(NODES, "new", MARKS["autoscaler"][0])
    for _ in range(20):
        history.go(0)
    assert history.world.machines["new"].loaded
