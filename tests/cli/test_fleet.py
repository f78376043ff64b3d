"""A driver goes through a fleet: sixty clusters in three rings, in each of which the reconciler rolls what is promoted.

The clusters are simulated in memory (tests/reconciler): nodes, kubelets, driver pods, and the reconciler's own passes.
What `gpustack verify` reads of a cluster is a dump: the rendered objects, nodes as they are, and NodePolicies with the
status that the reconciler wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import yaml

from gpustack.reconciler.shell.cluster import POLICIES
from tests.cli.test_promote import NAMES, RINGS, T0, T1, T2, fleet, promote, saved, touched
from tests.live import test_verify as live
from tests.project import Project, cache, project
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History

__all__ = ["cache", "project"]

OLD, GOOD, BAD = "580.126.20", "580.159.04", "595.71.05"
"""Drivers that NVIDIA's documentation lists for v26.3 or v26.7."""
SPEC: dict[str, Any] = {
    "driver": {"enabled": True},
    "nodePools": live.POOLS,
    "reconciler": {"image": live.RECONCILER["image"]},
}
CHANGE = """\
apiVersion: gpustack.dev/v1alpha1
kind: PolicyChange
rollout: {}
spec: {driver: {version: %s}}
"""
PASSES = 600


class Clusters:
    """The sixty clusters, of two nodes each and of four in the canary, that have the driver which is rendered."""

    def __init__(self, project: Project) -> None:
        self.project, self.by_name = (
            project,
            {name: History(4 if name in RINGS["canary"] else 2, limits=3) for name in NAMES},
        )
        self.have = dict.fromkeys(NAMES, "1")

    def rendered(self, name: str) -> str:
        """The driver that is rendered for the cluster NAME."""
        path = self.project.dist / name / "driver/daemonset-nvidia-driver-daemonset.yaml"
        pod = yaml.safe_load(path.read_text())["spec"]["template"]["spec"]
        return str(pod["containers"][0]["image"].rpartition(":")[2].partition("-")[0])

    def sync(self, names: Iterable[str], faulty: str = "") -> set[str]:
        """Apply what is rendered where it is another driver, and let the reconciler work until it is done or stopped.
        No driver pod of the version FAULTY comes up. The clusters in which something was begun; in all others the
        reconciler looks as well, and finds nothing to write.
        """
        begun = set()
        for name in names:
            history, version = self.by_name[name], self.rendered(name)
            if version == self.have[name]:
                history.world.tick(20)
                assert not history.once(), f"somebody is at work in {name}"
                continue
            self.have[name], history.want.version = version, version
            for machine in history.world.machines.values():
                machine.faults.clear()
                machine.faults |= {"driver"} if version == faulty else set()
            history.sync(0)
            if self.status(name).get("breaker", {}).get("open"):
                history.retry(1)
            for _ in range(PASSES):
                wrote = history.once()
                history.world.tick(20)
                if not wrote and self.rests(name):
                    break
            begun.add(name)
        return begun

    def machines(self, name: str) -> list[Any]:
        """The nodes of the cluster NAME."""
        return [*self.by_name[name].world.machines.values()]

    def status(self, name: str) -> dict[str, Any]:
        """What the reconciler of the cluster NAME says of itself."""
        return dict(self.by_name[name].world.server.get(POLICIES, POOL)["status"])

    def rests(self, name: str) -> bool:
        """Whether nothing goes on in the cluster NAME: all nodes have its driver, or the breaker has stopped it."""
        history = self.by_name[name]
        phases = {m.operation(history.world.node(each)).get("phase", "") for each in history.world.machines}
        status = self.status(name)
        stopped = bool(status.get("breaker", {}).get("open")) and phases <= {"", "Quarantine"}
        return stopped or (phases == {""} and self.loaded(name) == {self.have[name]})

    def loaded(self, name: str) -> set[str]:
        """The drivers that the nodes of the cluster NAME run."""
        return {str(each.loaded).removeprefix("digest-") for each in self.machines(name)}

    def dump(self, name: str) -> str:
        """What `kubectl get` would print of the cluster NAME, in a file; its path."""
        texts = [text for path, text in self.project.tree(self.project.dist / name).items() if path.endswith(".yaml")]
        items = [yaml.safe_load(text) for text in texts]
        world, sets = self.by_name[name].world, [each for each in items if each["kind"] == "DaemonSet"]
        for each in items:
            each["metadata"]["uid"] = each["metadata"]["name"]
            if each["kind"] == "NodePolicy":
                each["status"] = self.status(name)
        for node, machine in world.machines.items():
            body = live.node(node)
            body["metadata"]["labels"][live.VERSION] = str(machine.loaded).removeprefix("digest-")
            items.append(body)
            for each in sets:
                pod = live.pod(f"{each['metadata']['name']}-{node}", node)
                pod["metadata"]["ownerReferences"][0] |= dict.fromkeys(("name", "uid"), each["metadata"]["name"])
                pod["metadata"]["labels"] = each["spec"]["template"]["metadata"]["labels"]
                items.append(pod)
        text = yaml.dump({"apiVersion": "v1", "kind": "List", "items": items}, Dumper=yaml.CSafeDumper)
        self.project.folder.parent.joinpath(f"{name}.yaml").write_text(text, encoding="utf-8")
        return f"../{name}.yaml"

    def verified(self, names: Iterable[str], looked: str) -> list[str]:
        """`gpustack verify` of each of NAMES as it is, LOOKED at then; the reports."""
        files = []
        for name in names:
            done = self.project.run("verify", name, "--from", self.dump(name), "--format", "json")
            report = self.project.folder.parent / f"{name}.json"
            report.write_text(json.dumps({**done.json, "lookedAt": looked}), encoding="utf-8")
            files.append(f"../{name}.json")
        return files


@pytest.fixture
def clusters(project: Project) -> Clusters:
    """Sixty clusters that run the old driver, with two changes of it that nobody has yet."""
    fleet(project, NAMES)
    for name in NAMES:
        project.policy(name, **{**SPEC, "driver": {"enabled": True}}, extends=["base"])
    project.layer("base", driver={"version": OLD})
    project.write("policies/changes/good.yaml", CHANGE % GOOD)
    project.write("policies/changes/bad.yaml", CHANGE % BAD)
    saved(project)
    made = Clusters(project)
    made.sync(NAMES)
    assert {*map(made.rendered, NAMES)} == {OLD} == set().union(*map(made.loaded, NAMES))
    return made


def test_a_driver_goes_through_sixty_clusters_and_a_bad_one_no_further_than_the_canary(clusters: Clusters) -> None:
    """The good driver is promoted twice after the canary, each time on what verify says of the clusters of the ring
    before, and rolls in the clusters of the new ring alone. The bad one fails on the canary's nodes: the breaker opens,
    verify says so (LIV601), no further ring gets it, and taken back, the canary's nodes run the good one again; the
    other 58 clusters were never touched by it, in Git or in their nodes.
    """
    project, seen = clusters.project, list[str]()
    for ring, now in (("canary", T0), ("early", T1), ("all", T2)):
        before = project.tree()
        done = promote(project, "good", "--to", ring, *seen, now=now)
        assert (done.code, done.err) == (0, ""), done.err
        assert touched(project, before) == {*RINGS[ring]} == clusters.sync(NAMES)
        had = {name for each in RINGS for name in RINGS[each] if [*RINGS].index(each) <= [*RINGS].index(ring)}
        assert {name: clusters.loaded(name) for name in NAMES} == {n: {GOOD if n in had else OLD} for n in NAMES}
        seen = ["--verified", *clusters.verified(RINGS[ring], now.replace("T08", "T09"))]
    start = project.tree()
    # The good one becomes what the layer says, and the next one is begun.
    done = promote(project, "bad", "--to", "canary", now="2027-03-08T08:00:00Z")
    assert "both set spec.driver.version" in done.err
    project.layer("base", driver={"version": GOOD})
    (project.folder / "policies/changes/good.yaml").unlink()
    saved(project)
    assert project.tree() == start
    assert promote(project, "bad", "--to", "canary", now="2027-03-08T08:00:00Z").code == 0
    assert clusters.sync(NAMES, faulty=BAD) == {*RINGS["canary"]}
    # The breaker opens at the second node that fails (breakerFailures: 2); the others keep what they have.
    assert all(clusters.loaded(name) == {"", GOOD} for name in RINGS["canary"])
    counted = [Counter(bool(each.loaded) for each in clusters.machines(name)) for name in RINGS["canary"]]
    assert counted == [{False: 2, True: 2}] * 2
    assert all(clusters.status(name)["breaker"]["open"] for name in RINGS["canary"])
    assert all(clusters.loaded(name) == {GOOD} for name in NAMES if name not in RINGS["canary"])
    reports = clusters.verified(RINGS["canary"], "2027-03-09T09:00:00Z")
    stopped = promote(project, "bad", "--to", "early", "--verified", *reports, now="2027-03-09T10:00:00Z")
    assert (stopped.code, "LIV601" in stopped.err) == (4, True), stopped.err
    due = promote(project, "--due", "--verified", *reports, now="2027-03-09T10:00:00Z")
    assert (due.code, "LIV601" in due.out, "to early" in due.out) == (0, True, False)
    assert promote(project, "bad", "--withdraw", now="2027-03-09T11:00:00Z").code == 0
    assert project.tree() == start
    assert clusters.sync(NAMES) == {*RINGS["canary"]}
    assert set().union(*map(clusters.loaded, NAMES)) == {GOOD}
    assert all(clusters.by_name[name].problems() == [] for name in RINGS["canary"])
