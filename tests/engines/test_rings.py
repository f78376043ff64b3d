"""Rings with whole engines: what promote commits is what a cluster gets, and no other cluster has anything of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.control_plane.cluster import ROOT, ControlPlane, wait_for
from tests.control_plane.manifests import prepare
from tests.engines.conftest import NewWorld
from tests.engines.engine import SECONDS
from tests.engines.test_fleet import NewCluster, flux_beside, kubeconfig, new_cluster, register
from tests.engines.world import DRIVER, NODE_POLICY, World

__all__ = ["new_cluster"]

EXAMPLE, RINGS = "lab-a100", {"one": "canary", "two": "early", "three": "all"}
GOOD, BAD = "580.173.02", "610.57.04"
"""Drivers that NVIDIA's documentation lists for v26.7."""
FLEET = {
    "apiVersion": "gpustack.dev/v1alpha1",
    "kind": "Fleet",
    "spec": {"rings": [{"name": ring, "clusters": [cluster]} for cluster, ring in RINGS.items()]},
}


def change(version: str) -> str:
    """A change of the driver to VERSION that nobody has yet."""
    body = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyChange", "rollout": {}}
    return yaml.safe_dump({**body, "spec": {"driver": {"version": version}}}, sort_keys=False)


def made(world: World, planes: dict[str, ControlPlane], section: Callable[[str], dict[str, Any]]) -> None:
    """Three clusters as the example describes one, in three rings, with SECTION of each for the engine."""
    policy = yaml.safe_load((ROOT / f"policies/{EXAMPLE}.yaml").read_text("utf-8"))
    for name in planes:
        world.fleet.write(
            name, {**policy, "metadata": {"name": name}, "spec": {**policy["spec"], "gitops": section(name)}}
        )
    (world.fleet.folder / "policies/fleet.yaml").write_text(yaml.safe_dump(FLEET), encoding="utf-8")
    changes = world.fleet.folder / "policies/changes"
    changes.mkdir()
    for name, version in (("good", GOOD), ("bad", BAD)):
        (changes / f"{name}.yaml").write_text(change(version), encoding="utf-8")
    world.publish("three clusters in three rings")
    for name, plane in planes.items():
        prepare(plane.admin, world.fleet.stages(name))
    world.bootstrap()


def driver(plane: ControlPlane) -> str:
    """The driver of the cluster of PLANE, "" before it is there."""
    body = plane.admin.find("DaemonSet", DRIVER, "gpu-operator")
    containers = body["spec"]["template"]["spec"]["containers"] if body else [{"image": ""}]
    return str(containers[0]["image"].rpartition(":")[2].partition("-")[0])


def promoted(world: World, *words: str) -> None:
    """Promote, and push what that committed."""
    world.fleet.gpustack("promote", *words)
    world.fleet.push()
    world.engine.refresh()


def seen(world: World, name: str, plane: ControlPlane, folder: Path) -> tuple[Path, list[str]]:
    """What `gpustack verify` prints of the cluster NAME, and which ids are errors."""
    config, report = folder / f"{name}.kubeconfig", folder / f"{name}.json"
    config.write_text(kubeconfig(plane), encoding="utf-8")
    command = [sys.executable, "-m", "gpustack", "verify", name, "--kubeconfig", str(config), "--format", "json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=world.fleet.folder, env=env, capture_output=True, text=True, check=False)
    report.write_text(done.stdout, encoding="utf-8")
    return report, [each["rule"] for each in json.loads(done.stdout)["findings"] if each["severity"] == "error"]


@pytest.mark.of(EXAMPLE)
@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_a_driver_goes_by_rings_through_three_clusters(
    new_world: NewWorld, new_cluster: NewCluster, engine: str, tmp_path: Path
) -> None:
    """One engine, three clusters: a driver is promoted twice further, and each time one more cluster gets it. The next
    one stays in the canary, as verify says of its NodePolicy, with the breaker open, that it is stalled; withdrawn, the
    canary has the good driver again. The DaemonSets of the others were never written meanwhile.
    """
    world = new_world(engine)
    planes = {name: new_cluster(name) for name in RINGS}
    if engine == "argocd":
        for name, plane in planes.items():
            register(world, name, plane)

    def section(name: str) -> dict[str, Any]:
        own = {"argocd": {"destination": {"name": name}}}
        own = own if engine == "argocd" else {"flux": flux_beside(world, name, planes[name])}
        return {**world.engine.gitops(world.fleet.url), **own}

    made(world, planes, section)
    wait_for(lambda: all(map(driver, planes.values())), "all three have a driver", SECONDS)
    first = driver(planes["one"])
    for index, (name, ring) in enumerate(RINGS.items()):
        promoted(world, "good", "--to", ring, "--skip", "no nodes here")
        wait_for(lambda plane=planes[name]: driver(plane) == GOOD, f"{name} has it", SECONDS)  # type: ignore[misc]
        assert [driver(plane) for plane in planes.values()] == [GOOD] * (index + 1) + [first] * (2 - index)
    (world.fleet.folder / "policies/changes/good.yaml").unlink()
    layers = world.fleet.folder / "policies/layers/bare-metal.yaml"
    layer = yaml.safe_load(layers.read_text("utf-8"))
    layer["spec"]["driver"]["version"] = GOOD
    layers.write_text(yaml.safe_dump(layer), encoding="utf-8")
    world.publish("the good one is what all have")
    others = [planes[name].admin.get("DaemonSet", DRIVER, "gpu-operator") for name in ("two", "three")]
    promoted(world, "bad", "--to", "canary")
    wait_for(lambda: driver(planes["one"]) == BAD, "the canary has the next one", SECONDS)
    admin = planes["one"].admin
    name = admin.list(NODE_POLICY)[0]["metadata"]["name"]
    stalled = {"type": "Stalled", "status": "True", "reason": "BreakerOpen", "message": "three nodes failed"}
    stalled["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    status = {"status": {"conditions": [stalled], "breaker": {"open": True}}}
    path = admin.path(NODE_POLICY, name, "", "status")
    admin.request("PATCH", path, status, content="application/merge-patch+json")
    wait_for(
        lambda: "LIV102" not in seen(world, "one", planes["one"], tmp_path)[1], "the later stages are synced", SECONDS
    )
    report, errors = seen(world, "one", planes["one"], tmp_path)
    assert "LIV601" in errors
    with pytest.raises(AssertionError, match="LIV601"):
        world.fleet.gpustack("promote", "bad", "--to", "early", "--verified", str(report))
    promoted(world, "bad", "--withdraw")
    wait_for(lambda: driver(planes["one"]) == GOOD, "the canary has the good one again", SECONDS)
    now = [planes[name].admin.get("DaemonSet", DRIVER, "gpu-operator") for name in ("two", "three")]
    assert [each["metadata"]["resourceVersion"] for each in now] == [
        each["metadata"]["resourceVersion"] for each in others
    ]
