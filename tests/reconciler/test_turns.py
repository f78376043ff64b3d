"""Everybody has their turn, and a node that has failed is judged by what its policy says now.

Scenarios of a second attack on the reconciler.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.core import engine
from gpustack.reconciler.shell.cluster import LEASES, POLICIES, ApiError, Forbidden
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.trials import another_leads, comes_again, evicted, go, loaded, phases, quiet, roll, until
from tests.reconciler.world.stack import DRIVER, NAMESPACE
from tests.reconciler.world.workloads import Workload, add_workload, start

DENIED = Forbidden('admission webhook "x" denied the request: pinned', 403)


def blocked(history: History, count: int) -> None:
    """A pod on each of the first COUNT nodes that nothing would make anew."""
    for number in range(count):
        start(history.world, Workload("solo", 1, owned=False), f"n{number}")


@pytest.mark.parametrize("leaders", [10_000, 2])
def test_blocked_nodes_starve_nobody_behind_them(leaders: int) -> None:
    """One at a time, and the first six can't be emptied: the free ones have their turn, whoever leads."""
    history = quiet(8)
    blocked(history, 6)
    roll(history)
    for minute in range(120):
        if minute % leaders == leaders - 1:
            another_leads(history)
        go(history, 1)
    assert loaded(history) == ["1"] * 6 + ["2"] * 2


def test_new_nodes_are_looked_at_though_many_wait_for_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy nodes lose a component; more of them than one pass looks at: the new one is set up all the same."""
    monkeypatch.setattr(engine, "LOOKS", 2)
    history = quiet(4)
    for number in range(4):
        start(history.world, Workload("busy", 1), f"n{number}")
    history.parts(0)
    go(history, 5)
    history.world.add_node("z0", POOL)
    go(history, 60, 10)
    assert history.world.machines["z0"].loaded


@pytest.mark.parametrize("what", ["refused", "again", "drain"])
def test_no_limit_is_an_hour(what: str) -> None:
    """Evictions without a limit of the policy's, and a budget that refuses, a pod that comes again, a drain of a pod
    that uses no GPU: the slot is another one's after an hour."""
    history = quiet(2)
    each = comes_again(history, "n0") if what != "refused" else lambda: None
    add_workload(history.world, Workload("a", 0, max_unavailable=1, gpu=what != "drain"))
    pod = start(history.world, history.world.workloads["a"], "n0")["metadata"]["name"]
    history.world.tick(1)
    drain = {"enable": True, "timeoutSeconds": 0} if what == "drain" else {"enable": False}
    roll(history, podDeletion={"timeoutSeconds": 0 if what != "drain" else 60}, drain=drain)
    until(history, "n0", "Evicting")
    if what != "again":
        history.watcher.spared = {("create", pod): DENIED}
    go(history, 24 * 60, 60, each)
    assert loaded(history)[1] == "2"
    assert len(evicted(history)) < 60


def test_a_drain_ends_with_the_gpus_free() -> None:
    """A pod that uses a GPU ends late, so that a drain begins; when it has ended, nobody else is drained."""
    history = quiet(1)
    start(history.world, Workload("late", 1, grace=30, ends_after=420), "n0")
    add_workload(history.world, Workload("web", 0, gpu=False, max_unavailable=0))
    start(history.world, history.world.workloads["web"], "n0")
    history.world.tick(1)
    roll(history, podDeletion={"timeoutSeconds": 60}, drain={"enable": True, "timeoutSeconds": 600})
    go(history, 120, 20)
    assert loaded(history) == ["2"]


def test_an_image_that_one_node_alone_can_not_get_while_its_pod_is_made_anew() -> None:
    """How old the pod is says nothing: since when the node waits counts."""
    history = quiet(3, limits=3)
    history.world.machines["n0"].faults.add("registry")
    roll(history)
    for minute in range(300):
        if minute % 20 == 19 and phases(history).get("n0") == "Acting":
            history.world.delete_operand(DRIVER, "n0")
        go(history, 1)
    assert loaded(history)[1:] == ["2", "2"]


@pytest.mark.parametrize("what", ["registry", "refused"])
def test_new_nodes_that_get_nowhere_keep_no_slot_for_good(what: str) -> None:
    """Two of two slots: after an hour good new nodes are set up."""
    history = quiet(1)
    history.world.server.edit(POLICIES, POOL, {"spec": {"install": {"maxParallel": 2}}})
    for name in ("a0", "a1"):
        history.world.add_node(name, POOL)
        history.world.machines[name].faults.add("registry")
    until(history, "a1", "Acting", 5)
    if what == "refused":
        history.watcher.denied = dict.fromkeys(("a0", "a1"), ApiError("failed calling webhook", 500))
    history.world.add_node("z0", POOL)
    go(history, 150)
    assert history.world.machines["z0"].loaded


@pytest.mark.parametrize("key", [keys.SINCE, keys.LEDGER, keys.AWAY])
@pytest.mark.parametrize("number", [10**18, 10**15, -(10**15), 10**100])
def test_numbers_in_the_lease_that_are_no_times(key: str, number: int) -> None:
    """Somebody has written them: they crash nothing."""
    history = quiet(1)
    value = f'["abc",{number}]' if key == keys.LEDGER else str(number)
    name = str(history.world.node("n0")["metadata"]["uid"])
    text = f'{{"{name}": {value}}}' if key == keys.LEDGER else f'{{"{name} driver-failing": {value}}}'
    text = f"[[{number}, {number + 1}]]" if key == keys.AWAY else text
    history.world.server.edit(LEASES, NAME, {"metadata": {"annotations": {key: text}}}, NAMESPACE)
    history.restart(0)
    roll(history)
    go(history, 60, 20)
    assert loaded(history) == ["2"]


def test_a_layout_that_was_taken_back_is_not_cut_afterwards() -> None:
    """A node that has failed at it works with what it has."""
    history = quiet(2)
    history.world.machines["n0"].faults.add("mig")
    history.mig(1)
    until(history, "n0", "Quarantine", 10)
    history.want.mig = ""
    history.sync(0)
    history.world.machines["n0"].faults.clear()
    go(history, 60, 20)
    assert phases(history) == {}
    assert history.world.machines["n0"].geometry[0] == "all-disabled"


def test_a_policy_that_is_mended_mends_the_node() -> None:
    """It said that a node has four GPUs, and has two now: what the record says is not asked."""
    history = quiet(1)
    roll(history)
    wrong: dict[str, Any] = {"spec": {"gpu": {"resources": {"nvidia.com/gpu": 4}}}}
    history.world.server.edit(POLICIES, POOL, wrong)
    until(history, "n0", "Quarantine", 20)
    history.world.server.edit(POLICIES, POOL, {"spec": {"gpu": {"resources": {"nvidia.com/gpu": 2}}}})
    go(history, 10)
    assert phases(history) == {}


@pytest.mark.parametrize("what", ["skip", "auto"])
def test_a_driver_that_is_to_stay_stays_in_quarantine_too(what: str) -> None:
    """The old driver works, and nobody could delete it: the node is given back with it."""
    history = quiet(1)
    pod = history.world.operand(DRIVER, "n0")
    history.watcher.spared = {("delete", pod["metadata"]["name"] if pod else ""): DENIED}
    roll(history)
    until(history, "n0", "Quarantine", 30)
    if what == "skip":
        history.world.label("n0", {keys.UPGRADE_SKIP: "true"})
    else:
        history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {"auto": False}}})
    history.watcher.spared.clear()
    go(history, 60)
    assert loaded(history) == ["1"]
    assert phases(history) == {}


def test_the_breaker_opens_though_the_status_can_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node fails at the new driver, and the others keep theirs."""
    history = quiet(4, limits=3)
    for machine in history.world.machines.values():
        machine.faults.add("driver")
    real = history.watcher._refuse

    def refuse(request: object) -> None:
        if getattr(request, "kind", "") == "nodepolicies" and getattr(request, "verb", "") == "patch":
            history.watcher.quiet()
            raise DENIED
        real(request)  # type: ignore[arg-type]

    monkeypatch.setattr(history.watcher, "_refuse", refuse)
    roll(history, breakerFailures=1)
    go(history, 120)
    assert loaded(history)[1:] == ["1", "1", "1"]


def test_a_taint_that_comes_and_goes() -> None:
    """Each time a pod was evicted for nothing: the next attempts wait longer and longer."""
    history = quiet(1)
    workload = Workload("slow", 1, grace=600, ends_after=300)
    roll(history)
    for minute in range(360):
        if minute % 4 == 0:
            history.taint(0)
        if not list(history.world.gpu_pods("n0")) and history.world.machines["n0"].loaded:
            start(history.world, workload, "n0")
        go(history, 1)
    assert len(evicted(history)) < 12


def test_a_record_of_a_newer_version_keeps_its_slot() -> None:
    """It can't be read, and is open: nobody else begins."""
    history = quiet(2)
    roll(history)
    until(history, "n0", "Acting")
    text = history.world.annotations("n0")[m.OP]
    history.world.annotate("n0", {m.OP: text.replace('"v":1', '"v":99')})
    for _ in range(30):
        go(history, 1, 20)
        assert "n1" not in phases(history)
    history.world.annotate("n0", {m.OP: text})
    go(history, 60, 20)
    assert loaded(history) == ["2", "2"]


@pytest.mark.parametrize("hours", [3, 10])
def test_a_clock_that_is_put_back_makes_nobody_wait_for_it(hours: int) -> None:
    """What was refused a while ago is asked again after minutes, not after hours."""
    history = quiet(2)
    history.watcher.denied = {"n0": DENIED}
    roll(history)
    go(history, 10)
    for _ in range(hours):
        history.jump(0)
    history.watcher.denied.clear()
    go(history, 40)
    assert loaded(history) == ["2", "2"]
