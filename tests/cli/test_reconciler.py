"""gpustack reconciler uninstall: asks first, gives back every node, and says what it left."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from gpustack.api import keys
from gpustack.cli.live import release
from gpustack.reconciler.shell.cluster import DEPLOYMENTS, LEASES, NODES
from gpustack.reconciler.shell.lease import NAME
from tests.cli.live import Live, live
from tests.project import Project
from tests.reconciler.world.stack import NAMESPACE, POOL
from tests.reconciler.world.workloads import Workload, add_workload
from tests.reconciler.world.world import ZONE


@pytest.fixture
def cluster(project: Project) -> Iterator[Live]:
    """Two installed nodes, one of them in the middle of an operation."""
    with live(project, nodes=2) as made:
        made.world.roll("2")
        made.passes(3)
        made.end()
        yield made


def test_everything_is_given_back(cluster: Live) -> None:
    """No cordon, label or annotation of ours is left, nor the Lease; what remains to do is said."""
    ran = cluster.run("reconciler", "uninstall", "--yes")
    assert ran.code == 0, ran.err
    assert ran.out == "2 nodes given back\nNodePolicies are still there, and do nothing on their own: gpus\n"
    for name in ("node-0", "node-1"):
        node = cluster.world.server.read(NODES, name)
        assert not node.spec.unschedulable
        assert node.annotations == {}
        left = {key for key in node.labels if key.startswith((keys.DOMAIN, keys.DEPLOY))}
        assert left == set()
        assert {POOL, ZONE} <= node.labels.keys()
    assert cluster.world.server.find(LEASES, NAME, NAMESPACE) is None


def test_what_is_left_has_a_reason(cluster: Live) -> None:
    """Labels under a pod that uses a GPU, and a node whose record can't be read: exit code 2."""
    add_workload(cluster.world, Workload("train", 2))
    cluster.world.tick(5)
    free = next(name for name in cluster.world.machines if not cluster.world.cordoned(name))
    other = next(name for name in cluster.world.machines if name != free)
    cluster.world.annotate(other, {keys.OPERATION: "{"})
    ran = cluster.run("reconciler", "uninstall", "--yes", "--format", "json")
    assert ran.code == 2
    found = ran.json
    assert found["released"] == [free]
    assert found["labelsKept"].keys() == {free}
    assert "uses a GPU" in found["labelsKept"][free]
    assert "can't be read" in found["left"][other]
    ran = cluster.run("reconciler", "uninstall", "--yes")
    assert f"{other}: left as it was: its record can't be read" in ran.out
    assert "--discard-record" in ran.out


def test_labels_are_kept_on_demand(cluster: Live) -> None:
    """For who goes on with labels of their own."""
    assert cluster.run("reconciler", "uninstall", "--yes", "--keep-labels").code == 0
    assert cluster.world.labels("node-0")[f"{keys.DEPLOY}driver"] == "true"
    assert cluster.world.annotations("node-0").keys() <= {keys.UPGRADES_ENABLED}


def test_somebody_must_confirm(cluster: Live) -> None:
    """Without a terminal, --yes; nothing is written before."""
    before = cluster.world.server.version
    ran = cluster.run("reconciler", "uninstall")
    assert (ran.code, "--yes" in ran.err) == (4, True)
    assert cluster.run("reconciler", "uninstall", "--format", "json").code == 4
    assert cluster.world.server.version == before


class Terminal(io.StringIO):
    """Somebody at a keyboard."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "changed"), [("y\n", True), ("\n", False), ("no\n", False), ("", False)])
def test_a_terminal_is_asked(cluster: Live, monkeypatch: pytest.MonkeyPatch, answer: str, changed: bool) -> None:
    """What it is about comes with the question."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    ran = cluster.run("reconciler", "uninstall")
    assert ran.code == 0
    assert "Give back 2 nodes, 1 of them in the middle of an operation, and remove the labels" in ran.err
    assert ("nothing was changed" in ran.out) is not changed
    assert (cluster.world.annotations("node-0") == {}) is changed


def test_a_reconciler_that_still_runs_is_refused(cluster: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Deployment, or a replica that holds the Lease; it would label the nodes again."""
    monkeypatch.setattr(release, "WAIT", 0.0)
    cluster.replica.run()
    ran = cluster.run("reconciler", "uninstall", "--yes")
    assert (ran.code, "one-1" in ran.err) == (4, True)
    assert "one-1 holds the Lease; it is seen whether it still runs, for up to 40 s" in ran.err
    metadata = {"name": NAME, "namespace": NAMESPACE}
    for spec, status in (({"replicas": 2}, {}), ({}, {}), ({"replicas": 0}, {"replicas": 1})):
        cluster.world.server.put(DEPLOYMENTS, {"metadata": metadata, "spec": spec, "status": status})
        ran = cluster.run("reconciler", "uninstall", "--yes")
        assert (ran.code, f"kubectl -n {NAMESPACE} scale deployment {NAME}" in ran.err) == (4, True)
    assert cluster.world.labels("node-0")[f"{keys.DEPLOY}driver"] == "true"


def test_a_reconciler_that_was_stopped_is_no_obstacle(cluster: Live) -> None:
    """Its Deployment stays, of no copy, as `replicas: 0` in the policy makes it."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    cluster.world.server.put(DEPLOYMENTS, {"metadata": metadata, "spec": {"replicas": 0}, "status": {"replicas": 0}})
    ran = cluster.run("reconciler", "uninstall", "--yes")
    assert (ran.code, "2 nodes given back" in ran.out) == (0, True)
