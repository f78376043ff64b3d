"""The end: everything of ours leaves the nodes, whatever they are in the middle of."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gpustack.api import keys
from gpustack.reconciler.shell.client import Client, configuration
from gpustack.reconciler.shell.clock import Clock
from gpustack.reconciler.shell.gather import Sources
from gpustack.reconciler.shell.lease import NAME as LEASE
from gpustack.reconciler.shell.lease import Elector
from gpustack.reconciler.shell.log import Log
from gpustack.reconciler.shell.uninstall import Uninstalled, uninstall
from tests.control_plane.cluster import wait_for
from tests.control_plane.reconciler.stack import NS, Stack


async def release_all(kubeconfig: Path) -> Uninstalled:
    """Uninstall as somebody who may do everything."""
    client, clock, log = Client(configuration(str(kubeconfig))), Clock(), Log("warning")
    try:
        sources = Sources(client, NS, clock, log)
        return await uninstall(client, sources, Elector(client, NS, "uninstall", clock, log), log)
    finally:
        await client.close()


def test_uninstall_in_every_phase(stack: Stack, upgraded: Path) -> None:
    """T23, I25: with nodes that are idle, being emptied, with a driver under way, and in quarantine, uninstalling
    leaves no record, mark, cordon or annotation of ours; components stay where a pod uses a GPU, and go elsewhere.
    """
    program = stack.start()
    nodes = stack.add(4, "free")
    idle, emptied, acting, failed = nodes
    stack.all_done(*nodes)
    stack.shorten = {"deadlines": {"driver": 6}}
    stack.api.patch("Node", idle.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.gpu_pod(emptied, ends_in=600)
    stack.kubelets.change(acting, driver_never_ready=True)
    stack.kubelets.change(failed, pull_fails=True)
    stack.apply(upgraded)
    stack.reaches(failed, "Quarantine")
    stack.reaches(emptied, "Evicting")
    program.stop()
    assert stack.phase(acting) in {"Acting", "Quarantine"}
    made = asyncio.run(release_all(stack.plane.kubeconfig("admin", stack.plane.token)))
    assert made.left == {}
    assert sorted(made.released) == sorted(one.name for one in nodes)
    for machine in nodes:
        node = stack.node(machine)
        assert not node["spec"].get("unschedulable")
        ours = [key for key in node["metadata"]["annotations"] if key.startswith((keys.DOMAIN, "nvidia.com/"))]
        assert ours == ([keys.UPGRADES_ENABLED] if machine is emptied else [])
        assert keys.PHASE not in node["metadata"]["labels"]
        assert (f"{keys.DEPLOY}driver" in node["metadata"]["labels"]) == (machine is emptied)
    assert stack.api.find("Lease", LEASE, NS) is None
    wait_for(lambda: not stack.driver_hash(idle), "the driver is gone where nobody needs it")
