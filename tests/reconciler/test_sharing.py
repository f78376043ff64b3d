"""Maintenance that is shared with others by the Lease of a node (reconciler.md A23), and what else holds up a node in
vain."""

from __future__ import annotations

import json

import pytest

from gpustack.api import keys
from gpustack.reconciler.core.others import HOLDER
from gpustack.reconciler.shell.cluster import DAEMONSETS, LEASES, POLICIES, ApiError, Forbidden, NotFound
from tests.reconciler.model import moment as m
from tests.reconciler.model.history import History
from tests.reconciler.trials import evicted, go, loaded, phases, quiet, roll, until
from tests.reconciler.world.workloads import Workload, add_workload, start


def holds(history: History, node: str) -> str:
    """Who holds a node; "" for nobody."""
    lease = history.world.server.find(LEASES, f"node-{node}", m.SHARED)
    return m.holds(lease, history.world.server.now) if lease else ""


def test_a_node_is_held_as_long_as_it_is_worked_on() -> None:
    """From before its cordon until it is given back, whoever leads, for longer than a Lease lasts; no other one is."""
    history = quiet(2, kept=True)
    start(history.world, Workload("slow", 1, grace=8000, ends_after=7000), "n0")
    roll(history)
    before: set[str] = set()
    for number in range(200):
        if number == 60:
            history.restart(0)
        go(history, 1)
        now = set(phases(history))
        held = {node for node in ("n0", "n1") if holds(history, node) == HOLDER}
        assert now <= held <= now | before
        before = now
    assert loaded(history) == ["2", "2"]
    owners = history.world.server.get(LEASES, "node-n0", m.SHARED)["metadata"]["ownerReferences"]
    assert [each["uid"] for each in owners] == [history.world.node("n0")["metadata"]["uid"]]


def test_another_holds_a_node() -> None:
    """Nothing begins there until its Lease is over; the others have their turn."""
    history = quiet(2, kept=True)
    history.maintain(0)
    roll(history)
    said = go(history, 50)
    assert "n0 maintenance: node-maintenance holds Lease medik8s-leases/node-n0" in said
    assert loaded(history) == ["1", "2"]
    go(history, 30)
    assert loaded(history) == ["2", "2"]


def test_a_node_in_quarantine_is_there_for_others() -> None:
    """Who mends it may hold it; the next attempt waits for that."""
    history = quiet(1, kept=True)
    history.world.machines["n0"].faults.add("driver")
    roll(history)
    until(history, "n0", "Quarantine", 20)
    go(history, 1, 10)
    assert holds(history, "n0") == ""
    history.maintain(0)
    assert "n0 maintenance: node-maintenance holds Lease medik8s-leases/node-n0" in go(history, 30)
    assert phases(history) == {"n0": "Quarantine"}


@pytest.mark.parametrize("error", [Forbidden("leases is forbidden", 403), NotFound("namespaces not found", 404)])
def test_a_lease_that_can_not_be_taken(monkeypatch: pytest.MonkeyPatch, error: ApiError) -> None:
    """The node is left alone, with the server's words, and the next one has its turn."""
    history = quiet(2, kept=True)
    check = history.watcher._refuse

    def refused(request: object) -> None:
        if (request.kind, request.name) == ("leases", "node-n0"):  # type: ignore[attr-defined]
            history.watcher._request = None
            raise error
        check(request)  # type: ignore[arg-type]

    monkeypatch.setattr(history.watcher, "_refuse", refused)
    roll(history)
    said = go(history, 40)
    assert f"n0 refused: the API server does not let the node be changed: {error}" in said
    assert loaded(history) == ["1", "2"]
    assert not history.world.cordoned("n0")


def test_a_webhook_that_lets_nobody_try() -> None:
    """It answers dry runs with a refusal to be tried: whether the pod goes is known once it is told to."""
    history = quiet(1)
    start(history.world, Workload("web", 1, ends_after=1), "n0")
    check = history.watcher._refuse

    def refused(request: object) -> None:
        if getattr(request, "dry_run", False):
            history.watcher._request = None
            raise ApiError('admission webhook "x" does not support dry run', 400)
        check(request)  # type: ignore[arg-type]

    history.watcher._refuse = refused  # type: ignore[method-assign]
    roll(history)
    go(history, 30)
    assert evicted(history) == ["web"]
    assert loaded(history) == ["2"]


def test_why_a_node_can_not_be_given_back_is_told_soon() -> None:
    """The pass after a refusal comes within seconds, and says it."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Verifying")
    history.watcher.denied["n0"] = Forbidden("denied the request: no", 403)
    history.once()
    assert history.replica.runner._again <= 10
    history.world.tick(1)
    assert "n0 refused: the API server does not let the node be changed: denied the request: no" in go(history, 1, 1)
    assert keys.CORDONED in history.world.annotations("n0")


def test_a_driver_that_the_nodes_bring_from_now_on() -> None:
    """The policy has no driver any more while a node waits for it: nobody waits for a DaemonSet that is gone."""
    history = quiet(1)
    add_workload(history.world, Workload("web", 1, gpu=False))
    roll(history)
    until(history, "n0", "Acting")
    history.world.server.edit(POLICIES, "gpus", {"spec": {"driver": None}})
    history.world.server.remove(DAEMONSETS, "nvidia-driver-daemonset", "gpu-operator")
    go(history, 30, 20)
    assert phases(history) == {}


def kured(history: History, node: str, ttl: float = 0, **several: object) -> None:
    """kured has its lock for a NODE since now, for TTL seconds; or for SEVERAL."""
    history.lock(0)
    created = history.world.server.now.isoformat().replace("+00:00", ".123456789Z")
    lock = {"nodeID": node, "metadata": {"unschedulable": False}, "created": created, "TTL": int(ttl * 10**9)}
    text = json.dumps({**several, "locks": [lock]} if several else lock)
    history.world.server.edit(DAEMONSETS, "kured", {"metadata": {"annotations": {m.LOCK: text}}}, "kube-system")


def test_kured_works_on_another_node() -> None:
    """Nothing begins anywhere as long as its lock holds, and the reason says who has it and what to do were it left
    behind; after that all have their turn. Its DaemonSet is not written."""
    history = quiet(2, kept=True)
    kured(history, "elsewhere", 3600)
    before = history.world.server.get(DAEMONSETS, "kured", "kube-system")
    roll(history)
    why = "n0 maintenance: kured reboots elsewhere; where that is over and its lock was left, remove the annotation"
    assert any(text.startswith(why) for text in go(history, 50))
    assert loaded(history) == ["1", "1"]
    go(history, 40)
    assert loaded(history) == ["2", "2"]
    assert history.world.server.get(DAEMONSETS, "kured", "kube-system") == before


def test_kured_that_may_reboot_several() -> None:
    """While there is room in its lock others may go, and the node that it works on may not."""
    history = quiet(2, kept=True)
    kured(history, "n0", maxOwners=2)
    roll(history)
    go(history, 30)
    assert loaded(history) == ["1", "2"]


def test_kured_comes_while_pods_are_waited_for() -> None:
    """Nobody was evicted yet: the node is given back, and kured's comes first."""
    history = quiet(1, kept=True)
    start(history.world, Workload("web", 1), "n0")
    roll(history, waitForCompletion={"podSelector": "app=web", "timeoutSeconds": 7200})
    until(history, "n0", "Held", 5)
    kured(history, "elsewhere")
    go(history, 2)
    assert phases(history) == {}


@pytest.mark.parametrize("text", ["", "?", "[]", '{"nodeID": 1}', '{"locks": null}', '{"nodeID": "a", "TTL": 1e99}'])
def test_a_lock_that_can_not_be_read(text: str) -> None:
    """Nothing begins, but new nodes, and it is said; one without any node is free."""
    history = quiet(1, kept=True)
    history.lock(0)
    history.world.server.edit(DAEMONSETS, "kured", {"metadata": {"annotations": {m.LOCK: text}}}, "kube-system")
    roll(history)
    history.world.add_node("new", "gpus")
    said = go(history, 25)
    free = text == '{"locks": null}'
    assert loaded(history) == ["2" if free else "1", "2"]
    assert any("kured's lock can't be read" in each for each in said) == (not free)
