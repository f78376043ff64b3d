"""Which driver is the newest, and from when on it counts: siblings, syncs in any order, a git revert in the middle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpustack.api import keys
from tests.control_plane.cluster import wait_for
from tests.control_plane.reconciler.stack import DRIVER, NS, Stack
from tests.control_plane.reconciler.witness import Witness

SIBLING = f"{DRIVER}-canary"
"""Begins with the driver's own name, as DaemonSets for one kernel do."""


@pytest.fixture
def sibling(stack: Stack) -> Iterator[str]:
    """Another driver DaemonSet with the same labels, for nodes that do not exist, and with more revisions than the
    driver has had in the tests before."""
    driver = stack.api.get("DaemonSet", DRIVER, NS)
    spec = driver["spec"]
    spec["template"]["spec"]["nodeSelector"]["example.com/pool"] = "canary"
    meta = {"name": SIBLING, "namespace": NS, "labels": driver["metadata"]["labels"]}
    stack.api.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec})
    for number in range(_revisions(stack)[DRIVER] + 1):
        _change(stack, str(number))
    yield SIBLING
    stack.api.delete("DaemonSet", SIBLING, NS)


def _revisions(stack: Stack) -> dict[str, int]:
    """The highest number of a revision, by DaemonSet."""
    found = [
        (one["metadata"]["name"].rpartition("-")[0], int(one["revision"]))
        for one in stack.api.list("ControllerRevision", NS)
    ]
    return dict(sorted(found, key=lambda each: each[1]))


def _change(stack: Stack, value: str) -> None:
    """Give the sibling another template, and wait until the controller has a revision of it."""
    patch = {"spec": {"template": {"metadata": {"annotations": {"example.com/number": value}}}}}
    generation = stack.api.patch("DaemonSet", SIBLING, patch, NS)["metadata"]["generation"]
    wait_for(
        lambda: stack.api.get("DaemonSet", SIBLING, NS).get("status", {}).get("observedGeneration") == generation,
        "the DaemonSet controller has seen the sibling",
    )


def test_sibling_with_a_like_name(stack: Stack, sibling: str, witness: Witness, upgraded: Path) -> None:
    """T3: a DaemonSet whose name begins with the driver's, with the same labels and a higher revision, is not the
    driver: its changes touch no node; the driver's own change gives it another hash, OnDelete keeps the pods until the
    program deletes them, and each node ends with that hash.
    """
    numbers = _revisions(stack)
    assert numbers[sibling] > numbers[DRIVER]
    stack.start()
    nodes = stack.add(2, "free")
    stack.all_done(*nodes)
    old = stack.newest()
    stack.api.patch("Node", nodes[1].name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    witness.sights.clear()
    _change(stack, "one more")
    stack.apply(upgraded)
    assert stack.newest() != old
    stack.all_done(nodes[0])
    _change(stack, "and another")
    stack.wait_reason("free", "hold")
    assert stack.driver_hash(nodes[1]) == old
    assert witness.phases(nodes[0].name)[-5:] == ["Held", "Evicting", "Acting", "Verifying", ""]
    assert witness.phases(nodes[0].name).count("Held") == 1
    assert all(sight.phase == "" for sight in witness.sights if sight.node == nodes[1].name)


def test_syncs_in_any_order(stack: Stack, witness: Witness, rendered: Path, upgraded: Path) -> None:
    """A8: a DaemonSet without its NodePolicy starts nothing, and neither does a NodePolicy without its DaemonSet: the
    status says so; once both are there it rolls. Back at an older template, the older hash is the newest again (T3).
    """
    stack.start()
    nodes = stack.add(2, "free")
    stack.all_done(*nodes)
    old = stack.newest()
    witness.sights.clear()
    stack.apply(upgraded, only="DaemonSet")
    assert "was made for" in stack.wait_reason("free", "revision")["message"]
    time.sleep(2)  # that nothing happens can't be waited for
    assert all(sight.phase == "" and not sight.cordoned for sight in witness.sights)
    stack.apply(upgraded, only="NodePolicy")
    stack.all_done(*nodes)
    witness.sights.clear()
    stack.apply(rendered, only="NodePolicy")
    assert stack.wait_reason("free", "revision")["count"] == 2
    assert all(sight.phase == "" and not sight.cordoned for sight in witness.sights)
    stack.apply(rendered, only="DaemonSet")
    assert stack.newest() == old
    for machine in nodes:
        wait_for(
            lambda machine=machine: stack.operation(machine).get("target", {}).get("revision") == old,  # type: ignore[misc]
            f"{machine.name} is brought back",
        )


def test_revert_in_the_middle(stack: Stack, witness: Witness, rendered: Path, upgraded: Path) -> None:
    """A20: the new driver is taken back in the middle of its rollout: a node that was not begun with is never touched,
    those in Held and Evicting are given back, and those past it finish and follow the old driver.
    """
    stack.start()
    nodes = stack.add(5, "free")
    queued, held, evicting, acting, verifying = nodes
    stack.all_done(*nodes)
    old = stack.newest()
    stack.shorten = {"upgrade": {"waitForCompletion": {"podSelector": "app=long"}}}
    stack.api.patch("Node", queued.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    job = stack.gpu_pod(held, labels={"app": "long"})
    stack.gpu_pod(evicting, ends_in=600)
    stack.kubelets.change(acting, driver_never_ready=True)
    stack.kubelets.change(verifying, validator_never_ready=True)
    witness.sights.clear()
    stack.apply(upgraded)
    for machine, phase in ((held, "Held"), (evicting, "Evicting"), (acting, "Acting"), (verifying, "Verifying")):
        stack.reaches(machine, phase)
    stack.apply(rendered)
    for machine in (held, evicting):
        wait_for(lambda machine=machine: not stack.operation(machine), f"{machine.name} is given back")  # type: ignore[misc]
        assert stack.last(machine)["outcome"] == "released"
        assert stack.last(machine).get("notBefore") is None
        assert not stack.node(machine)["spec"].get("unschedulable")
        assert stack.driver_hash(machine) == old
    assert stack.api.get("Pod", job["metadata"]["name"], "default")["metadata"].get("deletionTimestamp") is None
    stack.kubelets.change(acting, driver_never_ready=False)
    stack.kubelets.change(verifying, validator_never_ready=False)
    stack.all_done(acting, verifying)
    assert witness.phases(queued.name) in ([], [""])
    assert witness.phases(verifying.name).count("Held") == 2
    assert witness.torn() == []
