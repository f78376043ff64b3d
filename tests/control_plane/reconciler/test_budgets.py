"""How many nodes at a time, and when: budgets of fleet, pool and zone, and maintenance windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpustack.api import keys
from tests.control_plane.actors.surroundings import cordon
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import NEW_DRIVER, POOL, Stack, over, pools, render
from tests.control_plane.reconciler.witness import Witness

ZONE = "topology.kubernetes.io/zone"


def zoned(stack: Stack, zone: str, count: int) -> list[Machine]:
    """Nodes of the pool `free` in a zone."""
    added = [Machine(f"free-{zone}-{n}", labels={POOL: "free", ZONE: zone}) for n in range(count)]
    stack.kubelets.add(*added)
    return added


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newer driver, five nodes of the fleet, half a zone of the pool `free`, one node of `training`."""
    upgrade = {"free": {"upgrade": {"maxUnavailable": "100%", "zoneMaxUnavailable": "50%"}}}
    limits = {"driver": {"upgradePolicy": {"maxUnavailable": 5}}, "nodePools": pools(upgrade)}
    return render(tmp_path_factory.mktemp("rendered") / "limited", over(NEW_DRIVER, limits))


def test_budgets(stack: Stack, witness: Witness, limited: Path) -> None:
    """T17, A10: pools roll at once, and at no moment are more nodes out of service than pool and zone allow each (half
    of three nodes is two, half of one is one); nodes that somebody cordoned count, and a pool of which all nodes are
    cordoned waits. A budget of the fleet that shrinks to nothing in the middle lets finish what has begun, and begins
    nothing; back, the others' turn comes.
    """
    stack.start()
    three, one = zoned(stack, "a", 3), zoned(stack, "b", 1)
    training = stack.add(2)
    (alone,) = stack.add(1, "cut")
    begun, rest = [three[1], one[0], training[0]], [three[2], training[1]]
    stack.all_done(*three, *one, *training, alone)
    for machine in (three[0], alone):
        cordon(stack.api, machine)
    for machine in begun:
        stack.kubelets.change(machine, validator_never_ready=True)
    witness.sights.clear()
    stack.apply(limited)
    for machine in begun:
        stack.reaches(machine, "Verifying")
    assert stack.reason("training", training[1]).startswith("parallel: 1 of 1 operations of training are under way")
    assert stack.reason("free", three[2]).startswith("budget: 2 nodes of free in zone a are unavailable, and 2 may be")
    assert stack.reason("cut", alone).startswith("cordoned")
    for name in ("free", "training", "cut"):
        stack.api.patch("gpustack.dev/v1alpha1/NodePolicy", name, {"spec": {"fleet": {"maxUnavailable": 0}}})
    for machine in begun:
        stack.kubelets.change(machine, validator_never_ready=False)
    stack.all_done(*begun)
    for pool, machine in (("free", three[2]), ("training", training[1])):
        wait_for(
            lambda pool=pool, machine=machine: (
                "nodes of the fleet are unavailable, and 0" in stack.reason(pool, machine)
            ),  # type: ignore[misc]
            f"{machine.name} waits for the fleet's budget",
        )
    assert all(stack.phase(machine) == "" for machine in rest)
    cordon(stack.api, alone, yes=False)
    stack.apply(limited)
    stack.all_done(*rest, alone)
    for group in (three, one, training):
        assert witness.most(lambda sight: sight.owned, *(machine.name for machine in group)) == 1
    assert keys.CORDONED not in stack.annotations(three[0])
    assert stack.node(three[0])["spec"]["unschedulable"]


def test_windows(stack: Stack, proxy: Proxy, upgraded: Path) -> None:
    """T18, A17: a window of Saturday 22:00 in Berlin that reaches over midnight and over the change to summer time is
    open for its six hours by the API server's clock, whatever this machine's says. New nodes are set up outside of it.
    It closes with nodes in Held, Evicting, Acting and Verifying: those of which pods were evicted go on, the one that
    was waited for is given back, and no other begins before the next.
    A window of a zone that nobody knows never opens.
    """
    proxy.behind = datetime.now(UTC) - datetime(2026, 3, 28, 20, 30, tzinfo=UTC)
    stack.start(kubeconfig=stack.behind(proxy))
    nodes = stack.add(5, "free")
    held, evicting, acting, verifying, late = nodes
    (unknown,) = stack.add(1)
    stack.all_done(*nodes, unknown)
    week = 7 * 24 * 3600
    berlin = [{"days": ["sat"], "start": "22:00", "hours": 6, "timeZone": "Europe/Berlin"}]
    stack.shorten = {
        "upgrade": {
            "windows": berlin,
            "podDeletion": {"timeoutSeconds": week},
            "waitForCompletion": {"podSelector": "app=long", "timeoutSeconds": week},
        },
        "deadlines": dict.fromkeys(("driver", "mig", "verifying"), week),
    }
    job = stack.gpu_pod(held, labels={"app": "long"})
    slow = stack.gpu_pod(evicting, ends_in=600)
    stack.kubelets.change(acting, driver_never_ready=True)
    stack.kubelets.change(verifying, validator_never_ready=True)
    stack.api.patch("Node", late.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.apply(upgraded)
    nowhere = [{**berlin[0], "days": [], "hours": 24, "timeZone": "Europe/Nowhere"}]
    stack.api.patch("gpustack.dev/v1alpha1/NodePolicy", "training", {"spec": {"upgrade": {"windows": nowhere}}})
    assert "the next opens 2026-03-28T21:00Z" in stack.wait_reason("free", "window")["message"]
    assert stack.wait_reason("training", "window")["message"] == "no window ever opens"
    assert all(stack.phase(one) == "" for one in nodes)
    stack.passes(proxy, timedelta(hours=6, minutes=15), late)  # 02:45Z: enough for a pod that takes ten minutes to end
    for machine, phase in ((held, "Held"), (evicting, "Evicting"), (acting, "Acting"), (verifying, "Verifying")):
        stack.reaches(machine, phase)
    stack.passes(proxy, timedelta(minutes=15), late)
    stack.api.patch("Node", late.name, {"metadata": {"labels": {keys.HOLD: None}}})
    wait_for(lambda: "the next opens 2026-04-04T20:00Z" in stack.reason("free", late), "the window is closed")
    for one in (job, slow):
        stack.api.delete("Pod", one["metadata"]["name"], "default", grace=0)
    stack.kubelets.change(acting, driver_never_ready=False)
    stack.kubelets.change(verifying, validator_never_ready=False)
    stack.all_done(acting, verifying)
    for machine, phase in ((held, "Held"), (evicting, "Evicting")):
        wait_for(lambda machine=machine, phase=phase: stack.phase(machine) != phase, f"{machine.name} goes on")  # type: ignore[misc]
    assert stack.phase(late) == stack.phase(unknown) == ""
    assert stack.reason("training", unknown).startswith("window")
