"""Nodes with faulty GPUs on a real API server: as rendered, under the rendered rights, told of in conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.api import keys
from tests.control_plane.api import STRATEGIC
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.reconciler.stack import Stack, pools, render
from tests.control_plane.reconciler.witness import Witness

HEALTH = {
    "conditions": [
        {"type": "UncorrectableEcc", "then": "drain", "request": "reboot"},
        {"type": "NvLinkDown", "then": "cordon"},
    ],
    "reportOnlyUntil": "2020-01-01",
    "maxNodes": 2,
    "maxShare": "50%",
    "breakerShare": "50%",
    "holdSeconds": 1,
    "settleSeconds": 2,
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster with a section `health`."""
    free = {"free": {"upgrade": {"maxUnavailable": "100%"}}}
    more = {"reconciler": {"health": HEALTH}, "nodePools": pools(free)}
    return render(tmp_path_factory.mktemp("rendered") / "watched", more)


def tell(stack: Stack, machine: Machine, kind: str, status: str) -> None:
    """What a detector writes into the status of the Node."""
    condition = {"type": kind, "status": status, "reason": "Xid48", "message": "double bit error"}
    body = {"status": {"conditions": [condition]}}
    stack.api.patch("Node", machine.name, body, how=STRATEGIC, subresource="status")


def test_a_node_with_an_ecc_fault_is_emptied_and_returns(stack: Stack, witness: Witness, watched: Path) -> None:
    """Cordoned, emptied, and a reboot asked for; rebooted, and told to be well, it is looked at and given back. Its
    neighbour, the budget of whose pool is spent by that, is not touched for its own fault before.
    """
    stack.apply(watched)
    stack.start()
    ill, other, *more = stack.add(4)
    stack.all_done(ill, other, *more)
    job, beside = stack.gpu_pod(ill), stack.gpu_pod(other)
    witness.sights.clear()
    tell(stack, ill, "UncorrectableEcc", "True")
    stack.reaches(ill, "Acting")
    assert stack.api.find("Pod", job["metadata"]["name"], "default") is None
    assert stack.annotations(ill)[keys.REQUESTED] == "reboot"
    assert stack.node(ill)["spec"]["unschedulable"]
    tell(stack, other, "NvLinkDown", "True")
    wait_for(lambda: stack.reason("training", other).startswith(("parallel", "budget")), "the budget is spent")
    tell(stack, other, "NvLinkDown", "False")
    stack.kubelets.reboot(ill)
    tell(stack, ill, "UncorrectableEcc", "False")
    stack.all_done(ill)
    assert keys.REQUESTED not in stack.annotations(ill)
    assert stack.last(ill)["kind"] == "health"
    assert witness.phases(ill.name)[-5:] == ["Held", "Evicting", "Acting", "Verifying", ""]
    assert stack.api.find("Pod", beside["metadata"]["name"], "default")
    assert witness.most_cordoned() == 1


def test_a_bad_detector_takes_no_more_than_the_limit(stack: Stack, witness: Witness, watched: Path) -> None:
    """One after the other is told to have a fault, until all are: two are taken, and no pod of anybody else's goes."""
    stack.apply(watched)
    stack.start()
    nodes = stack.add(6, "free")
    stack.all_done(*nodes)
    jobs = [stack.gpu_pod(machine) for machine in nodes]
    witness.sights.clear()
    for machine in nodes[:2]:
        tell(stack, machine, "NvLinkDown", "True")
        stack.reaches(machine, "Quarantine")
    tell(stack, nodes[2], "NvLinkDown", "True")
    said = stack.wait_reason("free", "health-limit")
    assert said["message"].startswith("2 nodes are out of service for a fault, and 2 may be")
    for machine in nodes:
        tell(stack, machine, "UncorrectableEcc", "True")
    wait_for(lambda: "6 of 6 nodes tell" in stack.wait_reason("free", "health-limit")["message"], "nobody is believed")
    assert witness.most_cordoned() == 2
    assert all(stack.api.find("Pod", job["metadata"]["name"], "default") for job in jobs)
    for machine in nodes:
        tell(stack, machine, "NvLinkDown", "False")
        tell(stack, machine, "UncorrectableEcc", "False")
    stack.all_done(*nodes[:2])
    wait_for(lambda: not stack.policy("free")["status"].get("waiting"), "nobody waits any more")
