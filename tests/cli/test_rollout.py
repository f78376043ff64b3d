"""gpustack rollout: what it shows of a cluster or of files, and what it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.api import keys
from gpustack.cluster.node_labels import selection
from gpustack.policy.loading.load import load
from gpustack.reconciler.core.actions import PatchNode
from gpustack.reconciler.shell.cluster import (
    DAEMONSETS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PODS,
    POLICIES,
    Forbidden,
    NotFound,
)
from gpustack.reconciler.shell.lease import NAME
from tests.cli.live import Live, deployed, kubeconfig, live
from tests.project import Project
from tests.reconciler.memory import FakeCluster
from tests.reconciler.model import moment as m
from tests.reconciler.model.replica import Replica
from tests.reconciler.shell import fail
from tests.reconciler.world.stack import NAMESPACE
from tests.reconciler.world.workloads import Workload, add_workload, start

OS_RELEASE = "feature.node.kubernetes.io/system-os_release."


@pytest.fixture
def cluster(project: Project) -> Iterator[Live]:
    """Three installed nodes, each with a pod, and a leader."""
    with live(project) as made:
        deployed(made.world)
        add_workload(made.world, Workload("train", 3))
        made.passes(2)
        yield made


def writes(cluster: Live) -> list[Any]:
    """What clients have written through the address."""
    return [write for write in cluster.world.server.writes if write.actor == cluster.cluster.actor]


def policy(cluster: Live) -> dict[str, Any]:
    """The annotations of the policy."""
    found = cluster.world.server.get(POLICIES, "gpus")["metadata"].get("annotations")
    return dict(found or {})


# --- plan -------------------------------------------------------------------------------------------------------------


def test_the_plan_is_what_the_next_pass_does(cluster: Live) -> None:
    """Order, pods that move and arithmetic; the nodes that begin are those that the program admits, and nothing is
    written (reconciler.md R13, I22)."""
    cluster.world.roll("2", upgrade={"maxParallel": 2, "maxUnavailable": 2})
    cluster.world.tick(5)
    before = cluster.world.server.version
    found = cluster.run("rollout", "plan", "--format", "json").json
    assert cluster.world.server.version == before
    made = cluster.replica.run().actions
    admitted = {action.node for action in made if isinstance(action, PatchNode) and action.admits}
    assert [turn["node"] for turn in found["order"]] == ["node-0", "node-1", "node-2"]
    assert {turn["node"] for turn in found["order"] if turn["begins"]} == admitted == {"node-0"}
    assert all(len(turn["evicts"]) == 1 and turn["evicts"][0].startswith("work/train-") for turn in found["order"])
    assert found["budgets"][0] == {
        "of": "gpus",
        "underWay": 0,
        "maxParallel": 2,
        "unavailable": 0,
        "maxUnavailable": 2,
        "left": 2,
    }
    assert [turn["waits"][0]["reason"] for turn in found["order"][1:]] == ["first", "first"]


def test_the_plan_looks_past_what_is_only_noted(cluster: Live) -> None:
    """Nodes of which nobody has noted yet whom they belong to, as after a move from the operator: the next pass notes
    it, and the one after begins. That is what the plan says, and not "nothing begins now"."""
    for node in cluster.world.machines:
        cluster.world.annotate(node, {keys.MEMORY: None})
    cluster.world.roll("2")
    cluster.world.tick(5)
    found = cluster.run("rollout", "plan", "--format", "json").json
    assert [turn["node"] for turn in found["order"]] == ["node-0", "node-1", "node-2"]
    assert [turn["begins"] for turn in found["order"]] == [True, False, False]
    assert len(found["order"][0]["evicts"]) == 1
    assert [action for action in found["actions"] if "belongs to gpus" in action]
    cluster.passes(2)
    assert cluster.world.cordoned("node-0")


def test_the_plan_in_words(cluster: Live) -> None:
    """What begins, what comes later and why, and what blocks it though it is not its turn."""
    add_workload(cluster.world, Workload("train", 3, max_unavailable=0))
    cluster.world.roll("2", upgrade={"windows": [{"start": "00:00", "hours": 1, "days": ["sun"]}]})
    cluster.world.tick(5)
    ran = cluster.run("rollout", "plan")
    assert ran.code == 0, ran.err
    assert "gpus: 0 of 1 operations, 0 of 1 unavailable nodes: 1 more node may go" in ran.out
    assert (
        "nothing begins now\nlater, in this order\n  1-3. node-0, node-1, node-2 (gpus): driver to driver " in ran.out
    )
    assert "waits (window): no window is open; the next opens 2026-01-11T00:00Z" in ran.out
    assert "blocked: work/train-" in ran.out
    assert "The disruption budget train needs 3 healthy pods and has 3 currently" in ran.out
    assert ran.out.endswith("nothing was changed\n")


def test_a_plan_without_the_right_to_evict(cluster: Live) -> None:
    """Who may only read sees the plan, with a note of what it lacks."""
    cluster.world.roll("2")
    cluster.world.tick(5)
    cluster.cluster.denied = {("create", "pods/eviction")}
    ran = cluster.run("rollout", "plan")
    assert ran.code == 0
    assert "note: evictions can't be tried, so disruption budgets aren't known: " in ran.out
    assert "begins now\n  1. node-0" in ran.out


def shares(cluster: Live) -> None:
    """The program shares maintenance by Leases and minds kured's lock, as its Deployment says; a driver is due."""
    args = ["--namespace", "$(POD_NAMESPACE)", "--maintenance-leases", m.SHARED, "--kured=kube-system/kured"]
    template = {"spec": {"containers": [{"name": "reconciler", "args": args}]}}
    cluster.world.server.edit(DEPLOYMENTS, NAME, {"spec": {"template": template}}, NAMESPACE)
    cluster.end()
    cluster.replica = Replica(cluster.world, lambda: FakeCluster(cluster.world.server, "two"), maintenance=m.SHARED)
    cluster.world.roll("2")
    cluster.passes(1)


def others(cluster: Live, what: str) -> None:
    """Somebody holds node-0 for maintenance, or kured reboots node-2."""
    if what == "lease":
        spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600}
        spec["renewTime"] = cluster.world.server.now.isoformat()
        cluster.world.server.put(LEASES, {"metadata": {"name": "node-node-0", "namespace": m.SHARED}, "spec": spec})
    else:
        lock = json.dumps({"nodeID": "node-2", "metadata": {}, "created": "2020-01-01T00:00:00Z", "TTL": 0})
        metadata = {"name": m.KURED[1], "namespace": m.KURED[0], "annotations": {m.LOCK: lock}}
        cluster.world.server.put(DAEMONSETS, {"metadata": metadata})


@pytest.mark.parametrize("what", ["lease", "lock"])
def test_the_plan_minds_who_else_works_on_nodes(cluster: Live, what: str, tmp_path: Path) -> None:
    """By the Leases and the lock that the program's own options name, in the cluster and in files: what waits, waits in
    the plan for the same reason, and what begins is the same."""
    others(cluster, what)
    shares(cluster)
    folder = cluster.dump(tmp_path / "dump")
    found = cluster.run("rollout", "plan", "--format", "json").json
    files = cluster.run("rollout", "plan", "--from", str(folder), "--format", "json", env={"KUBECONFIG": None}).json
    actions = cluster.replica.run().actions
    begun = {action.node for action in actions if isinstance(action, PatchNode) and action.admits}
    waits = [(each.node, each.kind, each.message) for each in cluster.replica.decided.waits]
    begins = {turn["node"] for turn in found["order"] if turn["begins"]}
    assert begins == begun == ({"node-1"} if what == "lease" else set())
    assert ("node-0", "maintenance") in {each[:2] for each in waits}
    for plan in (found, files) if what == "lock" else (found,):  # in files it is today, and the Lease is over
        assert sorted((each["node"], each["reason"], each["message"]) for each in plan["waits"]) == sorted(waits)
    assert found["notes"] == []
    lacking = "DaemonSet of kube-system/kured" if what == "lease" else f"Lease of {m.SHARED}"
    assert files["notes"][-1].startswith(f"the files hold no {lacking}, so nobody holds a node by it (kubectl get ")


def test_a_plan_without_the_right_to_read_what_others_hold(cluster: Live) -> None:
    """Who may not read the Leases is told so, and which; the rest of the plan stands."""
    others(cluster, "lease")
    shares(cluster)
    cluster.cluster.denied = {("list", "leases")}
    ran = cluster.run("rollout", "plan")
    assert ran.code == 0
    assert f"note: {m.SHARED} can't be read, so it isn't known who else holds nodes: " in ran.out


def test_a_plan_where_it_is_not_known_how_the_program_runs(cluster: Live) -> None:
    """Without its Deployment nobody knows its options: the plan says so."""
    cluster.world.server.remove(DEPLOYMENTS, NAME, NAMESPACE)
    ran = cluster.run("rollout", "plan")
    assert f"note: no Deployment {NAMESPACE}/{NAME} is there, so it isn't known by what others hold nodes" in ran.out


def test_a_plan_after_hours_in_which_nobody_watched(cluster: Live) -> None:
    """Of what has been under way all the time the next leader makes no failure, nor does the plan (A24)."""
    cluster.world.roll("2")
    while m.operation(cluster.world.node("node-0")).get("phase") != "Acting":
        cluster.passes(1)
    cluster.world.set_works("node-0", False)
    cluster.passes(1)
    for _ in range(180):
        cluster.world.tick(60)
    found = cluster.run("rollout", "plan", "--format", "json").json
    assert [each["phase"] for each in found["underWay"]] == ["Acting"]
    assert not [action for action in found["actions"] if "did not end in time" in action]
    cluster.replica.restart()
    cluster.passes(2)
    assert m.operation(cluster.world.node("node-0"))["phase"] == "Acting"


def test_files_say_the_same_as_the_cluster(cluster: Live, tmp_path: Path) -> None:
    """The plan of a dump is that of the cluster; disruption budgets count, too."""
    add_workload(cluster.world, Workload("train", 3, max_unavailable=0))
    cluster.world.roll("2")
    cluster.world.tick(5)
    folder = cluster.dump(tmp_path / "dump")
    live_one = cluster.run("rollout", "plan", "--format", "json").json
    files = cluster.run("rollout", "plan", "--from", str(folder), "--format", "json", env={"KUBECONFIG": None}).json
    for key in ("order", "budgets", "waits", "underWay", "namespace"):
        assert files[key] == live_one[key], key
    assert files["notes"] == []


def test_files_that_lack_something(cluster: Live, tmp_path: Path) -> None:
    """What the answer is poorer for is told; without nodes or policies there is none."""
    ran = cluster.run("rollout", "status", "--from", str(cluster.dump(tmp_path / "a", "pods")))
    assert "note: the files hold no Pod, so nothing seems to run on the nodes (kubectl get pods" in ran.out
    ran = cluster.run("rollout", "status", "--from", str(cluster.dump(tmp_path / "b", "nodepolicies")))
    assert (ran.code, "the files hold no NodePolicy" in ran.err, "dist/CLUSTER/reconciler" in ran.err) == (
        4,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "a: [", "can't be read"),
        ("a.json", "{", "can't be read"),
        ("a.yaml", "kind: Node\napiVersion: v1\nmetadata: {}", "it has no metadata.name"),
        ("a.yaml", "kind: Node\napiVersion: v1\nmetadata: {name: a, labels: {x: 1}}", "Node a can't be read"),
        ("a.yaml", "kind: Node\napiVersion: v1\nmetadata: {name: a, labels: x}", "Node a can't be read"),
        ("a.yaml", "kind: Node\napiVersion: v1\nmetadata: {name: a}\nspec: {taints: 3}", "Node a can't be read"),
        ("a.yaml", "x: 1\n---\n- 1\n---\nkind: List\nitems: [3, null]", "the files hold no Node"),
    ],
)
def test_files_that_cannot_be_used(project: Project, name: str, text: str, said: str) -> None:
    """The file is named, and what to do."""
    path = project.write(name, text)
    ran = project.run("rollout", "plan", "--from", str(path))
    assert ran.code == 4
    assert said in ran.err
    assert "  do: " in ran.err


def test_an_installation_without_a_driver(project: Project) -> None:
    """A new node whose platform brings the driver is installed, and to nothing in particular."""
    labels = {"example.com/pool": "a", "feature.node.kubernetes.io/pci-10de.present": "true"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new", "labels": labels}}
    node["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    project.policy(
        "a",
        cluster={"kubernetesVersion": "1.34", "platform": "eks-al2023", "containerRuntime": "containerd"},
        reconciler={"image": "r.example/r:1"},
        nodePools=[{"name": "a", "nodeSelector": {"example.com/pool": "a"}}],
    )
    assert project.run("render").code == 0
    path = project.write("node.yaml", yaml.safe_dump(node))
    ran = project.run("rollout", "plan", "--from", str(path), "--from", str(project.folder / "dist/a/reconciler"))
    assert "1. new (a): install\n" in ran.out


def test_no_such_file(project: Project) -> None:
    """Nor is a file looked for in a cluster."""
    assert "there is no file or folder nothing" in project.run("rollout", "plan", "--from", "nothing").err
    ran = project.run("rollout", "plan", "--from", ".", "--context", "x")
    assert "--kubeconfig and --context have no effect" in ran.err


# --- status -----------------------------------------------------------------------------------------------------------


def test_every_waiting_node_says_why(project: Project) -> None:
    """All of them, and not the 20 that a NodePolicy's status names."""
    with live(project, nodes=25) as cluster:
        deployed(cluster.world)
        cluster.world.roll("2", upgrade={"windows": [{"start": "00:00", "hours": 1, "days": ["sun"]}]})
        cluster.world.tick(5)
        cluster.end()
        found = cluster.run("rollout", "status", "--format", "json").json
    (gpus,) = found["policies"]
    assert (gpus["nodes"], gpus["current"], len(gpus["waiting"])) == (25, 0, 25)
    assert {wait["reason"] for each in gpus["waiting"] for wait in each["waits"]} == {"window"}
    assert found["notes"] == ["no reconciler leads in namespace gpu-operator: nothing of this happens before one does"]


def quarantined(cluster: Live) -> None:
    """A rollout that ends in quarantine on the first node."""
    cluster.world.machines["node-0"].faults = {"driver"}
    cluster.world.roll("2", deadlines={"driver": 600}, upgrade={"maxAttempts": 1, "breakerFailures": 1})
    cluster.passes(60, 30)


def test_quarantine_says_what_to_do(cluster: Live) -> None:
    """The reason, the commands, and that the breaker is open."""
    quarantined(cluster)
    ran = cluster.run("rollout", "status")
    assert ran.code == 0, ran.err
    assert "gpus: 3 nodes: 0 as wanted, 0 worked on, 1 in quarantine\n" in ran.out
    assert "the breaker is open: node-0 failed, and 1 failed nodes stop the rollout\n" in ran.out
    assert "gpustack rollout reset-breaker gpus" in ran.out
    assert "  node-0: driver to driver " in ran.out
    assert "Quarantine (" in ran.out or "Quarantine since" in ran.out
    assert "do: gpustack rollout retry node-0 " in ran.out
    assert "  node-1, node-2: waits (breaker)" in ran.out


def test_lines_that_would_cover_a_node(cluster: Live, project: Project) -> None:
    """Of a node that no driver matches, and of one that no policy is for: what differs, and lines that a policy takes
    and that select it (reconciler.md A14)."""
    known = {f"{OS_RELEASE}ID": "ubuntu", f"{OS_RELEASE}VERSION_ID": "22.04"}
    cluster.world.set_policy(nodeSelector={"example.com/pool": "gpus", **known})
    labels = {f"{OS_RELEASE}ID": "ubuntu", f"{OS_RELEASE}VERSION_ID": "24.04"}
    cluster.world.label("node-1", labels)
    cluster.world.label("node-0", known)
    cluster.world.label("node-2", {"example.com/pool": "other"})
    found = cluster.run("rollout", "status", "--format", "json").json["notCovered"]
    (gap,) = [each for each in found if each["nodes"] == ["node-1"]]
    assert gap["lacks"] == [f"NodePolicy gpus is for nodes with {OS_RELEASE}VERSION_ID=22.04, and it has 24.04"]
    pools = yaml.safe_load("\n".join(gap["lines"]))
    path = project.policy("covers", **pools)
    spec = load(path, root=project.folder).spec
    have = cluster.world.labels("node-1")
    assert selection(spec, spec.nodePools[0]) == {key: have[key] for key in ("example.com/pool", *labels)}
    assert "nodePools:\n    - name: gpus-ubuntu24-04\n      os: ubuntu24.04\n" in cluster.run("rollout", "status").out


def test_a_driver_for_another_kernel(cluster: Live) -> None:
    """The missing key is named, and the kernel that a pool would have to say."""
    key = "feature.node.kubernetes.io/kernel-version.full"
    path = ("spec", "template", "spec", "nodeSelector")
    from gpustack.reconciler.shell.cluster import DAEMONSETS
    from tests.reconciler.world.stack import DRIVER

    patch: dict[str, Any] = {key: "6.8.0-50-generic"}
    for step in reversed(path):
        patch = {step: patch}
    cluster.world.server.edit(DAEMONSETS, DRIVER, patch, NAMESPACE)
    for name in ("node-0", "node-1"):
        cluster.world.label(name, {key: "6.8.0-50-generic"})
    cluster.world.label("node-2", {key: "6.8.0-51-generic", f"{OS_RELEASE}ID": "ubuntu"})
    (gap,) = cluster.run("rollout", "status", "--format", "json").json["notCovered"]
    assert gap["nodes"] == ["node-2"]
    assert gap["lacks"] == [f"DaemonSet {DRIVER} is for nodes with {key}=6.8.0-50-generic, and it has 6.8.0-51-generic"]
    assert "  kernel: 6.8.0-51-generic" in gap["lines"]


# --- pause, hold, retry, breaker --------------------------------------------------------------------------------------


def peoples_notes(cluster: Live) -> dict[str, str]:
    """The annotations of the Lease, without what the program keeps there."""
    found = cluster.world.server.read(LEASES, NAME, NAMESPACE).annotations
    return {key: text for key, text in found.items() if key not in {keys.LEDGER, keys.ADMITTING}}


def test_the_fleet_is_paused_and_goes_on(cluster: Live) -> None:
    """An annotation of the Lease, which says why; a second time nothing is written."""
    ran = cluster.run("rollout", "pause", "--reason", "freeze until Monday")
    assert ran.out == f"the fleet: paused: nothing more begins (Lease {NAMESPACE}/{NAME})\n"
    assert peoples_notes(cluster) == {keys.PAUSED: "freeze until Monday"}
    assert "the fleet is paused: freeze until Monday\n" in cluster.run("rollout", "status").out
    before = cluster.world.server.version
    assert "it was so already" in cluster.run("rollout", "pause", "--reason", "freeze until Monday").out
    assert cluster.world.server.version == before
    assert cluster.run("rollout", "pause", "gpus").code == 0
    assert cluster.run("rollout", "resume").out == (
        f"the fleet: no longer paused (Lease {NAMESPACE}/{NAME}); still paused on their own: gpus\n"
    )
    assert peoples_notes(cluster) == {}


def test_a_policy_is_paused_and_held(cluster: Live) -> None:
    """By its own name or that of one of its pools; programs get what changed as JSON."""
    cluster.world.set_policy(pools=["training"])
    made = cluster.run("rollout", "pause", "training", "--reason", "x", "--format", "json").json
    assert made["results"] == [
        {"object": "NodePolicy gpus", "changed": True, "what": "paused: nothing more begins", "before": {}}
    ]
    assert cluster.run("rollout", "hold", "--policy", "gpus", "--reason", "y").code == 0
    assert policy(cluster) == {keys.PAUSED: "x", keys.HOLD: "y"}
    assert cluster.run("rollout", "resume", "gpus").out == "NodePolicy gpus: no longer paused\n"
    assert cluster.run("rollout", "unhold", "--policy", "gpus").out == "NodePolicy gpus: no longer held\n"
    assert policy(cluster) == {}


def test_nodes_are_held(cluster: Live) -> None:
    """A label, which the program knows at once."""
    ran = cluster.run("rollout", "hold", "node-0", "node-1")
    said = "held: nothing begins there, and what has begun is given up unless it is past the point of no return"
    assert ran.out == f"node node-0: {said}\nnode node-1: {said}\n"
    cluster.world.roll("2")
    cluster.world.tick(5)
    found = cluster.run("rollout", "plan", "--format", "json").json
    assert [turn["node"] for turn in found["order"] if turn["begins"]] == ["node-2"]
    cluster.run("rollout", "unhold", "node-0")
    assert keys.HOLD not in cluster.world.labels("node-0")
    assert cluster.world.labels("node-1")[keys.HOLD] == "true"


def test_retry_and_the_breaker(cluster: Live) -> None:
    """A quarantined node is tried again, and the rollout goes on after somebody has looked."""
    quarantined(cluster)
    assert "breaker reset" in cluster.run("rollout", "reset-breaker", "gpus").out
    cluster.world.machines["node-0"].faults = set()
    assert "node node-0: is tried again" in cluster.run("rollout", "retry", "node-0").out
    cluster.passes(120, 15)
    assert {machine.loaded for machine in cluster.world.machines.values()} == {"digest-2"}
    assert not cluster.world.cordoned("node-0")
    ran = cluster.run("rollout", "reset-breaker", "gpus")
    assert (ran.code, ran.out) == (0, "NodePolicy gpus: its breaker is not open\n")


def test_nothing_to_retry(cluster: Live) -> None:
    """All or nothing, with the reason."""
    quarantined(cluster)
    before = cluster.world.server.version
    ran = cluster.run("rollout", "retry", "node-0", "node-1")
    assert (ran.code, "nothing failed on node node-1" in ran.err) == (4, True)
    assert "can be read" in cluster.run("rollout", "retry", "node-0", "--discard-record").err
    assert cluster.world.server.version == before


def test_a_record_that_cannot_be_read(cluster: Live) -> None:
    """Refused without the option, printed with it; the node is given back then (reconciler.md A16)."""
    cluster.world.roll("2")
    cluster.passes(3)
    (taken,) = [name for name in cluster.world.machines if cluster.world.cordoned(name)]
    record = json.dumps({**json.loads(cluster.world.annotations(taken)[keys.OPERATION]), "v": 99})
    cluster.world.annotate(taken, {keys.OPERATION: record})
    ran = cluster.run("rollout", "retry", taken)
    assert (ran.code, "--discard-record" in ran.err, "its format is 99" in ran.err) == (4, True, True)
    ran = cluster.run("rollout", "retry", taken, "--discard-record")
    assert ran.out.startswith(f"node {taken}: thrown away: {keys.OPERATION}; the reconciler uncordons the node now\n")
    assert f"{keys.OPERATION} was {record}" in ran.out
    cluster.world.set_policy(version="2", upgrade={"auto": False})
    cluster.replica.run()
    assert not cluster.world.cordoned(taken)


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hold", "nod-1"], "did you mean node-1"),
        (["retry", "node1"], "did you mean node-1"),
        (["hold", "node-1,metadata.name!=x"], "no node is called 'node-1,metadata"),
        (["hold", "*"], "no node is called '*'"),
        (["pause", "gpu"], "did you mean gpus"),
        (["reset-breaker", "x"], "there are gpus"),
        (["hold"], "name NODE... or --policy"),
        (["hold", "node-1", "--policy", "gpus"], "nodes and a policy are named"),
        (["hold", "node-1", "--reason", "x"], "no place for a reason"),
        (["status", "--context", "prd"], "did you mean prod"),
        (["pause", "--namespace", "other"], f"no Lease {NAME} in namespace other"),
        (["pause", "--from", "x"], "see gpustack rollout pause --help"),
        (["resum"], "invalid choice"),
        (["status", "-n", "a/../b"], "'a/../b' is not a namespace"),
        (["hold", ""], "it is empty: name one, or leave it out"),
    ],
)
def test_mistakes(cluster: Live, words: list[str], said: str) -> None:
    """Each is told with what may have been meant, and nothing is written."""
    ran = cluster.run("rollout", *words)
    assert ran.code == 4
    assert said in ran.err.replace("\n", " ")
    assert writes(cluster) == []


def test_no_cluster(project: Project, tmp_path: Path) -> None:
    """No file, a wrong one, one that leads nowhere: exit code 4 and what to do, as JSON too."""
    away = {"KUBECONFIG": None, "HOME": str(tmp_path)}
    assert "neither a node nor a policy is named" in project.run("rollout", "hold", env=away).err
    ran = project.run("rollout", "status", env=away)
    assert (ran.code, "no kubeconfig is named" in ran.err, "--kubeconfig" in ran.err) == (4, True, True)
    for text in ("a: [", "x", ""):
        path = project.write("broken", text)
        assert "is no kubeconfig" in project.run("rollout", "status", "--kubeconfig", str(path), env=away).err
    nowhere = kubeconfig(project.folder / "nowhere", "http://127.0.0.1:1")
    ran = project.run("rollout", "plan", "--kubeconfig", str(nowhere), "--format", "json", env=away)
    assert ran.code == 4
    assert [each["rule"] for each in ran.json["findings"]] == ["GPU931"]


def test_forbidden(cluster: Live) -> None:
    """What is not allowed is named."""
    cluster.cluster.denied = {("list", "nodes")}
    ran = cluster.run("rollout", "status")
    assert (ran.code, "GPU932: you may not do this" in ran.err, "--context" in ran.err) == (4, True, True)


def test_credentials_that_are_not_accepted(cluster: Live) -> None:
    """That is another matter than a right that lacks."""
    cluster.cluster.fault = fail(Forbidden("Unauthorized", 401), "before", lambda _: True)
    assert "the API server does not know you" in cluster.run("rollout", "status").err


def test_no_credentials(cluster: Live) -> None:
    """The user of the kubeconfig has none, which is no fault of the address; and none is printed."""
    user = 'users: [{name: u, user: {token: "s3cr3t\\nx"}}]\n'
    text = cluster.config.read_text().replace("cluster: k}", "cluster: k, user: u}")
    assert "user: u" in text
    cluster.config.write_text(text + user)
    ran = cluster.run("rollout", "status")
    assert (ran.code, "GPU932: there is nothing to log in with" in ran.err) == (4, True)
    assert "s3cr3t" not in ran.out + ran.err


def test_no_custom_resource_definition(cluster: Live) -> None:
    """The cluster has no reconciler at all."""
    missing = NotFound("the server could not find the requested resource", 404)
    cluster.cluster.fault = fail(missing, "before", lambda request: request.kind == "nodepolicies")
    for words in (["status"], ["pause", "gpus"], ["reset-breaker", "gpus"]):
        ran = cluster.run("rollout", *words)
        assert (ran.code, "CustomResourceDefinition is not there" in ran.err) == (4, True)


def test_a_node_that_was_replaced_meanwhile(cluster: Live) -> None:
    """A hold for one machine does not reach another of its name."""

    def fault(request: Any, when: str) -> None:
        if request.verb == "patch" and when == "before":
            cluster.world.server.remove(NODES, "node-0")
            cluster.world.server.put(NODES, {"metadata": {"name": "node-0"}, "spec": {}, "status": {}})

    cluster.cluster.fault = fault
    ran = cluster.run("rollout", "hold", "node-0")
    assert (ran.code, "GPU933" in ran.err) == (4, True)


def test_the_budget_report_asks_every_node(cluster: Live) -> None:
    """Though nothing is due: whose budget refuses, who takes long to end, and how many nodes are free of both; nothing
    is written."""
    add_workload(cluster.world, Workload("train", 0))
    for pod in list(cluster.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            cluster.world.server.remove(PODS, pod["metadata"]["name"], "work")
    for node, workload in (
        ("node-0", Workload("strict", 1, max_unavailable=0)),
        ("node-1", Workload("slow", 1, grace=7200)),
    ):
        add_workload(cluster.world, workload)
        start(cluster.world, workload, node)
    cluster.world.tick(5)
    before = cluster.world.server.version
    found = cluster.run("rollout", "plan", "--budget-report", "--format", "json").json
    assert cluster.world.server.version == before
    nodes = {each["node"]: each for each in found["nodes"]}
    assert "The disruption budget strict needs 1 healthy pods" in nodes["node-0"]["blockers"][0]
    assert [each["seconds"] for each in nodes["node-1"]["slow"]] == [7200]
    assert (nodes["node-1"]["blockers"], nodes["node-2"]["evicts"]) == ([], [])
    text = cluster.run("rollout", "plan", "--budget-report").out
    assert "can't be emptied\n  node-0: work/strict-" in text
    assert "pods that may take more than 300 s to end\n  work/slow-" in text
    assert "waited for until" not in text
    assert "2 nodes of 3: nothing stands against emptying them now" in text
    assert text.endswith("nothing was changed\n")


def test_the_budget_report_tells_all_of_a_pod(cluster: Live) -> None:
    """Whoever clears pods away wants to know everything at once: that nothing makes it anew, that it has data, and that
    no window is long enough for it; each by the field of the policy that would let it go. One that a rule says to wait
    for is told as waited for, and nothing stands against it: nobody evicts it."""
    for pod in list(cluster.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            cluster.world.server.remove(PODS, pod["metadata"]["name"], "work")
    bare, job = Workload("bare", 1, grace=7200, owned=False), Workload("job", 1, owned=False, labels={"kind": "job"})
    name, awaited = (
        start(cluster.world, workload, node)["metadata"]["name"]
        for workload, node in ((bare, "node-0"), (job, "node-1"))
    )
    cluster.world.server.edit(PODS, name, {"spec": {"volumes": [{"name": "cache", "emptyDir": {}}]}}, "work")
    window = {"start": "00:00", "hours": 1, "days": ["sun"]}
    rules = [{"podSelector": "kind=job", "then": "wait"}]
    report = ("rollout", "plan", "--budget-report")

    def nodes(**upgrade: Any) -> dict[str, Any]:
        cluster.world.set_policy(upgrade={"windows": [window], "podRules": rules, **upgrade})
        return {each["node"]: each for each in cluster.run(*report, "--format", "json").json["nodes"]}

    found = nodes()
    field = "delete it, or set spec.driver.upgradePolicy.podDeletion"
    assert found["node-0"]["blockers"] == [
        f"work/{name} has no controller and would not come back: {field}.force",
        f"work/{name} has data in an emptyDir: {field}.deleteEmptyDir",
        f"work/{name} may take 7200 s to end, and the longest window lasts 1 h: a node that it is on is never begun",
    ]
    assert (found["node-1"]["waitsFor"], found["node-1"]["evicts"]) == ([f"work/{awaited}"], [])
    assert found["node-1"]["blockers"] == []
    text = cluster.run(*report).out
    assert f"waited for until they have ended\n  work/{awaited} on node-1\n" in text
    assert "1 node of 3: nothing stands against emptying them now" in text
    (data,) = nodes(windows=[{**window, "hours": 2}], podDeletion={"force": True})["node-0"]["blockers"]
    assert data.endswith("podDeletion.deleteEmptyDir")
    assert ".drain.force" in nodes(drain={"enable": True, "deleteEmptyDir": True})["node-0"]["blockers"][0]
