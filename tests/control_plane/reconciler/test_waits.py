"""What takes minutes or hours in life: the API server's clock is set back at first, and then all that time has passed.

The program's own times are as they are; see proxy.py for the clock.
"""

from __future__ import annotations

import time
import urllib.request
from datetime import datetime, timedelta
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.api import Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import budget, ready_pods
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import DRIVER, NS, VALIDATOR, Stack
from tests.control_plane.reconciler.witness import offers

PAST = timedelta(minutes=59, seconds=55)
"""With the seconds that pass until then, an hour; a refusal is remembered so long."""
FORGOTTEN, FOREIGN = f"{keys.DEPLOY}dcgm-exporter", f"{keys.DEPLOY}dcgm"


def driver_pod(stack: Stack, machine: Machine) -> Body:
    """The node's driver pod, empty where it has none."""
    return next(iter(stack.api.list("Pod", NS, labels=f"app={DRIVER}", fields=f"spec.nodeName={machine.name}")), {})


def crashes(stack: Stack, machine: Machine) -> bool:
    """Whether the driver's container was restarted twice."""
    statuses = driver_pod(stack, machine).get("status", {}).get("containerStatuses", [])
    return any(one["restartCount"] >= 2 for one in statuses)


def by_hand(stack: Stack, machine: Machine, until: str = "") -> None:
    """Somebody sets another MIG layout."""
    annotations = {keys.MANUAL_MIG: until} if until else {}
    change = {"labels": {keys.MIG_CONFIG: "all-disabled", keys.MIG_STATE: None}, "annotations": annotations}
    stack.api.patch("Node", machine.name, {"metadata": change})


def test_what_nobody_works_on(stack: Stack, proxy: Proxy) -> None:
    """T12, T16, A15: a driver that has crashed for ten minutes outside of any operation is repaired, its GPU pods are
    evicted first; a component that somebody paused and forgot goes on after 45 minutes, and a value of others stays;
    a MIG layout that was set by hand stays until the time that its annotation names, and then the pool's comes back.
    Nothing of all that is done before its time.
    """
    proxy.behind = PAST
    stack.start(kubeconfig=stack.behind(proxy))
    broken, paused = stack.add(2, "free")
    (manual,) = stack.add(1, "cut")
    stack.all_done(broken, paused, manual)
    cut = offers(stack.node(manual))
    job = stack.gpu_pod(broken)
    stack.kubelets.change(broken, driver_crashes=True)
    old = driver_pod(stack, broken)["metadata"]
    stack.api.delete("Pod", old["name"], NS, uid=old["uid"])
    pauses = {FORGOTTEN: keys.PAUSED_FOR_DRIVER, FOREIGN: "paused-by-somebody"}
    stack.api.patch("Node", paused.name, {"metadata": {"labels": pauses}})
    by_hand(stack, manual, f"{proxy.now() + timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}")
    stack.wait_reason("cut", "manual")
    wait_for(lambda: crashes(stack, broken), "the driver crashes")
    wait_for(lambda: offers(stack.node(manual)) == {"nvidia.com/gpu": "8"}, "the layout is the one that was set")
    time.sleep(3)  # that nothing happens can't be waited for
    assert [stack.phase(one) for one in (broken, paused, manual)] == ["", "", ""]
    assert stack.labels(paused)[FORGOTTEN] == keys.PAUSED_FOR_DRIVER
    crashing = driver_pod(stack, broken)["metadata"]["uid"]
    proxy.behind = timedelta(0)
    stack.reaches(broken, "Acting", 30)
    wait_for(lambda: driver_pod(stack, broken).get("metadata", {}).get("uid") not in {None, crashing}, "it is replaced")
    stack.kubelets.change(broken, driver_crashes=False)
    assert stack.api.find("Pod", job["metadata"]["name"], "default") is None
    wait_for(lambda: stack.labels(paused)[FORGOTTEN] == "true", "what was forgotten goes on")
    wait_for(lambda: stack.reason("free", broken).endswith("the validator has not run since"), "it is to be validated")
    (old_validator,) = ready_pods(stack.api, NS, VALIDATOR, node=broken.name)
    stack.api.delete("Pod", old_validator["metadata"]["name"], NS)
    stack.all_done(broken, paused, manual)
    assert [stack.last(one)["kind"] for one in (broken, paused, manual)] == ["repair", "install", "mig"]
    assert stack.labels(paused)[FOREIGN] == "paused-by-somebody"
    assert offers(stack.node(manual)) == cut


def test_what_an_operation_waits_for(stack: Stack, proxy: Proxy, upgraded: Path) -> None:
    """T9, T14, A5, A15: a budget that never gives room makes the node be given back, which the status, an Event and a
    metric say; so does a pod that is waited for without a limit, after an hour. Both are tried again in five minutes,
    or when somebody asks. A layout that was set by hand, without a word how long, is brought back at once; a MIG
    manager that stays in `pending` is restarted.
    """
    proxy.behind = PAST
    stack.start(kubeconfig=stack.behind(proxy))
    blocked, held = nodes = stack.add(2, "free")
    (hangs,) = stack.add(1, "cut")
    stack.all_done(*nodes, hangs)
    cut = offers(stack.node(hangs))
    long = {"upgrade": {"waitForCompletion": {"podSelector": "example.com/long"}}}
    stack.shorten = {**long, "deadlines": dict.fromkeys(("driver", "mig", "verifying"), 7200)}
    stack.gpu_pod(blocked, "tight", labels={"app": "tight", "example.com/long": ""})
    stack.gpu_pod(held, labels={"example.com/long": ""})
    stack.apply(upgraded)
    by_hand(stack, hangs)
    wait_for(lambda: stack.operation(hangs).get("acts") == ["driver", "mig"], "the layout is brought back, too")
    stack.kubelets.change(hangs, mig_hangs=True)
    for machine in nodes:
        stack.reaches(machine, "Held")
    stack.api.create(budget("tight", "default", {"app": "tight"}, 1))
    wait_for(
        lambda: stack.api.get("PodDisruptionBudget", "tight", "default").get("status", {}).get("currentHealthy") == 1,
        "the budget counts the pod",
    )
    stack.api.patch("Pod", "tight", {"metadata": {"labels": {"example.com/long": None}}}, "default")
    stack.api.patch("Node", blocked.name, {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    wait_for(lambda: "The disruption budget tight" in stack.reason("free", blocked), "the status names the budget", 60)
    wait_for(lambda: stack.labels(hangs).get(keys.MIG_STATE) == "pending", "the MIG manager hangs", 60)
    time.sleep(2)  # the program has seen that
    assert (stack.phase(blocked), stack.phase(held), stack.phase(hangs)) == ("Evicting", "Held", "Acting")
    proxy.behind = timedelta(0)
    _given_back(stack, blocked, "The disruption budget tight needs 1")
    _given_back(stack, held, "still runs; the slot goes to")
    told = [one for one in stack.api.list("events.k8s.io/v1/Event", "default") if one["reason"] == "OperationReleased"]
    assert any(one["regarding"]["name"] == blocked.name and "budget tight" in one["note"] for one in told)
    page = urllib.request.urlopen(f"http://127.0.0.1:{stack.ports['reconciler']}/metrics").read().decode()
    assert 'operation_seconds_count{policy="free",kind="driver",outcome="released"} 2' in page
    assert stack.api.get("Pod", "tight", "default")["metadata"].get("deletionTimestamp") is None
    wait_for(lambda: stack.operation(hangs).get("restarts") == 1, "the MIG manager is restarted")
    stack.kubelets.change(hangs, mig_hangs=False)
    stack.all_done(hangs)
    assert offers(stack.node(hangs)) == cut
    stack.api.delete("PodDisruptionBudget", "tight", "default")
    assert stack.cli("retry", blocked.name).returncode == 0
    stack.all_done(blocked)


def _given_back(stack: Stack, machine: Machine, why: str) -> None:
    """Wait until the node is given back, uncordoned, to be tried again in five minutes."""
    wait_for(lambda: not stack.operation(machine), f"{machine.name} is given back", 30)
    last = stack.last(machine)
    assert (last["outcome"], last["attempt"], why in last["reason"]) == ("released", 1, True)
    pause = datetime.fromisoformat(last["notBefore"]) - datetime.fromisoformat(last["at"])
    assert round(pause.total_seconds()) == 300
    assert not stack.node(machine)["spec"].get("unschedulable")
    assert "next attempt" in wait_for(lambda: stack.reason("free", machine), f"{machine.name} waits")
