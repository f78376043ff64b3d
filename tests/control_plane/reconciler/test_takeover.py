"""A cluster in which the operator ran before: nothing is written beside it, and what it left is gone on with."""

from __future__ import annotations

import time
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.actors.surroundings import cordon
from tests.control_plane.api import Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import pod_spec
from tests.control_plane.reconciler.stack import NS, Stack
from tests.control_plane.reconciler.witness import Witness

OPERATOR = "gpu-operator"
GOES_ON_IN = {
    "wait-for-jobs-required": "Held",
    "drain-required": "Evicting",
    "pod-restart-required": "Evicting",
    "validation-required": "Verifying",
    "upgrade-failed": "Quarantine",
}
"""As docs/reconciler.md has it."""


def operator(node: str) -> Body:
    """The operator's Deployment, whose pod runs on a node."""
    labels = {"app": OPERATOR, "app.kubernetes.io/component": OPERATOR}
    spec = pod_spec(nodeName=node)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": OPERATOR, "namespace": NS, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": OPERATOR}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def left(stack: Stack, machine: Machine, state: str, **annotations: str) -> None:
    """What the operator's upgrade controller has written on a node."""
    change = {"labels": {keys.UPGRADE_STATE: state}, "annotations": annotations}
    stack.api.patch("Node", machine.name, {"metadata": change})


def test_in_the_middle_of_its_upgrade(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """A6, A7: while the operator's Deployment has a ready pod, the policy is Stalled and no node is written. Without
    it each node that it had in hand is gone on with in the phase that fits, and uncordoned at the end; one that a user
    had cordoned before stays so; of a node that it had not begun with, its label goes. Its keys are gone from all.
    """
    nodes = stack.add(3 + len(GOES_ON_IN), "free")
    user, done, elsewhere, *taken = nodes
    program = stack.start()
    stack.all_done(*nodes)
    program.stop()
    stack.api.create(operator(elsewhere.name))
    try:
        wait_for(lambda: stack.api.get("Deployment", OPERATOR, NS)["status"].get("readyReplicas"), "it is ready")
        for machine in (*taken, user):
            cordon(stack.api, machine)
        for machine, state in zip(taken, GOES_ON_IN, strict=True):
            left(stack, machine, state)
        left(stack, user, "pod-deletion-required", **{keys.INITIAL_UNSCHEDULABLE: "true"})
        left(stack, done, "upgrade-done")
        stack.apply(upgraded)
        witness.sights.clear()
        stack.start("beside")
        assert stack.wait_reason("free", "operator")["count"] == len(nodes)
        time.sleep(2)  # that nothing happens can't be waited for
        assert (stack.condition("free", "Stalled")["status"], stack.condition("free", "Ready")["status"]) == (
            "True",
            "False",
        )
        assert all(keys.PHASE not in sight.labels and not sight.recorded for sight in witness.sights)
        assert stack.labels(done)[keys.UPGRADE_STATE] == "upgrade-done"
    finally:
        stack.api.delete("Deployment", OPERATOR, NS)
    validated = taken[list(GOES_ON_IN).index("validation-required")]  # for a validator that starts anew: 5 minutes
    stack.all_done(done, elsewhere, *(one for one in taken if one is not validated))
    wait_for(lambda: not stack.operation(user) and stack.driver_hash(user) == stack.newest(), "the fourth is done")
    assert stack.node(user)["spec"]["unschedulable"]
    assert [next(filter(None, witness.phases(one.name))) for one in taken] == list(GOES_ON_IN.values())
    for machine in nodes:
        assert keys.UPGRADE_STATE not in stack.labels(machine)
        assert not set(keys.UPSTREAM_ANNOTATIONS) & stack.annotations(machine).keys()
