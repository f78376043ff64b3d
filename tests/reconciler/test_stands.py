"""No node stops the others for good, and none stops in silence, whatever is refused, undone or forged, each time anew.

Scenarios of an attack on the reconciler; by what each is wrong stands in docs/facts/reconciler.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.api import keys
from gpustack.reconciler.shell.cluster import LEASES, POLICIES, ApiError, Forbidden, TooMany, Unreachable
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.trials import (
    another_leads,
    comes_again,
    evicted,
    go,
    loaded,
    phases,
    quiet,
    rewrite,
    roll,
    stood,
    until,
)
from tests.reconciler.world.stack import DRIVER, NAMESPACE
from tests.reconciler.world.workloads import Workload, add_workload, start

DENIED = Forbidden('admission webhook "x" denied the request: pinned', 403)
BUDGET = TooMany("Cannot evict", 0.0, ("The disruption budget a needs 1 healthy pods and has 1 currently",))
OTHERS = ["2", "2"]
"""What the second and the third node have once they have had their turn."""


def test_a_pod_that_tolerates_the_cordon_and_comes_again() -> None:
    """It is evicted a few times, three attempts are given up, and the others have their turn."""
    history = quiet(3)
    again = comes_again(history, "n0")
    roll(history)
    go(history, 1200, 10, again)
    assert loaded(history)[1:] == OTHERS
    assert phases(history) == {}
    assert len(evicted(history)) < 30
    (wait,) = history.replica.decided.waits
    assert wait.message.startswith("given up 3 times: ")


def test_a_pod_that_comes_again_while_the_driver_is_built() -> None:
    """It is evicted ever more seldom."""
    history = quiet(1)
    roll(history)
    until(history, "n0", "Acting")
    again = comes_again(history, "n0")
    go(history, 80, 10, again)
    assert len(evicted(history)) < 20


@pytest.mark.parametrize("error", [Unreachable("no answer within 30 s"), TooMany("too many requests", 1.0)])
def test_an_eviction_that_nobody_answers(error: ApiError) -> None:
    """The node's other pods are asked for, too, the server's words are told, and the time of the policy ends it."""
    history = quiet(3)
    pod = start(history.world, Workload("a", 1, ends_after=1), "n0")["metadata"]["name"]
    start(history.world, Workload("b", 1, ends_after=1), "n0")
    roll(history)
    until(history, "n0", "Evicting")
    history.watcher.spared = {("create", pod): error}
    said = go(history, 60)
    assert any(f"n0 evicting: work/{pod}: {error}" in text for text in said)
    assert evicted(history)[0] == "b"
    assert loaded(history)[1:] == OTHERS


@pytest.mark.parametrize("phase", ["Held", "Evicting"])
def test_pods_that_can_not_be_listed_any_more(phase: str) -> None:
    """The node is given back once the phase has had its time."""
    history = quiet(3)
    start(history.world, Workload("slow", 1, grace=60, ends_after=50), "n0")
    roll(history)
    until(history, "n0", phase)
    history.watcher.unlisted = {"n0": ApiError("there are more than 3000 pods")}
    go(history, 120)
    assert phases(history) == {}
    assert loaded(history)[1:] == OTHERS


@pytest.mark.parametrize("what", ["cordon", "label", "state"])
def test_what_others_undo_before_each_pass(what: str) -> None:
    """Somebody uncordons the node, takes a label away or says another state, each time: it is done again, it is told,
    and the deadline ends it all the same."""
    history = quiet(2)
    if what == "state":
        history.mig(1)
    else:
        roll(history)
    until(history, "n0", "Acting")
    if what == "state":
        history.world.machines["n0"].faults.add("mig")
    states = ["pending", "rebooting"]

    def each() -> None:
        if what == "cordon" and history.world.cordoned("n0"):
            history.world.cordon("n0", on=False)
        elif what == "label":
            history.world.label("n0", {f"{m.DEPLOY}operator-validator": None})
        elif what == "state":
            states.reverse()
            history.world.label("n0", {keys.MIG_STATE: states[0]})

    seen = set()
    for _ in range(40):
        said = go(history, 1, 60, each)
        seen.add(phases(history).get("n0"))
        assert "n0" not in phases(history) or history.replica.decided.actions or any("n0 " in text for text in said)
    assert seen > {"Quarantine"} or loaded(history)[0] == "2"


@pytest.mark.parametrize("phase", ["Held", "Evicting"])
def test_times_that_a_node_gives_itself(phase: str) -> None:
    """A record whose owner lets it take until 2099: the policy's time counts, and the others have their turn."""
    history = quiet(3)
    add_workload(history.world, Workload("a", 0, max_unavailable=1))
    pod = start(history.world, history.world.workloads["a"], "n0")["metadata"]["name"]
    history.world.tick(1)
    roll(history)
    until(history, "n0", phase)
    history.watcher.spared = {("create", pod): BUDGET}
    lies: dict[str, Any] = {"wait": {"podSelector": "app=a", "timeoutSeconds": 10**9}} if phase == "Held" else {}
    rewrite(history, "n0", deadline="2099-01-01T00:00:00Z", finish=lies)
    go(history, 150)
    assert loaded(history)[1:] == OTHERS


@pytest.mark.parametrize("how", ["retry", "record"])
def test_a_node_that_fails_and_wants_to_be_tried_again_at_once(how: str) -> None:
    """Its kubelet asks for a retry, or makes its record young again: nodes that have not failed go first."""
    history = quiet(3, limits=3)
    history.world.machines["n0"].faults.add("driver")
    roll(history, breakerFailures=3, firstAlone=False)

    def each() -> None:
        if how == "retry":
            history.world.annotate("n0", {keys.RETRY: "now"})
        elif phases(history).get("n0") == "Quarantine":
            rewrite(history, "n0", attempt=1, failures=0, notBefore="2020-01-01T00:00:00Z")

    go(history, 400, 30, each)
    assert loaded(history)[1:] == OTHERS


def test_a_node_that_calls_itself_worked_on() -> None:
    """A phase label without an operation, and a driver pod that can't pull: it stands against nobody."""
    history = quiet(3)
    roll(history)
    history.world.delete_operand(DRIVER, "n2")
    history.world.machines["n2"].faults.add("registry")
    go(history, 60, 60, lambda: history.world.label("n2", {keys.PHASE: "Acting"}))
    assert loaded(history)[:2] == ["2", "2"]


def test_a_record_that_names_another_policy() -> None:
    """A node in quarantine that says that it failed for another policy: whose it is stands in the ledger."""
    history = quiet(2, limits=3)
    history.world.set_policy("b", **{**history.want.options(), "upgrade": {"maxParallel": 1, "breakerFailures": 1}})
    history.world.add_node("b0", "b")
    go(history, 60, 10)
    history.world.machines["n0"].faults.add("mig")
    history.mig(1)
    until(history, "n0", "Quarantine", 10)
    other = history.world.server.get(POLICIES, "b")["metadata"]["uid"]
    rewrite(history, "n0", policy=other)
    go(history, 5, 10)
    assert not history.world.server.get(POLICIES, "b")["status"]["breaker"].get("open")


@pytest.mark.parametrize("copies", [1, 2])
def test_a_lease_that_somebody_deleted(copies: int) -> None:
    """Whoever makes it anew knows what was open, and it goes on."""
    history = quiet(2)
    roll(history)
    until(history, "n0", "Acting")
    history.other.run()
    history.watcher.quiet()
    history.world.server.remove(LEASES, NAME, NAMESPACE)

    def each() -> None:
        if copies == 2:
            history.other.run()
            history.watcher.quiet()

    said = go(history, 120, 15, each)
    assert loaded(history) == ["2", "2"]
    assert not any("nobody has begun it" in text for text in said)


def test_the_first_node_alone_gets_no_image() -> None:
    """After an hour another one may try; where that gets the image, the first one's trouble is its own."""
    history = quiet(3, limits=3)
    history.world.machines["n0"].faults.add("registry")
    roll(history)
    go(history, 240)
    assert loaded(history)[1:] == OTHERS
    assert phases(history) == {"n0": "Quarantine"}


@pytest.mark.parametrize("what", ["refused", "busy", "unlisted", "unfenced"])
@pytest.mark.parametrize("minutes", [10_000, 40])
def test_the_alert_of_a_roll_out_that_stands(what: str, minutes: int) -> None:
    """One node is left, and nothing gets on: the metric says so for hours, whoever leads."""
    history = quiet(1)
    pod = start(history.world, Workload("a", 1), "n0")["metadata"]["name"]
    if what == "refused":
        history.watcher.denied = {"n0": DENIED}
    elif what == "unfenced":
        history.watcher.denied = {"n0": ApiError("failed calling webhook", 500)}
    elif what == "busy":
        history.watcher.spared = {("create", pod): TooMany("busy", 1.0)}
    else:
        history.watcher.unlisted = {"n0": ApiError("too many pods", 500)}
    roll(history)
    for minute in range(200):
        if minute % minutes == minutes - 1:
            another_leads(history)
        go(history, 1)
    assert stood(history) > 9000


@pytest.mark.parametrize("what", ["budget", "forged", "driver"])
def test_leaders_that_change_every_few_minutes(what: str) -> None:
    """What takes longer than any of them leads comes about: a budget is ignored after its time, a record that nobody
    has begun goes, a driver that has failed for long is repaired."""
    history = quiet(1)
    if what == "budget":
        add_workload(history.world, Workload("a", 0, max_unavailable=0))
        start(history.world, history.world.workloads["a"], "n0")
        history.world.tick(1)
        roll(history, ignoreBudgetsAfter=1800)
    elif what == "forged":
        history.forge(0)
    else:
        _hangs(history)
    for minute in range(240):
        if minute % 8 == 7:
            another_leads(history)
        go(history, 1)
    if what == "forged":
        assert m.OP not in history.world.annotations("n0")
    else:
        assert loaded(history) == ["2" if what == "budget" else "1"]


def _hangs(history: History) -> None:
    """The driver of n0 has ended several times, and hangs."""
    machine = history.world.machines["n0"]
    machine.faults.add("driver")
    machine.loaded = ""
    history.world.delete_operand(DRIVER, "n0")
    go(history, 20, 10)
    machine.faults.clear()
    machine.driver.stage = "x"


def test_one_refused_node_and_a_leader_for_each_pass() -> None:
    """Who was refused has its turn last, for those who lead later as well."""
    history = quiet(3)
    history.watcher.denied = {"n0": DENIED}
    roll(history)
    go(history, 300, 5, lambda: another_leads(history))
    assert loaded(history)[1:] == OTHERS


def test_what_is_refused_is_told_in_the_servers_words() -> None:
    """The deletion of a driver pod, and the validator's eviction: in the status, and as the reason in the end."""
    history = quiet(1)
    pod = history.world.operand(DRIVER, "n0")
    history.watcher.spared = {("delete", pod["metadata"]["name"] if pod else ""): DENIED}
    roll(history)
    until(history, "n0", "Acting")
    said = go(history, 3)
    assert any("can't be deleted: admission webhook" in text for text in said)
    until(history, "n0", "Quarantine", 30)
    assert "denied the request: pinned" in m.operation(history.world.node("n0"))["reason"]


def test_a_driver_that_can_not_be_pulled_outside_of_any_operation() -> None:
    """After a reboot, say: the node is not as wanted, and it says why."""
    history = quiet(2)
    history.world.delete_operand(DRIVER, "n0")
    history.world.machines["n0"].faults.add("registry")
    said = go(history, 10)
    assert any(text.startswith("n0 image: its driver does not run: ") for text in said)
    assert history.world.server.get(POLICIES, POOL)["status"]["current"] == 1
