"""Whole rollouts by the real program, under the rendered rights, over simulated nodes."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from gpustack.api import keys
from tests.control_plane.api import APPLY
from tests.control_plane.cluster import wait_for
from tests.control_plane.manifests import MANAGER
from tests.control_plane.reconciler.stack import Stack
from tests.control_plane.reconciler.witness import Witness

CONDITIONS = {"Ready": "True", "Stalled": "False", "RolledOut": "True", "NodeNotCovered": "False"}
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
    witness.sights.clear()
    stack.apply(upgraded)
    stack.all_done(*nodes, seconds=180)
    assert stack.api.find("Pod", job["metadata"]["name"], "default") is None
    assert witness.most_cordoned() == 1
    assert witness.torn() == []
    for machine in nodes:
        assert witness.phases(machine.name)[-5:] == PHASES[1:]
        assert keys.CORDONED not in stack.annotations(machine)
    wait_for(lambda: stack.policy("training")["status"].get("current") == 3, "the policy's status counts three nodes")
    assert {kind: stack.condition("training", kind)["status"] for kind in CONDITIONS} == CONDITIONS
    done = [one for one in stack.api.list("events.k8s.io/v1/Event", "default") if one["reason"] == "OperationDone"]
    told = sorted(one["regarding"]["name"] for one in done if one["regarding"]["name"] in {each.name for each in nodes})
    assert told == sorted([machine.name for machine in nodes] * 2)
    assert program.running
    _applied_again(stack, upgraded)


def _applied_again(stack: Stack, rendered: Path) -> None:
    """T21: applied again, without force, nothing that was rendered conflicts with what the program wrote, and no node,
    no status and no rendered object changes; the program owns statuses, and no field that is rendered.
    """
    watched = ("Node", "gpustack.dev/v1alpha1/NodePolicy", "DaemonSet")
    before = {kind: {one["metadata"]["name"]: one for one in stack.api.list(kind)} for kind in watched}
    for manifest in stack.applied:
        query = urlencode({"fieldManager": MANAGER, "fieldValidation": "Strict"})
        stack.api.request(
            "PATCH",
            f"{stack.api.path(manifest.kind, manifest.name, manifest.namespace)}?{query}",
            manifest.text,
            content=APPLY,
        )
    for kind in ("Node", "gpustack.dev/v1alpha1/NodePolicy"):
        for one in stack.api.list(kind):
            assert one == before[kind][one["metadata"]["name"]]
    for one in stack.api.list("DaemonSet"):
        assert one["metadata"]["generation"] == before["DaemonSet"][one["metadata"]["name"]]["metadata"]["generation"]
    for one in before["gpustack.dev/v1alpha1/NodePolicy"].values():
        owned = {entry["manager"]: entry["fieldsV1"] for entry in one["metadata"]["managedFields"]}
        assert set(owned["gpustack-reconciler"]) == {"f:status"}
