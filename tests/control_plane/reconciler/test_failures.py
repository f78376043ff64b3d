"""Drivers, validators and MIG layouts that fail: quarantine, and the way out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.reconciler import keys
from tests.control_plane.api import Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.reconciler.stack import NEW_DRIVER, Stack, render
from tests.control_plane.reconciler.witness import Witness, offers

SHORT = {"deadlines": {"driver": 8, "mig": 20, "verifying": 8}}
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
    """T12, T13: an image that is not there, a driver that does not build, a validator that is never ready: each node
    is put into quarantine at its deadline, cordoned, with the reason in an Event and a count in the status; a node
    that works is done meanwhile. Mended, each is given back by itself.
    """
    stack.start()
    nodes = stack.add(4, "free")
    pull, build, validator, good = nodes
    stack.all_done(*nodes)
    stack.shorten = SHORT
    faults = {pull: "pull_fails", build: "driver_crashes", validator: "validator_never_ready"}
    for machine, fault in faults.items():
        stack.kubelets.change(machine, **{fault: True})
    stack.apply(upgraded)
    for machine in faults:
        stack.reaches(machine, "Quarantine")
        assert stack.node(machine)["spec"]["unschedulable"]
    stack.all_done(good)
    wait_for(lambda: stack.policy("free")["status"].get("quarantined") == 3, "the status counts them")
    told = {one["regarding"]["name"]: one for one in events(stack, "Quarantined")}
    assert {one.name for one in faults} <= set(told)
    assert "k8s-driver-manager is in ImagePullBackOff" in told[pull.name]["note"]
    assert "nvidia-driver-ctr is in CrashLoopBackOff" in told[build.name]["note"]
    assert "no validator is ready" in told[validator.name]["note"]
    for machine, fault in faults.items():
        stack.kubelets.change(machine, **{fault: False})
    stack.all_done(*faults)


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
