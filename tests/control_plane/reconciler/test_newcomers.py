"""Nodes that come, go, and opt out: installs outside of every budget, autoscalers, a GPU that is gone."""

from __future__ import annotations

import time
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.actors.operands import VALIDATOR_FILES
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import PCI_LABEL, Machine
from tests.control_plane.objects import ready_pods
from tests.control_plane.reconciler.stack import NS, VALIDATOR, Stack
from tests.control_plane.reconciler.witness import Witness, offers

STARTING = {"key": "example.com/starting", "effect": "NoSchedule"}
LEAVING = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
HEALTH = {"key": "example.com/unhealthy", "effect": "PreferNoSchedule"}


def test_new_nodes(stack: Stack, witness: Witness) -> None:
    """A4: bare nodes come with the platform's startup taint, more of them than `install.maxParallel`, in a pool of
    which one node may be out of service: record, labels and the driver manager's annotation come in one write; nothing
    is cordoned; the limit holds at every moment; the taint goes once a node is proved, and not before.
    """
    stack.shorten = {"install": {"maxParallel": 2}}
    for one in ("cut", "training"):
        stack.api.patch("gpustack.dev/v1alpha1/NodePolicy", one, {"spec": stack.shorten})
    nodes = stack.add(3, "training", taints=[STARTING])
    (cut,) = stack.add(1, "cut", taints=[STARTING])
    stack.start()
    stack.all_done(*nodes, cut)
    assert all(STARTING not in stack.node(one)["spec"].get("taints", []) for one in (*nodes, cut))
    assert witness.most_cordoned() == 0
    assert witness.most(lambda sight: sight.recorded, *(one.name for one in nodes)) == 2
    for machine in (*nodes, cut):
        seen = [sight for sight in witness.sights if sight.node == machine.name]
        first = next(sight for sight in seen if sight.recorded or keys.PRESENT in sight.labels)
        assert first.recorded
        assert (first.phase, first.labels[f"{keys.DEPLOY}driver"]) == ("Acting", "true")
        assert first.annotations[keys.UPGRADES_ENABLED] == "true"
        assert all(STARTING["key"] in sight.taints for sight in seen if sight.recorded)
    first = next(sight for sight in witness.sights if sight.node == cut.name and sight.recorded)
    assert first.labels[keys.MIG_CONFIG] == "cut"
    assert f"{keys.DEPLOY}device-plugin" not in first.labels


def test_nodes_that_are_leaving(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """A12, A13: nothing begins on a node that an autoscaler removes or that is being deleted. A node in an operation
    has the annotations that keep autoscalers away, and keeps those that were there; one that is deleted in the middle
    counts neither as a failure nor for the breaker. A taint that a health monitor sets meanwhile stays (T16).
    """
    stack.start()
    nodes = stack.add(4, "free")
    disrupted, deleted, gone, plain = nodes
    stack.all_done(*nodes)
    stack.shorten = {"upgrade": {"breakerFailures": 1}}
    stack.api.patch("Node", disrupted.name, {"spec": {"taints": [LEAVING]}})
    stack.api.patch("Node", deleted.name, {"metadata": {"finalizers": ["example.com/cloud"]}})
    stack.api.delete("Node", deleted.name)
    stack.api.patch("Node", plain.name, {"metadata": {"annotations": {keys.DO_NOT_DISRUPT: "true"}}})
    stack.kubelets.change(gone, driver_never_ready=True)
    job = stack.gpu_pod(plain, ends_in=600)
    witness.sights.clear()
    stack.apply(upgraded)
    waits = stack.wait_reason("free", "leaving")
    assert waits["nodes"] == sorted((disrupted.name, deleted.name))
    stack.reaches(plain, "Evicting")
    stack.api.patch("Node", plain.name, {"spec": {"taints": [HEALTH]}})
    stack.api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    stack.reaches(gone, "Acting")
    stack.kubelets.remove(gone)
    stack.api.patch("Node", deleted.name, {"metadata": {"finalizers": None}})
    stack.api.patch("Node", disrupted.name, {"spec": {"taints": None}})
    stack.all_done(disrupted, plain)
    wait_for(lambda: stack.policy("free")["status"]["nodes"] == 2, "the status counts those that are left")
    during = [sight for sight in witness.sights if sight.node == plain.name and sight.recorded]
    assert all({keys.DO_NOT_DISRUPT, keys.SCALE_DOWN_DISABLED} <= set(sight.annotations) for sight in during)
    assert keys.SCALE_DOWN_DISABLED not in stack.annotations(plain)
    assert stack.annotations(plain)[keys.DO_NOT_DISRUPT] == "true"
    status = stack.policy("free")["status"]
    assert (status.get("quarantined", 0), status["breaker"].get("open", False)) == (0, False)
    assert HEALTH in stack.node(plain)["spec"]["taints"]


PLUGIN = "nvidia-device-plugin-daemonset"


def current(stack: Stack, machine: Machine) -> bool:
    """Whether the node has the newest driver and no open operation, validated or not."""
    return not stack.operation(machine) and stack.driver_hash(machine) == stack.newest()


def test_opt_outs(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """T13: on a node that opted out of the validator, by annotation or by a label of its own, an operation is done
    without one (somebody else validates there); a node that opted out of everything has no driver, and nothing is due
    there. Where the validator is missing the node ends in quarantine, and is given back by itself once there is one.
    """
    stack.start()
    nodes = stack.add(4, "free")
    annotated, labelled, without, missing = nodes
    stack.all_done(*nodes)
    validator = f"{keys.DEPLOY}operator-validator"
    stack.api.patch("Node", annotated.name, {"metadata": {"annotations": {keys.OPT_OUT: "operator-validator"}}})
    stack.api.patch("Node", labelled.name, {"metadata": {"labels": {validator: "false"}}})
    stack.api.patch("Node", without.name, {"metadata": {"labels": {keys.OPERANDS: "false"}}})
    wait_for(lambda: validator not in stack.labels(annotated), "the label of the component is gone")
    wait_for(lambda: f"{keys.DEPLOY}driver" not in stack.labels(without), "no component runs on the node")
    wait_for(lambda: not stack.driver_hash(without), "nor does the driver")
    stack.api.delete("DaemonSet", VALIDATOR, NS)
    wait_for(lambda: not ready_pods(stack.api, NS, VALIDATOR), "the validators are gone")
    for machine in (annotated, labelled):  # or the operands would wait for the validator's files for ever
        machine.files.update(VALIDATOR_FILES)
        stack.kubelets.change(machine)
    stack.shorten = {"deadlines": {"verifying": 12}}
    witness.sights.clear()
    stack.apply(upgraded, without=VALIDATOR)
    for machine in (annotated, labelled):
        wait_for(lambda machine=machine: current(stack, machine), f"{machine.name} is done")  # type: ignore[misc]
        assert stack.last(machine)["outcome"] == "done"
    stack.reaches(missing, "Quarantine")
    assert "no validator is ready" in stack.operation(missing)["reason"]
    assert all(sight.phase == "" for sight in witness.sights if sight.node == without.name)
    assert stack.labels(labelled)[validator] == "false"
    stack.apply(upgraded)
    stack.all_done(missing)


def test_gpu_that_is_gone(stack: Stack) -> None:
    """L9, I15: a node whose GPU node feature discovery no longer sees loses its labels after the grace, but not while
    it offers GPUs or a pod uses one.
    """
    stack.start()
    (machine,) = stack.add(1, "free")
    stack.all_done(machine)
    job = stack.gpu_pod(machine)
    stack.api.patch("Node", machine.name, {"metadata": {"labels": {PCI_LABEL: None}}})
    time.sleep(4)  # longer than the grace: that nothing happens can't be waited for
    stack.kubelets.change(machine, plugin_never_ready=True)
    (plugin,) = ready_pods(stack.api, NS, PLUGIN, node=machine.name)
    stack.api.delete("Pod", plugin["metadata"]["name"], NS)
    wait_for(lambda: offers(stack.node(machine)) == {}, "the node offers nothing")
    time.sleep(4)
    touch(stack, machine, 1)
    time.sleep(2)
    assert stack.labels(machine)[f"{keys.DEPLOY}driver"] == "true"
    stack.api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    touch(stack, machine, 2)
    wait_for(lambda: stack.labels(machine)[keys.PRESENT] == "false", "the GPU is gone")
    assert "true" not in {value for key, value in stack.labels(machine).items() if key.startswith(keys.DEPLOY)}
    wait_for(lambda: not stack.driver_hash(machine), "and so is the driver")


def touch(stack: Stack, machine: Machine, number: int) -> None:
    """Change something about a node, so that it is looked at."""
    stack.api.patch("Node", machine.name, {"metadata": {"labels": {"example.com/touched": str(number)}}})
