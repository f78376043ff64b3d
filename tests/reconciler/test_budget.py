"""The budget: a set of unavailable nodes, the smallest of all limits, percentages rounded up as upstream (U13)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gpustack.api.node_policy import Limits, NodePolicy, Spec, Upgrade
from gpustack.api.objects import Metadata, Node, NodeCondition, NodeSpec, NodeStatus
from gpustack.reconciler.core.budget import Budget, absolute
from gpustack.reconciler.core.record import Entry, Operation, write
from gpustack.reconciler.core.snapshot import Announced, Snapshot
from gpustack.reconciler.core.view import View, views

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limit", "total", "wanted"),
    [
        ("25%", 4, 1),
        ("25%", 5, 2),
        ("25%", 1, 1),
        ("1%", 100, 1),
        ("0%", 100, 0),
        ("100%", 7, 7),
        ("50%", 0, 0),
        (3, 2, 3),
        (0, 9, 0),
        ("2", 9, 2),
        ("many", 9, 0),
        ("²%", 9, 0),
        ("²", 9, 0),
    ],
)
def test_limits(limit: int | str, total: int, wanted: int) -> None:
    """Rounded up, so never below 1 unless it is 0; what is not a number allows nothing."""
    assert absolute(limit, total) == wanted


def node(name: str, phase: str = "", *, cordoned: bool = False, ready: bool = True) -> Node:
    """A node with a GPU; with PHASE an operation is open on it."""
    annotations = {}
    if phase:
        made = Operation(id=name, acts=["driver"], phase=phase, policy="p", since=NOW, started=NOW, cordon=True)  # type: ignore[arg-type]
        annotations["gpustack.dev/op"] = write(made)
    return Node(
        metadata=Metadata(
            name=name,
            uid=name,
            labels={"pool": "a", "feature.node.kubernetes.io/pci-10de.present": "true"},
            annotations=annotations,
        ),
        spec=NodeSpec(unschedulable=cordoned or bool(phase)),
        status=NodeStatus(conditions=[NodeCondition(type="Ready", status=str(ready))]),
    )


def budget(
    *nodes: Node,
    fleet: Limits | None = None,
    admitting: tuple[str, ...] = (),
    ledger: dict[str, Entry] | None = None,
    **upgrade: Any,
) -> Any:
    """The budget of one pool with NODES, and its views by name."""
    limits = Upgrade(**{"maxParallel": 0, "maxUnavailable": "100%", **upgrade})
    spec = Spec(nodeSelector={"pool": "a"}, upgrade=limits, fleet=fleet or Limits(maxParallel=0, maxUnavailable="100%"))
    policy = NodePolicy(metadata=Metadata(name="a", uid="p"), spec=spec)
    found = views(Snapshot(NOW, "gpu-operator", nodes, (policy,), ledger=ledger))
    by_name: dict[str, View] = {view.name: view for view in found}
    return Budget(found, (policy,), dict.fromkeys(admitting, Announced())), by_name


def test_one_node() -> None:
    """A quarter of one node is one."""
    made, of = budget(node("a"), maxUnavailable="25%")
    assert made.refuses(of["a"]) is None


def test_cordoned_and_not_ready_and_announced_count_once_each() -> None:
    """Whatever the number of reasons, a node is unavailable once."""
    nodes = [node("a"), node("b", cordoned=True), node("c", ready=False, cordoned=True), node("d")]
    made, of = budget(*nodes, maxUnavailable=3, admitting=("b",))
    assert made.refuses(of["a"]) is None, "b and c are down: a third may go"
    made.take(of["a"])
    assert made.refuses(of["d"]) == ("budget", "3 nodes of a are unavailable, and 3 may be: a, b, c")


def test_a_quarantined_node_gives_its_slot_back_and_stays_unavailable() -> None:
    """One bad node stops neither the others nor its own retry."""
    made, of = budget(node("a", "Quarantine"), node("b"), node("c"), maxParallel=1, maxUnavailable=2)
    assert made.refuses(of["b"]) is None
    made, of = budget(node("a", "Quarantine"), node("b"), node("c"), maxParallel=1, maxUnavailable=1)
    assert made.refuses(of["b"]) == ("budget", "1 nodes of a are unavailable, and 1 may be: a")
    assert made.refuses(of["a"]) is None, "it is out of service by our own cordon and needs a slot alone (A5)"


def test_parallel() -> None:
    """Open operations hold slots."""
    made, of = budget(node("a", "Acting"), node("b"), maxParallel=1)
    assert made.refuses(of["b"]) == ("parallel", "1 of 1 operations of a are under way: a")


def test_a_node_without_its_gpu_label_still_holds_its_slot() -> None:
    """NFD may lose a GPU in the middle of an operation: that frees nothing."""
    lost = node("a", "Acting")
    del lost.metadata.labels["feature.node.kubernetes.io/pci-10de.present"]
    made, of = budget(lost, node("b"), maxParallel=1)
    assert made.refuses(of["b"]) is not None


def test_nodes_on_hold_are_no_part_of_the_total_and_count_when_down() -> None:
    """Half of two, and the held node is the one that is down."""
    held = node("a", cordoned=True)
    held.metadata.labels["gpustack.dev/hold"] = "true"
    made, of = budget(held, node("b"), node("c"), maxUnavailable="50%")
    assert made.refuses(of["b"]) == ("budget", "1 nodes of a are unavailable, and 1 may be: a")


def test_zones() -> None:
    """A zone has a limit of its own."""
    nodes = [node("a", "Acting"), node("b"), node("c")]
    for each, zone in zip(nodes, "112", strict=True):
        each.metadata.labels["topology.kubernetes.io/zone"] = zone
    made, of = budget(*nodes, zoneMaxUnavailable=1)
    assert made.refuses(of["b"]) == ("budget", "1 nodes of a in zone 1 are unavailable, and 1 may be: a")
    assert made.refuses(of["c"]) is None


def test_the_fleet_is_the_smaller_limit() -> None:
    """All limits hold; the smallest wins (A10)."""
    made, of = budget(node("a", "Held"), node("b"), fleet=Limits(maxParallel=1, maxUnavailable="100%"))
    assert made.refuses(of["b"]) == ("parallel", "1 of 1 operations of the fleet are under way: a")


def test_an_operation_that_cannot_be_read_makes_its_node_unavailable() -> None:
    """Nobody knows what is under way there."""
    spoilt = node("a")
    spoilt.metadata.annotations["gpustack.dev/op"] = "{"
    made, of = budget(spoilt, node("b"), maxUnavailable=1)
    assert made.refuses(of["b"]) is not None


def test_a_record_that_cannot_be_read_holds_a_slot_by_the_ledger_alone() -> None:
    """Any kubelet can write one, and it never goes by itself: without an entry, as where the ledger was lost, it holds
    no slot, no more than one that can be read (A21). Its node counts as what it is seen to be: cordoned (I1)."""
    spoilt = node("a", cordoned=True)
    spoilt.metadata.annotations["gpustack.dev/op"] = "{"
    made, of = budget(spoilt, node("b"), maxParallel=1, ledger={"a": Entry("a", 0)})
    assert made.refuses(of["b"]) == ("parallel", "1 of 1 operations of a are under way: a")
    made, of = budget(spoilt, node("b"), maxParallel=1, ledger={})
    assert made.refuses(of["b"]) is None
    made, of = budget(spoilt, node("b"), maxUnavailable=1, ledger={})
    assert made.refuses(of["b"]) == ("budget", "1 nodes of a are unavailable, and 1 may be: a")
    made, of = budget(node("a"), node("b"), maxUnavailable=1, ledger={})
    assert made.refuses(of["b"]) is None


def test_announced_nodes_are_operations_too() -> None:
    """A node that was taken a moment ago and is not seen to be holds its slot: one more would be one too many. So does
    a quarantined one that is tried again; a new node that is set up holds none."""
    nodes = [node("a"), node("b"), node("q", "Quarantine"), node("o", "Held")]
    made, of = budget(*nodes, maxParallel=2, admitting=("b",))
    assert made.refuses(of["a"]) == ("parallel", "2 of 2 operations of a are under way: b, o")
    made, of = budget(*nodes, maxParallel=2, admitting=("q",))
    assert made.refuses(of["a"]) == ("parallel", "2 of 2 operations of a are under way: o, q")
    made, of = budget(*nodes, maxParallel=2, admitting=("o",))
    assert made.refuses(of["a"]) is None, "it is seen, and counts once"
    views = [of[name] for name in "abqo"]
    policy = NodePolicy(metadata=Metadata(name="a", uid="p"), spec=Spec(upgrade=Upgrade(maxParallel=2)))
    assert Budget(views, (policy,), {"b": Announced(install=True)}).shares[0].busy == 1
