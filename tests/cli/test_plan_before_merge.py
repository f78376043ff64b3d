"""gpustack rollout plan on files, before a merge: what is rendered over what the cluster has, as if it was synced."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.api import keys
from tests.cli.live import Live, listed, live
from tests.project import Project
from tests.reconciler.world.stack import NAMESPACE, driver_set, node_policy
from tests.reconciler.world.workloads import Workload, add_workload

NOWHERE = {"KUBECONFIG": None}
DRIVER = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver"}


@pytest.fixture
def cluster(project: Project) -> Iterator[Live]:
    """Three installed nodes, each with a pod that nothing may evict, and nobody who leads."""
    with live(project) as made:
        add_workload(made.world, Workload("train", 3, max_unavailable=0))
        made.passes(2)
        made.end()
        yield made


def rendered(folder: Path, version: str, **spec: Any) -> Path:
    """The stages of a render that a plan depends on, with the driver VERSION."""
    head = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    write(folder / "driver", {**head, **driver_set(version)})
    head = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "NodePolicy"}
    write(folder / "reconciler", {**head, **node_policy(version=version, **spec)})
    return folder


def write(folder: Path, body: dict[str, Any]) -> None:
    """BODY as a render writes it."""
    folder.mkdir(parents=True)
    (folder / f"{body['kind'].lower()}.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")


def planned(project: Project, *sources: Path) -> dict[str, Any]:
    """The plan of SOURCES."""
    words = [word for source in sources for word in ("--from", str(source))]
    found: dict[str, Any] = project.run("rollout", "plan", *words, "--format", "json", env=NOWHERE).json
    return found


def test_a_driver_that_is_not_merged_yet(cluster: Live, tmp_path: Path) -> None:
    """The order, the pods that move and what blocks them are those of the plan after the sync, whichever file is named
    first; the stage of the NodePolicies is enough, as that of the driver lies beside it."""
    dump, dist = cluster.dump(tmp_path / "dump"), rendered(tmp_path / "dist", "2")
    plans = [
        planned(cluster.project, dump, dist),
        planned(cluster.project, dist, dump),
        planned(cluster.project, dump, dist / "reconciler"),
    ]
    cluster.world.roll("2")
    cluster.world.tick(5)
    after = planned(cluster.project, cluster.dump(tmp_path / "after"))
    same = ("node", "policy", "operation", "begins", "evicts", "blockers", "waits")
    wanted = [{key: turn[key] for key in same} for turn in after["order"]]
    assert [turn["node"] for turn in wanted] == ["node-0", "node-1", "node-2"]
    assert all(len(turn["blockers"]) == 1 for turn in wanted)
    for plan in plans:
        assert [{key: turn[key] for key in same} for turn in plan["order"]] == wanted


def test_the_same_driver(cluster: Live, tmp_path: Path) -> None:
    """What is rendered as it runs is nothing to do."""
    found = planned(cluster.project, cluster.dump(tmp_path / "dump"), rendered(tmp_path / "dist", "1"))
    assert (found["order"], found["waits"]) == ([], [])


def test_nodes_that_nobody_has_adopted(cluster: Live, tmp_path: Path) -> None:
    """A cluster without a NodePolicy, whose nodes nobody has noted anything on: the same turns. One that node feature
    discovery has not labelled yet is told."""
    for node in cluster.world.machines:
        cluster.world.annotate(node, {keys.MEMORY: None})
    dump = cluster.dump(tmp_path / "dump", "nodepolicies")
    fresh = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fresh", "uid": "9"}}
    fresh["metadata"]["labels"] = {"example.com/pool": "gpus"}  # type: ignore[index]
    (dump / "fresh.yaml").write_text(yaml.safe_dump(fresh), encoding="utf-8")
    found = planned(cluster.project, dump, rendered(tmp_path / "dist", "2"))
    assert [turn["node"] for turn in found["order"]] == ["node-0", "node-1", "node-2"]
    assert "no GPU has been discovered yet on nodes that NodePolicy gpus is for: fresh" in found["notes"]


def test_a_policy_that_is_gone(cluster: Live, tmp_path: Path) -> None:
    """A NodePolicy that is rendered no more is pruned: it would match the same nodes as the one in its place."""
    dump, dist = cluster.dump(tmp_path / "dump"), rendered(tmp_path / "dist", "2")
    (path,) = (dist / "reconciler").iterdir()
    path.write_text(path.read_text().replace("name: gpus\nspec", "name: others\nspec"), encoding="utf-8")
    assert "name: others" in path.read_text()
    found = planned(cluster.project, dump, dist)
    assert {turn["policy"] for turn in found["order"]} == {"others"}
    assert len(found["order"]) == 3


def test_the_operator_still_runs(cluster: Live, tmp_path: Path) -> None:
    """Whoever moves in sees the order, and that the operator stands before it (reconciler.md A6)."""
    dump = cluster.dump(tmp_path / "dump")
    operator = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"readyReplicas": 1}}
    operator["metadata"] = {"name": "gpu-operator", "namespace": NAMESPACE, "uid": "8"}
    (dump / "operator.yaml").write_text(listed([operator]), encoding="utf-8")
    assert planned(cluster.project, dump)["order"] == []
    found = planned(cluster.project, dump, rendered(tmp_path / "dist", "2"))
    assert len(found["order"]) == 3
    told = "gpu-operator/gpu-operator still runs: nothing of this happens before it is scaled down"
    assert told in found["notes"]


def test_a_render_of_ours(project: Project, tmp_path: Path) -> None:
    """Over a DaemonSet that the operator made: with what the API server adds to it and no mark of ours, an equal
    template restarts nobody, and another driver version does."""
    nodes = [{"name": "a", "os": "ubuntu22.04", "nodeSelector": {"example.com/pool": "a"}}]
    cluster = {"kubernetesVersion": "1.34", "containerRuntime": "containerd"}
    settings: dict[str, Any] = {"cluster": cluster, "reconciler": {"image": "r.example/r:1"}, "nodePools": nodes}
    project.policy("a", driver={"enabled": True}, **settings)
    assert project.run("render").code == 0
    dist = project.folder / "dist/a"
    (path,) = (dist / "driver").glob("daemonset-*.yaml")
    there = copy.deepcopy(yaml.safe_load(path.read_text(encoding="utf-8")))
    there["metadata"] |= {"uid": "1", "annotations": {}}
    there["status"] = {"observedGeneration": 1}
    there["spec"]["template"]["spec"] |= {"schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst"}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nvidia-driver-daemonset", "uid": "1"}
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1}
    revision["metadata"] = {"name": "r", "namespace": NAMESPACE, "uid": "2", "labels": {**DRIVER, keys.HASH: "old"}}
    revision["metadata"]["ownerReferences"] = [{**owner, "controller": True}]  # type: ignore[index]
    labels = {
        "example.com/pool": "a",
        keys.PRESENT: "true",
        f"{keys.DEPLOY}driver": "true",
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "22.04",
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "3", "labels": labels}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node["status"] = {**ready, "allocatable": {"nvidia.com/gpu": "8"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n", "containers": []}, "status": ready}
    pod["metadata"] = {"name": "p", "namespace": NAMESPACE, "uid": "4", "labels": {**DRIVER, keys.HASH: "old"}}
    dump = tmp_path / "cluster.yaml"
    dump.write_text(listed([there, revision, node, pod]), encoding="utf-8")
    assert [turn["operation"] for turn in planned(project, dump, dist)["order"]] == []
    project.policy("a", driver={"version": "580.105.08"}, **settings)
    assert project.run("render").code == 0
    (turn,) = planned(project, dump, dist)["order"]
    assert (turn["node"], turn["operation"], turn["restartOnly"]) == ("n", "driver", False)


# --- estimates, and nodes in one line ---------------------------------------------------------------------------------

WEEKLY = [{"start": "00:00", "hours": 1, "days": ["sun"]}]
NIGHTS = [{"start": "01:00", "hours": 4}]


@pytest.mark.parametrize(
    ("upgrade", "used", "done"),
    [
        # 300 s for evictions, 5400 s for the driver, 900 s to verify: 1 h 50 min each. The clock says Monday 09:00.
        ({"windows": WEEKLY}, 3, "2026-01-25T01:50:00Z"),  # one each Sunday
        ({"windows": NIGHTS}, 1, "2026-01-06T06:30:00Z"),  # begun at 01:00, 02:50 and 04:40
        ({"windows": NIGHTS, "maxParallel": 2, "maxUnavailable": 2}, 1, "2026-01-06T04:40:00Z"),  # one, then two
        ({"windows": NIGHTS, "soakSeconds": 3600}, 2, "2026-01-07T02:50:00Z"),  # 01:00 and 03:50, one the next night
        ({"windows": NIGHTS, "soakSeconds": 3600, "maxParallel": 2, "maxUnavailable": 2}, 2, "2026-01-07T02:50:00Z"),
        ({"windows": NIGHTS, "maxUnavailable": 0}, None, None),
        ({"podDeletion": {"timeoutSeconds": 0}}, None, None),
    ],
)
def test_time_against_windows(
    cluster: Live, tmp_path: Path, upgrade: dict[str, Any], used: int | None, done: str | None
) -> None:
    """How many windows a rollout needs at the most, and when it is done."""
    cluster.world.roll("2", upgrade=upgrade)
    cluster.world.tick(5)
    cluster.world.server.now = cluster.world.server.now.replace(day=5, hour=9, minute=0, second=0)
    found = cluster.run("rollout", "plan", "--format", "json").json["estimates"]
    assert [(each["nodes"], each["windows"], each["doneBy"]) for each in found] == [(3, used, done)]


def test_nodes_that_wait_for_one_reason_are_one_line(project: Project) -> None:
    """25 nodes that wait for a window are one line of the plan and one of the status; JSON has each."""
    with live(project, nodes=25) as cluster:
        cluster.world.roll("2", upgrade={"windows": WEEKLY})
        cluster.world.tick(5)
        for verb in ("plan", "status"):
            out = cluster.run("rollout", verb).out
            assert out.count("waits (window)") == 1
            assert "and 17 more" in out
        assert len(cluster.run("rollout", "plan", "--format", "json").json["order"]) == 25
