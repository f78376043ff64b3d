"""A cluster of the operator, handed over with a whole engine that syncs its policy, and given back.

The cluster has what the operator and Helm had written to a measured one (tests/fidelity/live), with owners and managed
fields, and a node on which its pods run. The policy is the one that `adopt` writes; somebody commits and bootstraps it
when `migrate run` says so. Whether a driver restarts shows by its ControllerRevisions and by the UIDs of its pods.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.manifests import established, make_namespace
from tests.control_plane.test_migrate import CUSTOM, definition
from tests.control_plane.test_migrate_run import SPACE, Cluster, started, until
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.world import World
from tests.moving.test_migrate import DRA, PLAIN, POOLED, VGPU
from tests.project import Project

KINDS = (*CUSTOM, "ServiceMonitor", "PrometheusRule")
CASES = [
    pytest.param(POOLED, "flux", "remove", marks=pytest.mark.ci),
    (POOLED, "argocd", "remove"),
    *((PLAIN, engine, step) for engine in ENGINES for step in ("apply", "takeover", "remove")),
    *(
        (case, engine, "remove")
        for case, engine in ((DRA, "flux"), ("16-mig-mixed-custom", "argocd"), (VGPU, "argocd"))
    ),
]


class Moved(Cluster):
    """A cluster whose pods run, with an engine in it, and the repository as the project."""

    def __init__(self, world: World, cache: Path) -> None:
        super().__init__(world.plane, Project(world.fleet.folder, cache))
        self.world = world
        world.cluster = "x"
        make_namespace(self.api, SPACE)
        for name in KINDS:
            crd = self.api.create(definition(name))["metadata"]["name"]
            wait_for(lambda: established(self.api, crd), f"{name} is served")  # noqa: B023 - called at once

    def node(self, labels: dict[str, str]) -> None:
        """A node with the labels of the stack's pods, and one for what runs anywhere."""
        taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
        gpus = Machine("gpu-0", labels={**labels, "nvidia.com/gpu.present": "true"}, taints=taints)
        self.world.kubelets.add(Machine("system-0", nfd=False), gpus)

    def synced_by(self, step: str) -> set[str]:
        """Run a plan up to STEP, while its owner commits the policy; the DaemonSets that the plan lets roll."""
        plan = self.planned()
        assert plan["promise"]["level"] == "kept"
        steps = [each["id"] for each in plan["steps"]]
        for each in steps[1 : steps.index("apply")]:
            self.run(each) if each != "suspend" else None
        line = self.words("run", "--plan", "plan.json", "--step", "apply", "--wait", "240")
        with self.project.start(*line, env={"HOME": str(self.project.folder)}) as runner:
            until(runner, lambda: not any(self.owners().values()), "the operator's objects are nobody's")
            for name in ("dump.json", "x.yaml"):
                (self.project.folder / name).unlink()
            self.world.publish("moved in")
            self.world.prepare()
            self.world.bootstrap("x")
            out, err = runner.communicate(timeout=300)
        assert runner.returncode == 0, out + err
        if step != "apply":
            self.run("takeover")
            self.world.synced()
        if step == "remove":
            self.run("remove")
        return {each["name"] for each in plan["daemonSets"] if each["fate"] == "rolls"}


@pytest.mark.parametrize(("case", "engine", "step"), CASES, ids=lambda each: str(each)[:8])
def test_moved_in_and_out(new_world: NewWorld, tmp_path: Path, case: str, engine: str, step: str) -> None:
    """No driver has a second revision and none of its pods is another, neither when the engine syncs nor after the way
    back; the list of other DaemonSets that roll is the plan's. The way back, from the middle as from the end, leaves
    the operator running, its owner references as before, and the engine changes nothing any more.
    """
    world = new_world(engine)
    cluster = Moved(world, tmp_path / "cache")
    cluster.holds(case, gitops=world.engine.gitops(world.fleet.url))
    drivers, owners = started(cluster), cluster.owners()
    rolls = cluster.synced_by(step)
    assert (cluster.rolled(), cluster.drivers()) == (rolls, drivers)
    assert cluster.replicas() == 0 if step != "remove" else not cluster.api.find("Deployment", "gpu-operator", SPACE)
    if step == "remove":
        world.settled()
        assert cluster.planned("--reverse")["direction"] == "out"
        cluster.run("all")
    else:
        ran = cluster.migrate("abort")
        assert ran.code == 0, ran.err
    gone_back = (cluster.replicas(), cluster.owners(), cluster.drivers())
    assert gone_back == (1, owners, drivers)
    world.engine.refresh()
    time.sleep(10)  # an engine that isn't suspended has looked again by then
    assert (cluster.replicas(), cluster.owners(), cluster.drivers()) == gone_back
    assert cluster.rolled() == rolls
