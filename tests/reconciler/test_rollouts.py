"""Rollouts as people see them: what is begun, what is left alone, and what stops them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.core.moves import pause_before
from gpustack.reconciler.shell.cluster import (
    DAEMONSETS,
    PODS,
    POLICIES,
    ApiError,
    Conflict,
    Forbidden,
    TooMany,
    Unreachable,
)
from tests.reconciler.memory import FakeCluster
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import STEPS, History
from tests.reconciler.world.stack import DRIVER, NAMESPACE
from tests.reconciler.world.stack import POOL as KEY
from tests.reconciler.world.workloads import Workload, add_workload, start


def phases(history: History) -> dict[str, str]:
    """The phase of each node on which an operation is open."""
    found = {name: m.operation(history.world.node(name)).get("phase", "") for name in history.world.machines}
    return {name: phase for name, phase in found.items() if phase}


def status(history: History) -> dict[str, Any]:
    """The status of the pool's policy."""
    return dict(history.world.server.get(POLICIES, POOL)["status"])


def go(history: History, passes: int, seconds: float = 10.0) -> None:
    """Some passes."""
    for _ in range(passes):
        history.once()
        history.world.tick(seconds)


def test_a_hundred_bare_nodes_are_set_up_without_a_cordon() -> None:
    """As a cluster autoscaler adds them (A4): outside the budget of one, fifty at a time."""
    history = History(1)
    for number in range(100):
        history.world.add_node(f"new-{number}")
    most = 0
    for _ in range(60):
        history.once()
        assert not any(history.world.cordoned(name) for name in history.world.machines)
        most = max(most, len(phases(history)))
        history.world.tick(10)
    assert most == 50
    assert history.problems() == []
    assert status(history)["current"] == 101


def test_the_breaker_stops_a_rollout_until_it_is_reset() -> None:
    """Two nodes fail, and two stop it (the model's policies say so), though the budget would let a third go."""
    history = History(4, limits=3)
    for machine in history.world.machines.values():
        machine.faults.add("driver")
    history.want.version = "2"
    history.sync(0)
    go(history, 350)
    assert sorted(phases(history).values()) == ["Quarantine", "Quarantine"]
    assert status(history)["breaker"]["open"] is True
    for machine in history.world.machines.values():
        machine.faults.clear()
    history.retry(1)
    go(history, 400)
    assert phases(history) == {}
    assert history.problems() == []
    assert not status(history)["breaker"].get("open")


def test_a_pause_and_a_hold_begin_nothing_and_say_so() -> None:
    """Paused, the status says who waits and why; Ready stays true, or Flux would hold the next commit (A7)."""
    history = History(2)
    history.pause(1)
    history.want.version = "2"
    history.sync(0)
    go(history, 10)
    assert phases(history) == {}
    assert [(each["reason"], each["count"]) for each in status(history)["waiting"]] == [("paused", 2)]
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status(history)["conditions"]}
    assert conditions["Ready"][0] == "True"
    assert conditions["RolledOut"] == ("False", "Paused")
    history.pause(1)
    history.hold(0)
    go(history, 120)
    assert [wait.node for wait in history.replica.decided.waits if wait.kind == "hold"] == ["n0"]
    assert history.world.machines["n1"].loaded == "digest-2"


def test_a_window_gates_what_begins() -> None:
    """It is nine in the morning, and the window is at 22:00."""
    history = History(2)
    history.want.version, history.want.window = "2", True
    history.sync(0)
    go(history, 10)
    assert phases(history) == {}
    assert {wait.kind for wait in history.replica.decided.waits} == {"window"}
    while not phases(history) and history.world.server.now.hour < 23:
        go(history, 1, 300)
    assert "22:00" < history.world.server.now.strftime("%H:%M") < "22:11", "begun in the first pass in the window"
    go(history, 150)
    assert history.problems() == []


def test_what_the_operator_left_is_gone_on_with() -> None:
    """Its cordon becomes ours; a node that the user had cordoned before stays cordoned (A6)."""
    history = History(2)
    history.operator(0)
    history.operator(9)
    history.want.version = "2"
    history.sync(0)
    go(history, 200)
    assert [history.world.machines[name].loaded for name in ("n0", "n1")] == ["digest-2", "digest-2"]
    assert [history.world.cordoned(name) for name in ("n0", "n1")] == [False, True]
    for name in ("n0", "n1"):
        assert m.UPSTREAM not in history.world.labels(name)
        assert not any("gpu-driver-upgrade." in key for key in history.world.annotations(name))


def test_a_node_whose_pods_cannot_be_evicted_is_not_cordoned() -> None:
    """The trial says so before anything happens, and names the budget."""
    history = History(2)
    history.workload(4)
    for _ in range(3):
        history.world.tick()
    history.want.version = "2"
    history.sync(0)
    go(history, 10)
    blocked = [wait for wait in history.replica.decided.waits if wait.kind == "blocked"]
    assert blocked
    assert "train" in blocked[0].message
    assert not any(history.world.cordoned(wait.node) for wait in blocked)


def test_a_node_that_is_taken_over_holds_its_slot_at_once() -> None:
    """The operator's half-done upgrade counts in the very pass that takes it over: nobody else begins beside it."""
    steps = [("go", 5), ("operator", 8), ("driver", 10), ("tick", 2), ("go", 1)]
    history = History(2, installed=False, limits=3)
    for name, number in steps:
        STEPS[name](history, number)
    assert len(phases(history)) == 1


def test_a_node_that_comes_again_is_new_though_pods_of_the_former_linger() -> None:
    """They end by and by; until its layout is there the new machine offers no whole GPU (P42, I24)."""
    history = History(2)
    history.mig(1)
    go(history, 80, 15)
    assert history.problems() == []
    old = next(name for name in history.world.machines if any(history.world.gpu_pods(name)))
    history.world.remove_node(old, lingering=True)
    history.world.add_node(old)
    waits = set()
    for _ in range(40):
        history.once()
        waits |= {wait.kind for wait in history.replica.decided.waits if wait.node == old}
        assert not history.world.node(old)["status"]["allocatable"].get("nvidia.com/gpu", 0)
        history.world.tick(5)
    assert "looking" in waits
    assert history.problems() == []
    assert '"kind":"install"' in history.world.annotations(old)[m.LAST]


def test_what_is_past_evicting_outlives_its_policy() -> None:
    """The record has all that finishing needs (A2): the policy goes while the driver is installed, and the node is
    given back with the new driver, not put into quarantine for want of a DaemonSet.
    """
    history = History(1)
    history.want.version = "2"
    history.sync(0)
    for _ in range(100):
        if phases(history).get("n0") == "Acting":
            break
        go(history, 1, 2)
    history.world.server.remove(POLICIES, POOL)
    go(history, 40)
    assert phases(history) == {}
    assert history.world.machines["n0"].loaded == "digest-2"
    assert not history.world.cordoned("n0")


def test_nodes_whose_labels_are_gone_are_missed() -> None:
    """NFD's labels are stripped from all nodes, as an uninstallation of its chart does (moving.md M4): nothing is done,
    and the policy does not say that all is."""
    history = History(2)
    for name in history.world.machines:
        history.world.label(name, {m.PCI: None, "example.com/pool": None})
    go(history, 3)
    (rolled,) = (each for each in status(history)["conditions"] if each["type"] == "RolledOut")
    assert (rolled["status"], rolled["reason"]) == ("False", "NoNodes")
    assert rolled["message"].startswith("n0 and 1 more belonged to it")
    assert all(history.world.labels(name)[f"{m.DEPLOY}driver"] == "true" for name in history.world.machines)


def test_nodes_that_work_without_extended_resources_are_not_new() -> None:
    """With DRA or virtual machines a node offers no GPU to pods, and yet serves: the stack's pods on it say so. Nothing
    is installed there without cordon and budget (moving.md M8)."""
    history = History(2)
    for name, machine in history.world.machines.items():
        machine.faults.add("silent")
        history.world.annotate(name, {m.MEMORY: None, m.LAST: None})
    history.world.workloads.clear()
    for pod in list(history.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    history.world.tick()
    assert not any(
        history.world.node(name)["status"]["allocatable"].get("nvidia.com/gpu", "0") != "0" for name in ("n0", "n1")
    )
    seen = set()
    for _ in range(20):
        history.once()
        seen |= set(phases(history).values())
        history.world.tick()
    assert seen == set()
    assert all(m.MEMORY in history.world.annotations(name) for name in history.world.machines)


def test_a_validator_that_ran_before_the_takeover_counts() -> None:
    """The operator had the node validated when it was stopped, and the validator's pod was replaced by our own apply
    shortly before: it started after the driver was ready, so nothing is left to prove (moving.md M8)."""
    history = History(1)
    history.world.delete_operand("nvidia-operator-validator", "n0")
    for _ in range(5):
        history.world.tick(10)
    history.operator(2)  # validation-required
    go(history, 6)
    assert phases(history) == {}
    assert not history.world.cordoned("n0")


def test_the_operators_keys_go_with_the_write_that_takes_its_node_over() -> None:
    """A node with a record of ours has no key of the operator's any more, so nobody goes on with both (U10)."""
    history = History(1)
    history.operator(8)  # pod-deletion-required, on a node that its user had cordoned
    go(history, 1)
    assert phases(history) == {"n0": "Evicting"}
    assert not set(keys.UPSTREAM_ANNOTATIONS) & history.world.annotations("n0").keys()


def test_the_breaker_stays_open_while_nobody_knows_the_revision() -> None:
    """The DaemonSet controller is away, or the DaemonSet is made anew: that is no new target, and closes nothing
    (I23)."""
    history = History(4, limits=3)
    for machine in history.world.machines.values():
        machine.faults.add("driver")
    history.want.version = "2"
    history.sync(0)
    go(history, 100)
    assert status(history)["breaker"]["open"] is True
    found = history.world.server.get(DAEMONSETS, DRIVER, NAMESPACE)
    for gone in (False, True):
        if gone:
            history.world.server.remove(DAEMONSETS, DRIVER, NAMESPACE)
        else:
            history.world.server.edit(DAEMONSETS, DRIVER, {"status": {"observedGeneration": 0}}, NAMESPACE)
        history.once()
        assert status(history)["breaker"]["open"] is True
        assert len(phases(history)) == 2
    history.world.server.put(DAEMONSETS, {key: found[key] for key in ("metadata", "spec")})
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status(history)["conditions"]}
    assert conditions["Stalled"] == ("True", "BreakerOpen")
    assert conditions["Ready"][0] == "True"


def test_new_nodes_neither_open_the_breaker_nor_wait_for_it() -> None:
    """Their driver fails, two of them, which is the limit: nodes that work are rolled all the same; and where those
    have failed, good new nodes are set up."""
    history = History(1, limits=3)
    for name in ("bad-0", "bad-1"):
        history.world.add_node(name).faults.add("driver")
    go(history, 60)
    assert phases(history) == {"bad-0": "Quarantine", "bad-1": "Quarantine"}
    history.want.version = "2"
    history.sync(0)
    go(history, 60)
    assert history.world.machines["n0"].loaded == "digest-2"
    assert not status(history)["breaker"].get("open")
    history.world.add_node("good")
    go(history, 30)
    assert history.world.machines["good"].loaded == "digest-2"


def test_a_node_that_is_tried_again_has_failed_nevertheless() -> None:
    """One at a time, each fails and waits for its next attempt: the second opens the breaker, whatever the first is at
    by then; in three pools it takes two nodes, and not two of each."""
    history, one = History(3), {"maxParallel": 1, "maxUnavailable": "100%"}
    for number, machine in enumerate(history.world.machines.values()):
        machine.faults.add("driver")
        history.world.label(machine.name, {KEY: f"pool-{number}"})
        history.world.set_policy(f"pool-{number}", **history.want.options(), fleet=one)
    history.world.server.remove(POLICIES, POOL)
    go(history, 4)
    history.world.set_driver("2")
    history.want.version = "2"
    for number in range(3):
        history.world.set_policy(f"pool-{number}", **history.want.options(), fleet=one)
    fallen: set[str] = set()
    for _ in range(600):
        go(history, 1)
        fallen |= {name for name, phase in phases(history).items() if phase == "Quarantine"}
    states = [history.world.server.get(POLICIES, f"pool-{number}")["status"]["breaker"] for number in range(3)]
    assert [each.get("open") for each in states] == [True, True, True]
    assert len(fallen) == 2
    assert all("2 failed nodes stop the rollout" in each["message"] for each in states)


def test_a_limit_of_failures_in_per_cent() -> None:
    """Half of four nodes is two."""
    history = History(4, limits=3)
    for machine in history.world.machines.values():
        machine.faults.add("driver")
    history.want.version = "2"
    history.world.set_driver("2")
    options = history.want.options()
    history.world.set_policy(POOL, **{**options, "upgrade": {**options["upgrade"], "breakerFailures": "50%"}})
    go(history, 150)
    assert status(history)["breaker"]["open"] is True
    assert len(phases(history)) == 2


def test_a_driver_that_crashes_fails_at_once_in_its_own_words() -> None:
    """Long before the deadline of a quarter of an hour; the reason names pod, container and restarts."""
    history = History(2)
    history.world.machines["n0"].faults.add("driver")
    history.want.version = "2"
    history.sync(0)
    before = history.world.elapsed
    while phases(history).get("n0") != "Quarantine":
        go(history, 1)
        assert history.world.elapsed - before < 500
    reason = m.operation(history.world.node("n0"))["reason"]
    assert "nvidia-driver-daemonset is in CrashLoopBackOff after 3 restarts" in reason


def test_a_registry_that_gives_no_answer_pauses_the_rollout() -> None:
    """The node that waits for its image waits on, past its deadline, and is no failure; no other one is emptied
    meanwhile. The registry is back, and all go on."""
    history = History(3, limits=3)
    history.want.version = "2"
    for machine in history.world.machines.values():
        machine.faults.add("registry")
    history.want.limits = 0
    history.sync(0)
    go(history, 30)
    history.want.limits = 3
    history.sync(0)
    go(history, 150)
    assert phases(history) == {"n0": "Acting"}
    waits = {wait.kind: wait.message for wait in history.replica.decided.waits}
    assert "ImagePullBackOff" in waits["acting"]
    assert "i/o timeout" in waits["image"]
    for machine in history.world.machines.values():
        machine.faults.clear()
    go(history, 150)
    assert history.problems() == []


def test_a_record_lives_no_longer_than_the_policy_lets_it() -> None:
    """A kubelet writes what it likes on its own node: a record in Acting without an end, or with one in a hundred
    years, holds the only slot for as long as the policy lets a phase take; who holds it is named meanwhile."""
    history = History(2, limits=3)
    history.want.version = "2"
    history.sync(0)
    for _ in range(30):
        if phases(history).get("n0") == "Acting":
            break
        go(history, 1, 5)
    history.world.set_works("n0", False)
    found = json.loads(history.world.annotations("n0")[m.OP])
    history.world.annotate("n0", {m.OP: json.dumps({**found, "deadline": "2126-01-01T00:00:00Z"})})
    go(history, 2)
    (wait,) = (each for each in history.replica.decided.waits if each.kind == "parallel")
    assert wait.message == "1 of 1 operations of gpus are under way: n0"
    go(history, 400, 15)
    assert history.world.machines["n1"].loaded == "digest-2"


def forged(history: History, phase: str) -> str:
    """A record that whoever owns a node writes: of this policy, and with all the time that there is."""
    until = "2099-01-01T00:00:00Z"
    policy = history.world.server.get(POLICIES, POOL)["metadata"]["uid"]
    times = dict.fromkeys(("since", "started", "deadline"), until)
    return json.dumps({"v": 1, "id": m.FORGED, "acts": ["driver"], "phase": phase, "policy": policy, **times})


@pytest.mark.parametrize("phase", ["Held", "Acting", "Verifying", "{"])
def test_a_record_that_nobody_began_holds_no_slot(phase: str) -> None:
    """A kubelet may write annotations of its node: what counts is the Lease. It is reported with the node's name, the
    others are rolled within the budget of one, and after a quarter of an hour the record goes.
    """
    history = History(4)
    go(history, 60)
    history.world.annotate("n0", {m.OP: forged(history, phase) if phase != "{" else "{"})
    history.driver(0)
    begun = set()
    for _ in range(20):
        history.once()
        begun |= set(phases(history)) - {"n0"}
        history.world.tick(10)
    assert begun
    assert [wait.kind for wait in history.replica.decided.waits if wait.node == "n0"] == [
        "unledgered" if phase != "{" else "unreadable"
    ]
    if phase != "{":
        assert [group for group in status(history)["waiting"] if "n0" in group["nodes"]]
        go(history, 90)
        assert m.operation(history.world.node("n0")).get("id") != m.FORGED
        assert m.annotations_of(history.world.node("n0")).get(m.OP, "") != forged(history, phase)


def test_what_a_record_says_of_itself_is_bounded_by_its_policy() -> None:
    """An operation of ours whose record gives it 10,000 attempts and ten years, anew at each look, has those of the
    policy: three, of half an hour each at the most, and then it stays in quarantine.
    """
    history = History(1, limits=3)
    go(history, 60)
    history.world.machines["n0"].faults.add("driver")
    history.driver(0)
    years, attempts = {"driverSeconds": 10**9, "verifySeconds": 10**9, "maxAttempts": 10**4}, set()
    for _ in range(24 * 30):
        found = m.operation(history.world.node("n0"))
        if found.get("phase") == "Acting":
            attempts.add(found["id"])
            now = history.world.server.now.isoformat()
            times = {"deadline": "2099-01-01T00:00:00Z", "since": now}
            lies = {**found, **times, "finish": {**found["finish"], **years}}
            history.world.annotate("n0", {m.OP: json.dumps(lies)})
        go(history, 1, 120)
    assert len(attempts) == 3
    assert m.operation(history.world.node("n0"))["phase"] == "Quarantine"


def test_a_node_that_alone_gets_no_image_is_its_own_trouble() -> None:
    """Another node has the image, and gets it later: the one whose network is broken ends in quarantine, and stops
    nobody for more than an hour."""
    history = History(3, limits=3)
    history.world.machines["n1"].faults.add("registry")
    history.want.version = "2"
    history.sync(0)
    go(history, 415)
    assert [history.world.machines[name].loaded for name in ("n0", "n2")] == ["digest-2"] * 2
    assert phases(history) == {"n1": "Quarantine"}


def test_the_first_node_goes_alone_and_then_the_budget() -> None:
    """Two of four nodes may go at a time, and none has shown yet that the new driver works: one goes, and says so to
    the others; once it works, two go at a time."""
    history = History(4, limits=2)
    add_workload(history.world, Workload("train", 0))
    history.want.version = "2"
    history.sync(0)
    most_before, most_after, told = 0, 0, set()
    for _ in range(200):
        go(history, 1, 5)
        proved = any(
            history.world.machines[name].loaded == "digest-2" and name not in phases(history)
            for name in history.world.machines
        )
        told |= {wait.message for wait in history.replica.decided.waits if wait.kind == "first"}
        if proved:
            most_after = max(most_after, len(phases(history)))
        else:
            most_before = max(most_before, len(phases(history)))
    assert (most_before, most_after) == (1, 2)
    assert any(text.startswith("n0 goes first and alone: no node of NVIDIA-H100") for text in told)
    assert history.problems() == []


def test_a_kernel_that_nobody_has_seen_has_a_first_node_of_its_own() -> None:
    """Two nodes have a kernel, two another, and the budget would let two go: of each kernel one goes alone until it
    works, and the other one says whom it waits for and on which kernel."""
    history = History(4, limits=4)
    kernels = dict(zip(sorted(history.world.machines), ("5.15", "5.15", "6.8", "6.8"), strict=True))
    for name, kernel in kernels.items():
        history.world.label(name, {"feature.node.kubernetes.io/kernel-version.full": kernel})
        add_workload(history.world, Workload(f"train-{name}", 0))
    history.want.version = "2"
    history.sync(0)
    most, told = dict.fromkeys(("5.15", "6.8"), 0), set[str]()
    for _ in range(200):
        go(history, 1, 5)
        busy = phases(history)
        loaded = {name for name, each in history.world.machines.items() if each.loaded == "digest-2"}
        for kernel in most.keys() - {kernels[name] for name in loaded - busy.keys()}:
            most[kernel] = max(most[kernel], sum(kernels[name] == kernel for name in busy))
        told |= {wait.message for wait in history.replica.decided.waits if wait.kind == "first"}
    assert most == {"5.15": 1, "6.8": 1}
    assert loaded == kernels.keys()
    assert any(" with kernel 5.15 works with" in text for text in told)
    assert history.problems() == []


@pytest.mark.parametrize("trouble", ["", "restarts", "conflicts"])
def test_each_node_soaks_before_the_next(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes lie between the end of one node and the beginning of the next, whatever the budget says and however
    often the program starts anew or can't write until when; the others say whom they wait for."""
    patch, asked = FakeCluster.patch, itertools.count()

    async def conflicts(self: FakeCluster, kind: Any, name: str, body: Any, **where: Any) -> Any:
        if (body.get("status") or {}).get("soak") and next(asked) % 2 == 0:
            raise Conflict("the object has been modified", 409)
        return await patch(self, kind, name, body, **where)

    if trouble == "conflicts":
        monkeypatch.setattr(FakeCluster, "patch", conflicts)
    history = History(3, limits=2)
    history.want.together, history.want.soak, history.want.version = True, 600, "2"
    history.sync(0)
    began: dict[str, int] = {}
    ended: dict[str, int] = {}
    told: set[str] = set()
    for second in range(0, 4500, 15):
        if trouble == "restarts" and second % 300 == 0:
            history.restart(0)
        go(history, 1, 15)
        for name in phases(history):
            began.setdefault(name, second)
        for name in began.keys() - phases(history).keys():
            ended.setdefault(name, second)
        waits = [wait.message for wait in history.replica.decided.waits if wait.kind == "soak"]
        assert not waits or history.replica.decided.again <= 60
        told |= {text.partition(" ")[0] for text in waits}
    order = sorted(began, key=lambda name: began[name])
    assert len(ended) == 3
    assert all(began[two] - ended[one] >= 570 for one, two in itertools.pairwise(order[1:]))
    assert told <= set(order)
    assert told
    assert history.problems() == []


def test_a_first_node_that_hangs_is_not_waited_for_for_ever() -> None:
    """Its pod waits for hours to end: after one, another node shows whether the driver works."""
    history = History(3, limits=2)
    add_workload(history.world, Workload("train", 0))
    for pod in list(history.world.gpu_pods("n0")):
        grace = {"metadata": {"labels": {"ends-after": "1e9"}}, "spec": {"terminationGracePeriodSeconds": 36000}}
        history.world.server.edit(PODS, pod["metadata"]["name"], grace, "work")
    history.want.version = "2"
    history.sync(0)
    go(history, 220, 15)
    assert "n1" not in phases(history)
    assert history.world.machines["n1"].loaded == "digest-1"
    go(history, 150, 15)
    assert [history.world.machines[name].loaded for name in ("n0", "n1", "n2")] == ["digest-1", "digest-2", "digest-2"]


def test_each_phase_is_told_in_plain_words() -> None:
    """Why the node is cordoned, until when, and what to do; once for each phase, and in its order."""
    history = History(1)
    history.want.version = "2"
    history.sync(0)
    told: list[tuple[str, str]] = []
    for _ in range(80):
        go(history, 1, 5)
        told += [(tell.reason, tell.message) for tell in history.replica.decided.tells]
    found = dict(told)
    phases_told = [reason for reason, _ in told if reason.startswith("Operation")]
    assert phases_told == [f"Operation{each}" for each in ("Held", "Evicting", "Acting", "Verifying", "Done")]
    assert found["OperationHeld"].startswith("cordoned for driver (driver ")
    assert "until 2026-01-05T09:" in found["OperationEvicting"]
    assert "kubectl label node n0 gpustack.dev/hold=true" in found["OperationEvicting"]
    assert "there is no way back" in found["OperationActing"]


def deny(history: History, *nodes: str, error: ApiError | None = None) -> None:
    """A policy or a webhook refuses every change of these nodes; of others nothing."""
    history.watcher.denied = {name: error or Forbidden(DENIAL, 403) for name in nodes}


DENIAL = 'admission webhook "nodes.example.com" denied the request: n0 is pinned'


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(DENIAL, 403),
        ApiError(DENIAL, 400),
        ApiError("Internal error occurred: failed calling webhook", 500),
        Conflict("the object has been modified", 409),
        TooMany(DENIAL),
        Unreachable("no answer within 30 s"),
    ],
    ids=["403", "400", "500", "409", "429", "none"],
)
def test_a_refused_change_of_one_node_stops_no_other(error: ApiError) -> None:
    """Whatever the API server answers to each change of a node: the others have their turn, the node says why it waits,
    in the server's words, and has it when it may."""
    history = History(3)
    deny(history, "n0", error=error)
    history.want.version = "2"
    history.sync(0)
    told = set()
    for _ in range(150):
        go(history, 1)
        told |= {(tell.node, tell.reason) for tell in history.replica.decided.tells}
    assert [history.world.machines[name].loaded for name in ("n0", "n1", "n2")] == ["digest-1", "digest-2", "digest-2"]
    assert not history.world.cordoned("n0")
    (waiting,) = status(history)["waiting"]
    assert (waiting["reason"], waiting["nodes"]) == ("refused", ["n0"])
    assert str(error) in waiting["message"]
    assert ("n0", "ChangeRefused") in told
    history.watcher.denied = {}
    go(history, 100, 15)
    assert history.problems() == []


def test_a_node_whose_pods_can_not_be_read_makes_room() -> None:
    """The trial of its evictions gets no answer, pass after pass: the others have their turn, and the node says why."""
    history = History(3)
    history.watcher.unlisted = {"n0": ApiError("there are more than 3000 pods")}
    history.want.version = "2"
    history.sync(0)
    go(history, 150)
    assert [history.world.machines[name].loaded for name in ("n0", "n1", "n2")] == ["digest-1", "digest-2", "digest-2"]
    (waiting,) = status(history)["waiting"]
    assert (waiting["reason"], waiting["nodes"]) == ("checking", ["n0"])
    assert "there are more than 3000 pods" in waiting["message"]


def test_the_pause_after_a_failure_doubles() -> None:
    """Five minutes at first, and six hours at most (A5)."""
    minutes = [pause_before(attempt).total_seconds() / 60 for attempt in range(1, 10)]
    assert minutes == [5, 10, 20, 40, 80, 160, 320, 360, 360]


TIER = "example.com/tier"


def begun(history: History, **upgrade: Any) -> list[str]:
    """The nodes in the order in which they have their turn, with UPGRADE over the policy's: one at a time."""
    history.want.version = "2"
    history.sync(0)
    history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": {**upgrade, "firstAlone": False}}})
    order: list[str] = []
    for _ in range(400):
        history.once()
        order += [name for name in sorted(phases(history)) if name not in order]
        history.world.tick(5)
        if len(order) == len(history.world.machines) and not phases(history):
            return order
    raise AssertionError(order)


def test_nodes_have_their_turn_by_their_labels() -> None:
    """The first label decides before the second; a value that isn't named, or no label, comes last."""
    history = History(4)
    for name, tier in (("n0", "prod"), ("n1", "dev"), ("n3", "canary")):
        history.world.label(name, {TIER: tier})
    order = [{"label": TIER, "values": ["canary", "dev"]}, {"label": "rack", "values": ["2"]}]
    history.world.label("n2", {"rack": "2"})
    assert begun(history, order=order) == ["n3", "n1", "n2", "n0"]


def test_the_least_used_go_first() -> None:
    """Of the next, those with the fewest pods that use a GPU; without a word of it by name."""
    for wanted, least in ((["n2", "n0", "n1"], True), (["n0", "n1", "n2"], False)):
        history = History(3)
        add_workload(history.world, Workload("train", 0))
        for pod in list(history.world.server.all(PODS)):
            if pod["metadata"]["namespace"] == "work":
                history.world.server.remove(PODS, pod["metadata"]["name"], "work")
        for node, pods in (("n0", 1), ("n1", 2)):
            for _ in range(pods):
                start(history.world, Workload(f"of-{node}", 0, ends_after=5), node)
        history.world.tick(90)  # what was counted when they were set up is forgotten
        assert begun(history, leastUsed=least) == wanted


def test_the_least_used_go_first_where_nothing_happens() -> None:
    """In a quiet cluster a minute lies between two passes: what was counted in one is still known in the next."""
    history = History(2)
    add_workload(history.world, Workload("train", 0))
    history.want.version, history.want.least = "2", True
    history.sync(0)
    for _ in range(10):
        history.once()
        history.world.tick(60)
    assert phases(history) or history.world.machines["n0"].loaded == "digest-2"
