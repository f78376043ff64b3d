"""Whole rollouts by the real program, under the rendered rights, over simulated nodes."""

from __future__ import annotations

from pathlib import Path

from gpustack.reconciler import keys
from tests.control_plane.cluster import wait_for
from tests.control_plane.reconciler.stack import Stack
from tests.control_plane.reconciler.witness import Witness

PHASES = ["", "Held", "Evicting", "Acting", "Verifying", ""]


def test_driver_rollout(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """Bare nodes are set up without a cordon; then a new driver rolls over them one after the other, pods with GPUs
    are evicted first, and each node ends as it was, with the new driver.
    """
    program = stack.start()
    nodes = stack.add(3)
    stack.all_done(*nodes)
    assert witness.most_cordoned() == 0
    job = stack.gpu_pod(nodes[1])
    before = len(witness.sights)
    stack.apply(upgraded)
    stack.all_done(*nodes, seconds=180)
    assert stack.api.find("Pod", job["metadata"]["name"], "default") is None
    witness.sights = witness.sights[before:]
    assert witness.most_cordoned() == 1
    assert witness.torn() == []
    for machine in nodes:
        assert witness.phases(machine.name)[-5:] == PHASES[1:]
        assert keys.CORDONED not in stack.annotations(machine)
    wait_for(lambda: stack.policy("training")["status"]["current"] == 3, "the policy's status counts three nodes")
    assert program.running
