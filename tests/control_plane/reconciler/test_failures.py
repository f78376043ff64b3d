"""Drivers, validators and MIG layouts that fail: quarantine, and the way out of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpustack.api import keys
from tests.control_plane.api import Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import ready_pods
from tests.control_plane.reconciler.stack import NEW_DRIVER, NS, Stack, render
from tests.control_plane.reconciler.witness import Witness, offers

SHORT = {"deadlines": {"driver": 8, "mig": 20, "verifying": 8}}
TAINT = {"key": "example.com/other", "effect": "NoSchedule"}
OTHER_LAYOUT = {
    "nodePools": [
        {
            "name": "cut",
            "os": "ubuntu22.04",
            "gpuProduct": "NVIDIA-A100-SXM4-80GB",
            "gpusPerNode": 8,
            "nodeSelector": {"example.com/pool": "cut"},
            "sharing": {"mig": {"layout": {"1g.10gb": 7}}},
        }
    ]
}


def events(stack: Stack, reason: str) -> list[Body]:
    """Events about nodes with a reason."""
    return [one for one in stack.api.list("events.k8s.io/v1/Event", "default") if one["reason"] == reason]


def test_failed_drivers(stack: Stack, upgraded: Path) -> None:
    """T12, T13: a first node shows that the driver works. An image that is not there, a driver that does not build, a
    validator that is never ready: each node is put into quarantine, cordoned, with the reason in an Event and a count
    in the status. One that gets a taint while it is emptied, which the driver does not tolerate, is given back with the
    driver that it has. Mended, each is given back by itself.
    """
    stack.start()
    nodes = stack.add(5, "free")
    pull, build, validator, tainted, good = nodes
    stack.all_done(*nodes)
    stack.shorten = {**SHORT, "upgrade": {"breakerFailures": 0}}
    faults = {pull: "pull_fails", build: "driver_crashes", validator: "validator_never_ready"}
    for machine, fault in faults.items():
        stack.kubelets.change(machine, **{fault: True})
    for machine in (*faults, tainted):
        stack.api.patch("Node", machine.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    job = stack.gpu_pod(tainted, ends_in=600)
    stack.apply(upgraded)
    stack.all_done(good)
    for machine in (*faults, tainted):
        stack.api.patch("Node", machine.name, {"metadata": {"labels": {keys.HOLD: None}}})
    stack.reaches(tainted, "Evicting")
    stack.api.patch("Node", tainted.name, {"spec": {"taints": [TAINT]}})
    stack.api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    wait_for(lambda: stack.last(tainted).get("outcome") == "released", "the tainted node is given back")
    assert "does not tolerate the taint" in stack.last(tainted)["reason"]
    assert stack.driver_hash(tainted) != stack.newest()
    for machine in faults:
        stack.reaches(machine, "Quarantine")
        assert stack.node(machine)["spec"]["unschedulable"]
    wait_for(lambda: stack.policy("free")["status"].get("quarantined") == 3, "the status counts them")
    told = {one["regarding"]["name"]: one for one in events(stack, "Quarantined")}
    assert {one.name for one in faults} <= set(told)
    assert "k8s-driver-manager is in ImagePullBackOff" in told[pull.name]["note"]
    assert "nvidia-driver-ctr is in CrashLoopBackOff" in told[build.name]["note"]
    assert "no validator is ready" in told[validator.name]["note"]
    stack.api.patch("Node", tainted.name, {"spec": {"taints": None}})
    for machine, fault in faults.items():
        stack.kubelets.change(machine, **{fault: False})
    stack.all_done(*faults, tainted)


@pytest.fixture(scope="module")
def recut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster with a newer driver and another MIG layout."""
    return render(tmp_path_factory.mktemp("rendered") / "recut", {**NEW_DRIVER, **OTHER_LAYOUT})


def test_mig(stack: Stack, witness: Witness, recut: Path) -> None:
    """T14, P42: a new node offers no GPU before its layout is there. A new layout and a new driver are one operation
    under one cordon; a MIG manager that fails is restarted, and then succeeds; a success without effect is not
    believed, and ends in quarantine until the layout is there.
    """
    stack.start()
    nodes = stack.add(3, "cut")
    plain, fails, lies = nodes
    stack.all_done(*nodes)
    cut = {"nvidia.com/mig-2g.20gb": "16", "nvidia.com/mig-3g.40gb": "8"}
    assert all(sight.offers in ({}, cut) for sight in witness.sights)
    assert offers(stack.node(plain)) == cut
    recut_offers = {"nvidia.com/gpu": "56"}  # instances of one size: the rendered strategy is `single`
    witness.sights.clear()
    stack.shorten = {"deadlines": {"driver": 60, "mig": 60, "verifying": 8}}
    stack.kubelets.change(fails, mig_fails=True)
    stack.kubelets.change(lies, mig_without_effect=True)
    stack.apply(recut)
    stack.layouts_are_read("cut-")
    wait_for(lambda: stack.operation(fails).get("restarts"), "the failed MIG manager is restarted", 90)
    stack.kubelets.change(fails, mig_fails=False)
    stack.all_done(plain, fails)
    assert stack.last(plain)["kind"] == "driver+mig"
    assert witness.phases(plain.name).count("Held") == 1
    assert offers(stack.node(plain)) == offers(stack.node(fails)) == recut_offers
    stack.reaches(lies, "Quarantine")
    assert stack.labels(lies)[keys.MIG_STATE] == "success"
    stack.kubelets.change(lies, mig_without_effect=False)
    stack.api.patch("Node", lies.name, {"metadata": {"annotations": {keys.RETRY: "now"}}})
    stack.all_done(lies)
    assert offers(stack.node(lies)) == recut_offers


def test_what_was_not_commanded_is_not_cut(stack: Stack, recut: Path) -> None:
    """I27: a merge brings another layout for a pool whose nodes have to wait. A MIG manager that starts anew, for
    whatever reason, and one whose machine has rebooted cut by the layout that their node had; the new one comes with
    the operation, and the old one goes once no node asks for it.
    """
    stack.start()
    nodes = restarted, rebooted = stack.add(2, "cut")
    stack.all_done(*nodes)
    cut = dict(restarted.geometry)
    for machine in nodes:
        stack.api.patch("Node", machine.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.apply(recut)
    stack.layouts_are_read("cut-")
    for one in ready_pods(stack.api, NS, "nvidia-mig-manager", node=restarted.name):
        stack.api.delete("Pod", one["metadata"]["name"], NS)
    stack.kubelets.reboot(rebooted)
    wait_for(lambda: rebooted.boots == 2, "the machine has rebooted")
    managers = "nvidia-mig-manager"
    wait_for(lambda: len(ready_pods(stack.api, NS, managers)) == len(nodes), "the managers are there again", 90)
    wait_for(lambda: rebooted.geometry, "the machine is cut again", 90)
    time.sleep(3)  # a manager that starts looks at once
    assert [machine.geometry for machine in nodes] == [cut, cut]
    assert {stack.labels(machine)[keys.MIG_CONFIG] for machine in nodes} == {"cut"}
    assert {stack.labels(machine)[keys.MIG_STATE] for machine in nodes} == {"success"}
    assert len([name for name in stack.layouts() if name.partition("-")[0] == "cut"]) == 2
    for machine in nodes:
        stack.api.patch("Node", machine.name, {"metadata": {"labels": {keys.HOLD: None}}})
    stack.all_done(*nodes)
    assert {offers(stack.node(machine))["nvidia.com/gpu"] for machine in nodes} == {"56"}
    wait_for(lambda: "cut" not in stack.layouts(), "the old layout is gone")


@pytest.fixture(scope="module")
def rebooting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster with a MIG manager that may reboot nodes."""
    more = {"migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]}}
    return render(tmp_path_factory.mktemp("rendered") / "rebooting", more)


def test_reboot_for_a_layout(stack: Stack, witness: Witness, rebooting: Path) -> None:
    """T14: the MIG manager reboots the node to change the mode: the node is NotReady, its pods start again, and the
    operation goes on from what stands on the node, without a failure, and before pods get a GPU.
    """
    stack.apply(rebooting)
    stack.start()
    (machine,) = stack.add(1, "cut")
    stack.kubelets.change(machine, mig_needs_reboot=True)
    stack.all_done(machine)
    cut = {"nvidia.com/mig-2g.20gb": "16", "nvidia.com/mig-3g.40gb": "8"}
    assert machine.boots == 2
    assert "rebooting" in {sight.labels.get(keys.MIG_STATE) for sight in witness.sights}
    assert "Quarantine" not in witness.phases(machine.name)
    assert all(sight.offers in ({}, cut) for sight in witness.sights)
    assert offers(stack.node(machine)) == cut


def test_nodes_fall_away_in_the_middle(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """T11, A13: a node that reboots while its driver is installed, one that is down while it is validated, and one
    that is deleted and made anew while its driver is installed: each ends with the new driver, and none is a failure.
    """
    stack.start()
    nodes = stack.add(3, "free")
    rebooted, down, again = nodes
    stack.all_done(*nodes)
    stack.shorten = {"upgrade": {"breakerFailures": 1}}
    stack.kubelets.change(rebooted, driver_never_ready=True)
    stack.kubelets.change(again, driver_never_ready=True)
    stack.kubelets.change(down, validator_never_ready=True)
    witness.sights.clear()
    stack.apply(upgraded)
    for machine, phase in ((rebooted, "Acting"), (again, "Acting"), (down, "Verifying")):
        stack.reaches(machine, phase)
    stack.kubelets.down(down)
    wait_for(lambda: "the node is not Ready" in stack.reason("free", down), "it is known to be down")
    stack.kubelets.reboot(rebooted)
    stack.kubelets.change(rebooted, driver_never_ready=False)
    stack.kubelets.remove(again)
    stack.kubelets.add(fresh := Machine(again.name, labels=again.labels))
    stack.all_done(rebooted, fresh)
    assert stack.last(fresh)["kind"] == "install"
    assert (stack.phase(down), stack.last(rebooted)["kind"]) == ("Verifying", "driver")
    stack.kubelets.up(down)
    stack.kubelets.change(down, validator_never_ready=False)
    stack.all_done(down)
    assert "Quarantine" not in {sight.phase for sight in witness.sights}
    assert stack.policy("free")["status"]["breaker"].get("open", False) is False
