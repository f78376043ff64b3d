"""Nodes with faults of GPUs: what becomes of them, of how many at a time, and where nobody knows."""

from __future__ import annotations

import pytest

from gpustack.api import keys
from gpustack.cli.live import estimates, plan
from gpustack.cli.live.reading import Look
from gpustack.reconciler.core import engine
from gpustack.reconciler.shell.cluster import LEASES, PODS, POLICIES
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.trials import evicted, go, loaded, phases, quiet, roll, until
from tests.reconciler.world.machine import reboot
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.workloads import Workload, add_workload, start


def faulty(kind: str, nodes: int = 3, **health: object) -> History:
    """A cluster whose policy says HEALTH besides, and where n0 has said for some minutes that it has a fault."""
    history = quiet(nodes)
    if health:
        history.world.server.edit(POLICIES, POOL, {"spec": {"health": health}})
    start(history.world, Workload("train", 1, ends_after=1), "n0")
    history.world.tell("n0", kind, "True", reason="Xid79")
    return history


def test_a_fatal_fault_empties_the_node_and_asks_for_a_reboot() -> None:
    """Cordoned, emptied, asked for a reboot; rebooted by whoever can, it is looked at for as long as the policy says,
    and given back."""
    history = faulty("GpuFatal")
    go(history, 10, 15)
    assert phases(history) == {"n0": "Acting"}
    assert history.world.cordoned("n0")
    assert evicted(history) == ["train"]
    assert history.world.annotations("n0")[m.REQUESTED] == "reboot"
    reboot(history.world, history.world.machines["n0"])
    history.world.tell("n0", "GpuFatal", "False")
    said = go(history, 30, 15)
    assert any("no fault is told of any more, for" in text for text in said)
    assert phases(history) == {}
    assert not history.world.cordoned("n0")
    assert m.REQUESTED not in history.world.annotations("n0")


def test_a_reboot_that_mends_nothing_keeps_the_node_out() -> None:
    """The fault is told of still: the node stays cordoned, its slot goes to others, and the breaker of roll-outs has
    nothing to do with it."""
    history = faulty("GpuFatal")
    go(history, 10, 15)
    reboot(history.world, history.world.machines["n0"])
    go(history, 50, 15)
    assert phases(history) == {"n0": "Quarantine"}
    roll(history, maxUnavailable=2)
    go(history, 60, 30)
    assert loaded(history) == ["1", "2", "2"]
    assert history.world.server.get(POLICIES, POOL)["status"]["breaker"].get("open", False) is False
    assert history.world.cordoned("n0")


def test_a_lesser_fault_takes_no_pod_away() -> None:
    """No pod comes any more, whoever runs there goes on; the reset is asked for once nobody does, and the node with
    its fault gone comes back."""
    history = faulty("GpuBad")
    go(history, 20, 15)
    assert (phases(history), evicted(history)) == ({"n0": "Quarantine"}, [])
    assert m.REQUESTED not in history.world.annotations("n0")
    for pod in list(history.world.gpu_pods("n0")):
        history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    go(history, 10, 15)
    assert history.world.annotations("n0")[m.REQUESTED] == "reset"
    history.world.tell("n0", "GpuBad", "False")
    go(history, 40, 15)
    assert phases(history) == {}


@pytest.mark.parametrize("kind", ["GpuFatal", "GpuBad"])
def test_a_bad_detector_takes_nobody(kind: str) -> None:
    """All nodes tell of a fault at once: none is cordoned, and everybody is told why."""
    history = faulty(kind, 4)
    for name in history.world.machines:
        history.world.tell(name, kind, "True")
    said = go(history, 30, 30)
    assert phases(history) == {}
    assert any("4 of 4 nodes tell of a fault at once" in text for text in said)


def test_one_after_the_other_no_more_than_the_limit() -> None:
    """A detector that goes bad node by node gets as many as the policy lets go."""
    history = faulty("GpuLost", 4, maxNodes=2, maxShare="100%", breakerShare="100%")
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {"maxUnavailable": "100%"}}})
    for name in sorted(history.world.machines):
        history.world.tell(name, "GpuLost", "True")
        go(history, 10, 30)
    said = go(history, 10, 30)
    assert len(phases(history)) == 2
    assert any("2 nodes are out of service for a fault, and 2 may be" in text for text in said)


def test_what_is_only_ever_reported_stops_nothing() -> None:
    """A condition that the rules only report is no fault that breakerShare counts, on however many nodes."""
    history = faulty("GpuLost", 4)
    for name in history.world.machines:
        history.world.tell(name, "GpuNote", "True")
    go(history, 10, 15)
    assert phases(history).keys() == {"n0"}


@pytest.mark.parametrize("cordoned", [True, False])
def test_the_limit_counts_a_node_that_the_ledger_has_lost(cordoned: bool) -> None:
    """A leader that finds no ledger takes no second node for a fault while the first, by its record, is cordoned for
    one. A record alone, without a cordon, holds up nobody: any kubelet can write it."""
    history = faulty("GpuLost", 3)
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {"maxUnavailable": "100%"}}})
    go(history, 10, 15)
    assert history.world.cordoned("n0")
    history.world.server.edit(LEASES, NAME, {"metadata": {"annotations": {keys.LEDGER: None}}}, NAMESPACE)
    history.world.elapsed += 60
    history.restart(0)
    history.world.cordon("n0", on=cordoned)
    history.world.tell("n1", "GpuLost", "True")
    said = go(history, 10, 30)
    assert any(text.startswith("n0 unledgered") for text in said)
    assert history.world.cordoned("n1") is not cordoned
    assert any("1 nodes are out of service for a fault, and 1 may be: n0" in text for text in said) is cordoned


@pytest.mark.parametrize("limit", [1, "34%"])
def test_the_budget_of_roll_outs_counts(limit: int | str) -> None:
    """Where as many nodes are out of service as may be, said as a number or as a share of five nodes (2, rounded up), a
    fault takes none besides."""
    history = faulty("GpuBad", 5, maxNodes=5, maxShare="100%")
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {"maxUnavailable": limit}}})
    for name in ("n1", "n2")[: 1 if limit == 1 else 2]:
        history.world.cordon(name)
    said = go(history, 20, 30)
    assert phases(history) == {}
    assert any(text.startswith("n0 budget") for text in said)


@pytest.mark.parametrize("limit", [1, "20%"])
def test_a_fault_counts_in_the_budget_of_roll_outs(limit: int | str) -> None:
    """A node that is out for a fault is one of those that a roll-out may take: of five nodes it takes none besides, and
    all once that one is back."""
    history = faulty("GpuBad", 5)
    go(history, 10, 30)
    assert phases(history) == {"n0": "Quarantine"}
    roll(history, maxUnavailable=limit)
    said = go(history, 30, 30)
    assert (phases(history), set(loaded(history))) == ({"n0": "Quarantine"}, {"1"})
    assert any(text.startswith("n1 budget") for text in said)
    history.world.tell("n0", "GpuBad", "False")
    go(history, 200, 30)
    assert set(loaded(history)) == {"2"}


def test_the_shortest_heartbeat_of_a_type_counts() -> None:
    """A condition has one heartbeat, whichever entry for its type says so: an entry of one's own before a detector's
    takes nothing of that away."""
    rules = [
        {"type": "Lost", "messages": ["*once*"], "then": "report"},
        {"type": "Lost", "then": "drain", "heartbeatSeconds": 900},
    ]
    history = faulty("GpuFatal", rules=rules)
    history.world.tell("n0", "Lost", "True", lastHeartbeatTime="2020-01-01T00:00:00Z")
    said = go(history, 20, 30)
    assert phases(history) == {}
    assert any("condition Lost has had no heartbeat" in text for text in said)


def test_all_that_is_reported_is_told() -> None:
    """A fault that is only reported hides none that counts soon."""
    history = faulty("GpuNote")
    history.world.tell("n0", "GpuBad", "True")
    (said,) = go(history, 1)
    assert "GpuNote=True (Xid79); only reported" in said
    assert "GpuBad=True; it counts once" in said


def test_a_policy_made_anew_gives_no_faulty_node_back() -> None:
    """Its thirty days begin anew, and take no further node; one that is out for a fault stays so."""
    history = faulty("GpuFatal", 4, reportOnlyUntil=None)
    history.world.tick(31 * 86400)
    history.world.tell("n0", "GpuFatal", "True")
    go(history, 10, 15)
    assert phases(history) == {"n0": "Acting"}
    before = history.world.server.get(POLICIES, POOL)
    history.world.server.remove(POLICIES, POOL)
    go(history, 3, 15)
    named = {"name": POOL, "annotations": before["metadata"].get("annotations", {})}
    history.world.server.add(POLICIES, {**before, "metadata": named, "status": {}})
    history.world.tell("n1", "GpuFatal", "True")
    said = go(history, 100, 15)
    assert list(phases(history)) == ["n0"]
    assert history.world.cordoned("n0")
    assert any(text.startswith("n1 health") and "only reported until" in text for text in said)


def test_a_section_that_goes_is_no_end_of_the_fault() -> None:
    """The node is given back, since nobody is to look any more, and nobody is told that its fault has gone."""
    history = faulty("GpuFatal")
    go(history, 10, 15)
    history.world.server.edit(POLICIES, POOL, {"spec": {"health": None}})
    said = go(history, 60, 30)
    assert phases(history) == {}
    assert any("nothing is done about its fault any more" in text for text in said)
    assert not any("no fault is told of" in text for text in said)


def test_flapping_takes_nobody() -> None:
    """A fault that never lasts as long as the policy says is none."""
    history, on = faulty("GpuFatal"), [True]

    def flap() -> None:
        on[0] = not on[0]
        history.world.tell("n0", "GpuFatal", str(on[0]))

    go(history, 40, 40, flap)
    assert phases(history) == {}


@pytest.mark.parametrize("how", ["unknown", "stale"])
def test_what_nobody_knows_is_neither(how: str) -> None:
    """A condition that is Unknown, or without a heartbeat, takes no node, and gives none back."""
    history = faulty("GpuFatal")
    go(history, 10, 15)
    assert phases(history) == {"n0": "Acting"}
    old = {"lastHeartbeatTime": "2020-01-01T00:00:00Z"} if how == "stale" else {}
    status = {"unknown": "Unknown", "stale": "False"}[how]
    for name in ("n0", "n1"):
        history.world.tell(name, "GpuFatal", status, **old)
    reboot(history.world, history.world.machines["n0"])
    said = go(history, 60, 30)
    assert phases(history) == {"n0": "Quarantine"}
    assert any(text.startswith("n1 health: whether its GPUs work isn't known") for text in said)


def test_reports_only_at_first() -> None:
    """Thirty days after the first NodePolicy was made, or on the day that the policy says; until then it is told."""
    history = faulty("GpuFatal", reportOnlyUntil=None)
    said = go(history, 20, 30)
    assert phases(history) == {}
    assert any("Xid79" in text and "only reported until" in text for text in said)
    history.world.tick(31 * 86400)
    go(history, 10, 15)
    assert phases(history) == {"n0": "Acting"}


def test_held_by_people() -> None:
    """A node on hold isn't taken, whatever it tells of."""
    history = faulty("GpuLost")
    go(history, 10, 15)
    assert phases(history) == {"n0": "Quarantine"}
    history.world.tell("n0", "GpuLost", "False")
    history.world.label("n1", {m.HOLD: "true"})
    history.world.tell("n1", "GpuLost", "True")
    said = go(history, 40, 30)
    assert phases(history) == {}
    assert any(text.startswith("n1 hold") for text in said)


@pytest.mark.parametrize(("kind", "moves", "asked"), [("GpuFatal", 1, 600), ("GpuLost", 1, 0), ("GpuBad", 0, 600)])
def test_what_a_plan_says(kind: str, moves: int, asked: int) -> None:
    """Whose pods go, and how long it takes at the most: evictions, what is asked for, until the node is well, and its
    proof. Nobody tries evictions beforehand, which could not keep the node in service."""
    history = faulty(kind)
    until(history, "n0", "Held", 15)
    known = history.watcher.seen["one"]  # of the pass that took the node
    wanted, outlook = engine.survey(known), engine.outlook(known)
    assert ("n0" in wanted.pods, wanted.candidates) == (True, ())
    (candidate,) = outlook.order
    told = plan._turn(Look("", known, outlook, (), "", ()), candidate, [])
    assert (len(told["evicts"]), told["operation"], told["blockers"]) == (moves, "health", [])
    assert estimates.longest(candidate.policy, candidate) == 300 + asked + 120 + 400


def test_a_budget_of_pods_is_kept() -> None:
    """A PodDisruptionBudget that refuses keeps the pod; the node is cordoned all the same, and says so."""
    history = faulty("GpuLost")
    add_workload(history.world, Workload("train", 1, max_unavailable=0, ends_after=1))
    said = go(history, 60, 15)
    assert history.world.cordoned("n0")
    assert evicted(history) == []
    assert list(history.world.gpu_pods("n0"))
    assert any("disruption budget" in text for text in said)
