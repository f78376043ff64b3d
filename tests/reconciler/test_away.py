"""Time in which nobody watched, or that no clock has counted, makes no node fail; and what was seen outlasts what it
was written on.

Scenarios of an attack on the reconciler; by what each is wrong stands in docs/facts/reconciler.md.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpustack.reconciler.shell.cluster import DEPLOYMENTS, NODES, PODS, POLICIES, Unreachable
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.trials import go, loaded, phases, quiet, roll, stood, until
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.workloads import Workload, start


def ever(history: History, passes: int = 150) -> set[str]:
    """The phases that nodes are in until all is done."""
    seen: set[str] = set()
    for _ in range(passes):
        go(history, 1, 10)
        seen |= set(phases(history).values())
        if not history.problems():
            return seen
    raise AssertionError(f"{history.problems()}, after {seen}")


@pytest.mark.parametrize("writes", range(4, 9))
@pytest.mark.parametrize("hours", [2, 10])
def test_killed_between_two_writes_and_away_for_hours(writes: int, hours: int) -> None:
    """Nothing was late while nobody could ask for it: no node ends in quarantine."""
    history = quiet(2)
    roll(history)
    until(history, "n0", "Evicting")
    history.watcher.kill["one"] = writes
    while history.replica.number == 1:
        go(history, 1, 3)
    for _ in range(hours * 120):
        history.world.tick(30)
    assert "Quarantine" not in ever(history)


@pytest.mark.parametrize("phase", ["Acting", "Verifying"])
def test_an_api_server_that_gives_no_answer_for_hours(phase: str) -> None:
    """Neither could a node tell how far it was: what is late by then goes on, though its driver pod was deleted before
    and nothing is well when the first answer comes."""
    history = quiet(1)
    machine = history.world.machines["n0"]
    machine.faults.add("validator")
    roll(history)
    until(history, "n0", phase)
    go(history, 3, 10)
    history.world.set_works("n0", False)
    check = history.watcher._refuse

    def refused(request: object) -> None:
        history.watcher._request = None
        raise Unreachable("no answer")

    history.watcher._refuse = refused  # type: ignore[method-assign]
    go(history, 200)
    history.watcher._refuse = check  # type: ignore[method-assign]
    go(history, 3, 10)
    assert phases(history) == {"n0": phase}
    history.world.set_works("n0", True)
    machine.faults.clear()
    assert "Quarantine" not in ever(history)


def test_a_program_that_lives_for_a_minute_at_a_time() -> None:
    """A driver that hangs is given up after the policy's time in which somebody watched, and not never."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    history.world.set_works("n0", False)
    for _ in range(40):
        history.restart(0)
        go(history, 10, 7)
        for _ in range(11):
            history.world.tick(30)
    assert phases(history) == {"n0": "Quarantine"}


@pytest.mark.parametrize("phase", ["Evicting", "Acting", "Verifying"])
@pytest.mark.parametrize("hours", [-3, 1, 12])
def test_a_clock_that_jumps(phase: str, hours: int) -> None:
    """By hours, while a node is worked on: it goes on as before."""
    history = quiet(2)
    roll(history)
    until(history, "n0", phase)
    history.world.server.now += timedelta(hours=hours)
    assert "Quarantine" not in ever(history)


def test_two_api_servers_that_disagree_by_hours() -> None:
    """Each answer comes from another one."""
    history, ahead = quiet(2), [0]
    roll(history)

    def other() -> None:
        ahead[0] = 3 - ahead[0]
        history.world.server.now += timedelta(hours=3 if ahead[0] else -3)

    for _ in range(60):
        go(history, 1, 10, other)
        assert "Quarantine" not in phases(history).values()
    assert loaded(history) == ["2", "2"]


def test_an_operator_that_runs_for_hours_while_a_node_is_worked_on() -> None:
    """Nothing was done meanwhile, so nothing has failed."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    found = {"metadata": {"name": "gpu-operator", "namespace": NAMESPACE}, "status": {"readyReplicas": 1}}
    history.world.server.put(DEPLOYMENTS, found)
    said = go(history, 300)
    assert said == ["n0 operator: gpu-operator/gpu-operator runs: nothing is written on nodes"]
    history.world.server.remove(DEPLOYMENTS, "gpu-operator", NAMESPACE)
    assert "Quarantine" not in ever(history)


def test_a_policy_that_is_made_anew_while_it_soaks() -> None:
    """The next node waits for the time that is left, whoever leads by then."""
    history = quiet(2)
    roll(history, soakSeconds=1800)
    until(history, "n0", "Verifying")
    go(history, 12, 10)
    spec = history.world.server.get(POLICIES, POOL)["spec"]
    history.world.server.remove(POLICIES, POOL)
    go(history, 5)
    history.restart(0)
    history.sync(0)
    history.world.server.edit(POLICIES, POOL, {"spec": spec})
    go(history, 15)
    assert loaded(history) == ["2", "1"]
    assert phases(history) == {}
    go(history, 25)
    assert loaded(history) == ["2", "2"]


def test_a_roll_out_that_stands_in_windows_of_half_an_hour_a_day() -> None:
    """After the time of two of them the metric says that it has stood for an hour; between them it says nothing."""
    history = quiet(1)
    start(history.world, Workload("bare", 1, owned=False), "n0")
    history.world.server.now = history.world.server.now.replace(hour=22, minute=30)
    roll(history, windows=[{"start": "22:00", "hours": 1}])
    go(history, 25)
    assert 20 * 60 <= stood(history) < 30 * 60
    go(history, 20)
    assert stood(history) == 0
    go(history, 273, 300)
    history.restart(0)  # whoever leads next goes on with it
    go(history, 40)
    assert 60 * 60 <= stood(history) < 90 * 60


def test_nodes_of_all_zones_have_their_turn() -> None:
    """Those that begin at once are spread over the zones, though the names of one come first."""
    history = quiet(0)
    for number in range(6):
        history.world.add_node(f"m{number}", POOL, "aaabbb"[number])
    ever(history)
    roll(history, maxParallel=2, maxUnavailable=2, firstAlone=False)
    at_once = set()
    for _ in range(120):
        go(history, 1, 10)
        at_once.add(tuple(phases(history)))
    assert {names for names in at_once if len(names) == 2} == {("m0", "m3"), ("m1", "m4"), ("m2", "m5")}


def test_what_keeps_a_node_is_named() -> None:
    """A taint that came after its driver pod was deleted; the kubelet's words of a driver pod that it has given up, and
    of a validator."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    history.world.server.edit(NODES, "n0", {"spec": {"taints": [{"key": "example.com/x", "effect": "NoSchedule"}]}})
    assert "n0 acting: the driver does not tolerate the taint example.com/x: its pod would not come back" in go(
        history, 5, 10
    )
    history.world.server.edit(NODES, "n0", {"spec": {"taints": None}})
    history.world.machines["n0"].faults.add("registry")
    go(history, 3, 10)
    history.world.machines["n0"].faults.add("validator")
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory"}
    told: list[str] = []
    for _ in range(3):
        pod = history.world.operand("nvidia-driver-daemonset", "n0")
        assert pod is not None
        waits = {"status": {**status, "initContainerStatuses": [], "containerStatuses": []}}
        history.world.server.edit(PODS, pod["metadata"]["name"], waits, NAMESPACE)
        told += go(history, 1, 10)
    assert any("has failed: Evicted: The node was low on resource: memory" in text for text in told)
    assert m.operation(history.world.node("n0"))["phase"] == "Acting"


def test_annotations_that_somebody_wipes_while_a_node_is_worked_on() -> None:
    """Whose cordon it is can't be told then; the reason says so, and what it advises works."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    history.world.annotate("n0", dict.fromkeys(history.world.annotations("n0")))
    said = go(history, 20, 10)
    why = "n0 cordoned: somebody else cordoned the node, or took our annotations off it: kubectl uncordon n0 once it"
    assert any(text.startswith(why) for text in said), said
    go(history, 20)
    assert history.world.cordoned("n0")
    history.world.cordon("n0", on=False)
    assert "Quarantine" not in ever(history)
    assert loaded(history) == ["2"]


def test_a_node_in_quarantine_whose_gpu_is_gone() -> None:
    """No attempt mends that: the reason names what gives the node back, and that does."""
    history = quiet(1)
    history.world.machines["n0"].faults.add("driver")
    roll(history)
    until(history, "n0", "Quarantine", 20)
    history.world.label("n0", {m.PCI: None})
    said = go(history, 5)
    assert any("sees no GPU there" in text and "kubectl annotate node n0 gpustack.dev/op-" in text for text in said)
    history.world.annotate("n0", {m.OP: None})
    go(history, 5)
    assert not history.world.cordoned("n0")
    assert phases(history) == {}


def test_a_driver_pod_that_no_scheduler_places() -> None:
    """The reason has its words."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    go(history, 2)
    pod = history.world.operand("nvidia-driver-daemonset", "n0")
    assert pod is not None
    why = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient memory."}
    waits = {"spec": {"nodeName": None}, "status": {"conditions": [why], "containerStatuses": []}}
    history.world.server.edit(PODS, pod["metadata"]["name"], waits, NAMESPACE)
    (said,) = go(history, 1, 1)
    assert said == (
        f"n0 acting: waits for the new driver pod: {NAMESPACE}/{pod['metadata']['name']} is on no node: 0/1 nodes are "
        "available: 1 Insufficient memory.; see whether the node has room for what the driver asks for"
    )
