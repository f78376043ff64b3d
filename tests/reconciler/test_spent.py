"""What a node can't give back (evicted pods, its driver, attempts, a quarantine) is not spent in vain.

Scenarios of an attack on the reconciler; by what each is wrong stands in docs/facts/reconciler.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gpustack.api import keys
from gpustack.api.node_policy import NodePolicy, Spec, Upgrade, Window
from gpustack.api.pods import Pod
from gpustack.reconciler.core import evictions
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.shell.cluster import DAEMONSETS, LEASES, PODS, POLICIES, Forbidden
from gpustack.reconciler.shell.lease import NAME
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.trials import another_leads, evicted, go, loaded, phases, quiet, roll, until
from tests.reconciler.world.machine import status_of
from tests.reconciler.world.stack import DRIVER, NAMESPACE
from tests.reconciler.world.workloads import Workload, start

KURED = "weave.works/kured-reboot-in-progress"


@pytest.mark.parametrize("said", [None, "{oops"])
@pytest.mark.parametrize("known", [True, False])
def test_a_ledger_that_is_lost(said: str | None, known: bool) -> None:
    """The leader puts it back. Where nobody knows what was in it, a node that doesn't work is not given back."""
    history = quiet(1, limits=3)
    history.world.machines["n0"].faults.add("validator")
    roll(history)
    until(history, "n0", "Quarantine", 10)
    history.world.server.edit(LEASES, NAME, {"metadata": {"annotations": {keys.LEDGER: said}}}, NAMESPACE)
    if not known:
        history.world.elapsed += 60
        history.restart(0)
    told = go(history, 60)
    assert history.world.cordoned("n0")
    assert any("stays cordoned until it works" in text for text in told) is not known
    history.world.machines["n0"].faults.clear()
    go(history, 120)
    assert not history.world.cordoned("n0")


def test_a_node_that_has_failed_stays_so_while_the_drivers_daemon_set_is_away() -> None:
    """It offers no GPU, as somebody wants it: what would tell of its driver is gone, and that proves nothing (I17)."""
    history = quiet(1)
    history.world.label("n0", {f"{keys.DEPLOY}device-plugin": "false"})
    history.world.machines["n0"].faults.add("driver")
    roll(history)
    until(history, "n0", "Quarantine", 10)
    history.world.server.remove(DAEMONSETS, DRIVER, NAMESPACE)
    history.world.delete_operand(DRIVER, "n0")
    history.world.machines["n0"].faults.clear()
    go(history, 30)
    assert (history.world.cordoned("n0"), phases(history)) == (True, {"n0": "Quarantine"})
    history.sync(0)
    go(history, 30)
    assert (history.world.cordoned("n0"), loaded(history)) == (False, ["2"])


def test_a_layout_that_is_cut_while_the_drivers_daemon_set_is_away() -> None:
    """It comes again with another driver, which is built for long: the node offers no GPU, as somebody wants it, and
    isn't done before that driver is ready (I17)."""
    history = quiet(1)
    history.world.label("n0", {f"{keys.DEPLOY}device-plugin": "false"})
    history.driver_gone(0)
    history.want.mig = "halves"
    history.sync(1)
    until(history, "n0", "Verifying")
    history.world.machines["n0"].faults.add("driver")
    roll(history)
    history.world.delete_operand(DRIVER, "n0")
    assert "n0 verifying: no driver pod is ready" in go(history, 4)
    assert history.world.cordoned("n0")
    history.world.machines["n0"].faults.clear()
    go(history, 60)
    assert (history.world.cordoned("n0"), loaded(history), phases(history)) == (False, ["2"], {})


def test_a_driver_pod_that_is_about_to_end_is_no_proof() -> None:
    """It was deleted while the node was looked at: the next one is waited for."""
    history = quiet(1)
    history.world.machines["n0"].faults.add("validator")
    roll(history)
    until(history, "n0", "Verifying")
    pod = history.world.operand(DRIVER, "n0")
    assert pod is not None
    history.world.server.edit(PODS, pod["metadata"]["name"], {"metadata": {"labels": {"ends-after": "200"}}}, NAMESPACE)
    history.world.delete_operand(DRIVER, "n0")
    history.world.machines["n0"].faults.clear()
    said = go(history, 3)
    assert history.world.cordoned("n0")
    assert "n0 verifying: no driver pod is ready" in said
    go(history, 10)
    assert not history.world.cordoned("n0")


def test_a_registry_that_goes_down_after_the_first_node() -> None:
    """Nobody ends in quarantine, and no second node loses its driver."""
    history = quiet(4, limits=3)
    roll(history)
    until(history, "n0", "Verifying", 5)
    for machine in history.world.machines.values():
        machine.faults.add("registry")
    seen = set()
    for _ in range(60):
        go(history, 1)
        seen |= set(phases(history).values())
    assert "Quarantine" not in seen
    assert loaded(history).count("1") == 3
    assert len(phases(history)) == 1


@pytest.mark.parametrize("words", ['Back-off pulling image "example.com/driver"', ""])
def test_a_kubelet_that_does_not_say_what_the_registry_said(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """As kubelets before Kubernetes 1.32 between two tries: a registry that gives no answer is nobody's failure."""
    real = status_of

    def wordless(*args: object, **named: object) -> dict[str, object]:
        status = real(*args, **named)  # type: ignore[arg-type]
        for container in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
            if (waiting := container["state"].get("waiting")) and "Pull" in waiting["reason"]:
                waiting["message"] = words
        return status

    monkeypatch.setattr("tests.reconciler.world.world.status_of", wordless)
    history = quiet(2)
    history.world.machines["n0"].faults.add("registry")
    roll(history)
    go(history, 40)
    assert phases(history) == {"n0": "Acting"}


def test_the_breaker_opens_while_a_node_is_emptied() -> None:
    """It keeps its driver: the new one has broken the others."""
    history = quiet(4, limits=3)
    start(history.world, Workload("slow", 1, grace=3600, ends_after=3000), "n0")
    for name in ("n0", "n1", "n2"):
        history.world.machines[name].faults.add("driver")
    roll(history, maxParallel=3, firstAlone=False, breakerFailures=2)
    go(history, 350, 10)
    assert loaded(history)[0] == "1"
    assert "n0" not in phases(history)


def test_an_image_that_can_not_be_had_elsewhere() -> None:
    """A node that is emptied meanwhile keeps its driver."""
    history = quiet(3, limits=3)
    start(history.world, Workload("slow", 1, grace=1800, ends_after=1500), "n0")
    for machine in history.world.machines.values():
        machine.faults.add("registry")
    roll(history, maxParallel=2, firstAlone=False)
    go(history, 250, 10)
    assert phases(history) == {"n1": "Acting"}


def test_somebody_reboots_a_node_that_waits_for_a_job() -> None:
    """Nobody is evicted: the node is given back, and waits for the other one."""
    history = quiet(1)
    start(history.world, Workload("job", 1, ends_after=1, labels={"j": "1"}), "n0")
    roll(history, waitForCompletion={"podSelector": "j=1", "timeoutSeconds": 600})
    until(history, "n0", "Held")
    history.world.annotate("n0", {KURED: "x"})
    said = go(history, 30, 30)
    assert evicted(history) == []
    assert any(text.startswith("n0 maintenance: kured") for text in said)


def test_a_driver_of_another_render_comes_while_a_node_is_emptied() -> None:
    """Policy and DaemonSet don't belong together: the point of no return waits, and the node is given back in time."""
    history = quiet(1)
    start(history.world, Workload("slow", 1, grace=600, ends_after=300), "n0")
    roll(history)
    until(history, "n0", "Evicting")
    history.world.set_driver("3")
    said = go(history, 60)
    assert loaded(history) == ["1"]
    assert phases(history) == {}
    assert any("a sync is under way" in text for text in said)


def test_pods_that_end_one_after_the_other_before_the_window_closes() -> None:
    """An hour, 50 and 25 minutes are two hours and a quarter, as who takes longest goes first and alone."""
    policy = NodePolicy(spec=Spec(upgrade=Upgrade(windows=[Window(start="22:00", hours=3)])))
    pods = [
        msgspec.convert({"metadata": {"name": str(grace)}, "spec": {"terminationGracePeriodSeconds": grace}}, Pod)
        for grace in (3600, 3000, 1500)
    ]
    before = datetime(2026, 1, 5, 22, 30, tzinfo=UTC)
    assert evictions.too_long(Snapshot(now=before, namespace="x"), policy, pods) == ""
    late = before + timedelta(minutes=20)
    assert evictions.too_long(Snapshot(now=late, namespace="x"), policy, pods).startswith("3 pods may take 8100 s")
    assert evictions.too_long(Snapshot(now=late, namespace="x"), policy, pods[:2]) == ""


def test_a_node_that_is_uncordoned_while_it_is_looked_at() -> None:
    """It is cordoned again, and a pod that was bound to it meanwhile goes."""
    history = quiet(1)
    history.world.machines["n0"].faults.add("validator")
    roll(history)
    until(history, "n0", "Verifying")
    history.world.cordon("n0", on=False)
    start(history.world, Workload("bound", 1, ends_after=1), "n0")
    go(history, 6, 10)
    assert history.world.cordoned("n0")
    assert evicted(history) == ["bound"]


def test_a_job_that_never_ends_under_a_wait_without_a_limit() -> None:
    """After three cordons of an hour it is not tried again before the job's like is gone."""
    history = quiet(1)
    start(history.world, Workload("job", 1, labels={"j": "1"}), "n0")
    roll(history, waitForCompletion={"podSelector": "j=1", "timeoutSeconds": 0})
    go(history, 24 * 30, 120)
    writes = [each for each in history.world.server.writes if (each.kind, each.name) == ("nodes", "n0")]
    assert sum(m.cordoned(each.after) and not m.cordoned(each.before) for each in writes) == 3
    assert any("given up 3 times" in wait.message for wait in history.replica.decided.waits)


def test_pauses_cost_no_attempt() -> None:
    """A node that has failed is tried again, and the pool paused while its pods end, twice: no attempt is spent."""
    history = quiet(1)
    history.world.machines["n0"].faults.add("driver")
    roll(history)
    until(history, "n0", "Quarantine", 10)
    history.world.machines["n0"].faults = {"count"}
    for _ in range(2):
        start(history.world, Workload("slow", 1, grace=600, ends_after=300), "n0")
        until(history, "n0", "Evicting", 15)
        history.pause(1)
        go(history, 5, 10)
        assert phases(history) == {"n0": "Quarantine"}
        assert m.operation(history.world.node("n0")).get("attempt", 1) == 1
        history.pause(1)
    history.world.machines["n0"].faults.clear()
    go(history, 60)
    assert loaded(history) == ["2"]


def test_a_status_that_can_not_be_written_keeps_no_node_out_of_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that works is given back after some minutes, though the status can't say that it soaks."""
    history = quiet(1)
    history.want.soak = 600
    real = history.watcher._refuse

    def refuse(request: object) -> None:
        if getattr(request, "kind", "") == "nodepolicies" and getattr(request, "verb", "") == "patch":
            history.watcher.quiet()
            raise Forbidden('admission webhook "np" denied the request: frozen', 403)
        real(request)  # type: ignore[arg-type]

    monkeypatch.setattr(history.watcher, "_refuse", refuse)
    roll(history)
    go(history, 60)
    assert loaded(history) == ["2"]
    assert not history.world.cordoned("n0")


@pytest.mark.parametrize("minutes", [-30, 30])
def test_a_node_whose_clock_is_wrong(monkeypatch: pytest.MonkeyPatch, minutes: int) -> None:
    """What its validator says of its start is held against the API server's clock: nobody evicts it again and again."""
    real = status_of

    def skewed(*args: object, now: datetime, **named: object) -> object:
        return real(*args, now=now + timedelta(minutes=minutes), **named)  # type: ignore[arg-type]

    monkeypatch.setattr("tests.reconciler.world.world.status_of", skewed)
    history = quiet(1)
    roll(history)
    go(history, 60, 10)
    assert loaded(history) == ["2"]
    assert phases(history) == {}
    assert evicted(history) == []


@pytest.mark.parametrize("what", ["hold", "pause", "taint", "uncordon"])
def test_who_is_given_back_is_told(what: str) -> None:
    """An Event on the node says why, as one said that it was taken."""
    history = quiet(1)
    start(history.world, Workload("job", 1, grace=7200, ends_after=7000), "n0")
    roll(history)
    until(history, "n0", "Evicting")
    if what != "uncordon":
        getattr(history, what)(1 if what == "pause" else 0)
    told = []
    for _ in range(40):
        if what == "uncordon" and phases(history):
            history.world.cordon("n0", on=False)
        go(history, 1, 20)
        told += [tell.reason for tell in history.replica.decided.tells]
    assert "OperationReleased" in told


def test_an_announcement_that_can_not_be_fenced_ends_though_leaders_change() -> None:
    """A minute after it was made, whoever leads by then."""
    history = quiet(2)
    history.watcher.denied = {"n0": Forbidden("failed calling webhook", 500)}
    roll(history)
    for number in range(100):
        if number % 9 == 8:
            another_leads(history)
        go(history, 1, 5)
    assert loaded(history)[1] == "2"
    assert not history.world.server.get(POLICIES, POOL)["status"]["breaker"].get("open")
