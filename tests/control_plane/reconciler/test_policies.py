"""NodePolicies that overlap, select nobody, vanish or do not fit, and what people write beside what is rendered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpustack.api import keys
from tests.control_plane.api import ApiError, Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.reconciler.stack import DRIVER, NS, Stack
from tests.control_plane.reconciler.witness import Witness

NODE_POLICY = "gpustack.dev/v1alpha1/NodePolicy"
TWIN = "example.com/twin"


def deploys(stack: Stack, node: str) -> dict[str, str]:
    """The labels of a node that let components run."""
    labels = stack.api.get("Node", node)["metadata"]["labels"]
    return {key: value for key, value in labels.items() if key.startswith((keys.DEPLOY, keys.PRESENT))}


def another(stack: Stack, name: str, **spec: object) -> Body:
    """The NodePolicy `free` again, under another name and with SPEC over it."""
    body = stack.policy("free")
    return {
        **{key: body[key] for key in ("apiVersion", "kind")},
        "metadata": {"name": name},
        "spec": {**body["spec"], **spec},
    }


def test_nodes_of_several_policies_and_of_none(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """A2, A3, A7, A14: a node that two policies match keeps its labels as they are, nothing begins on it, and both
    policies are Stalled; one that none matches gets no label, and `rollout status` prints what would cover it. Others
    roll meanwhile. Once the overlap is gone the node's turn comes, and the policy is Ready. A policy that selects by
    labels of NVIDIA's is refused.
    """
    with pytest.raises(ApiError, match=r"none of nvidia\.com/"):
        stack.api.create(another(stack, "cyclic", nodeSelector={keys.PRESENT: "true"}))
    stack.start()
    shared, plain = nodes = stack.add(2, "free")
    (stray,) = stack.add(1, "free", os=("ubuntu", "24.04"))
    stack.all_done(*nodes)
    stack.api.create(another(stack, "twin", nodeSelector={TWIN: "yes"}, components=["driver"]))
    stack.api.patch("Node", shared.name, {"metadata": {"labels": {TWIN: "yes", f"{keys.DEPLOY}dcgm": None}}})
    wait_for(lambda: stack.condition("twin", "Stalled").get("status") == "True", "the second policy is Stalled")
    wait_for(lambda: stack.condition("free", "Ready").get("status") == "False", "the first is not Ready")
    assert shared.name in stack.condition("free", "Stalled")["message"]
    frozen = deploys(stack, shared.name)
    stack.gpu_pod(shared, labels={"app": "long"})
    stack.shorten = {"upgrade": {"waitForCompletion": {"podSelector": "app=long"}}}
    witness.sights.clear()
    stack.apply(upgraded)
    stack.all_done(plain)
    assert deploys(stack, shared.name) == frozen
    assert f"{keys.DEPLOY}dcgm" not in frozen
    assert witness.phases(shared.name) in ([], [""])
    assert deploys(stack, stray.name) == {}
    said = stack.cli("status").stdout
    assert stray.name in said
    assert "os: ubuntu24.04" in said
    stack.api.patch("Node", shared.name, {"metadata": {"labels": {TWIN: None}}})
    stack.reaches(shared, "Held")
    assert deploys(stack, shared.name)[f"{keys.DEPLOY}dcgm"] == "true"
    wait_for(lambda: stack.condition("free", "Ready").get("status") == "True", "the first is Ready again")
    assert stack.condition("free", "RolledOut")["status"] == "False"


def test_policy_that_vanishes(stack: Stack, upgraded: Path) -> None:
    """A2: a NodePolicy is deleted in the middle of a rollout: what is being emptied is given back, what is past that
    finishes by what stands on the node, and no label and no driver of an idle node goes. Made anew, it rolls on.
    """
    stack.start()
    nodes = stack.add(3, "free")
    idle, emptied, acting = nodes
    stack.all_done(*nodes)
    before = {one.name: deploys(stack, one.name) for one in nodes}
    stack.api.patch("Node", idle.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.gpu_pod(emptied, ends_in=600)
    stack.kubelets.change(acting, driver_never_ready=True)
    stack.apply(upgraded)
    stack.reaches(emptied, "Evicting")
    stack.reaches(acting, "Acting")
    driver = stack.driver_hash(idle)
    stack.api.delete(NODE_POLICY, "free")
    wait_for(lambda: not stack.operation(emptied), "the emptied node is given back")
    assert "no longer belongs to the policy" in stack.last(emptied)["reason"]
    assert not stack.node(emptied)["spec"].get("unschedulable")
    stack.kubelets.change(acting, driver_never_ready=False)
    stack.all_done(acting)
    assert all(before[one.name].items() <= deploys(stack, one.name).items() for one in nodes)
    assert stack.driver_hash(idle) == driver
    stack.apply(upgraded)
    stack.api.patch("Node", idle.name, {"metadata": {"labels": {keys.HOLD: None}}})
    stack.all_done(idle)
    uid = stack.policy("free")["metadata"]["uid"]
    wait_for(lambda: json.loads(stack.annotations(acting)[keys.MEMORY])["policy"] == uid, "the node is a member anew")


def test_driver_that_covers_no_node(stack: Stack, witness: Witness) -> None:
    """A14, T4: the nodeSelector of the driver's DaemonSet changes, which removes its pods although it says OnDelete:
    the policy says NodeNotCovered and how many nodes, and the program does nothing to them. Back, it covers them.
    """
    stack.start()
    nodes = stack.add(2, "free")
    stack.all_done(*nodes)
    before = {one.name: deploys(stack, one.name) for one in nodes}
    witness.sights.clear()
    wrong = {"spec": {"template": {"spec": {"nodeSelector": {"example.com/kernel": "another"}}}}}
    stack.api.patch("DaemonSet", DRIVER, wrong, NS)
    wait_for(lambda: not stack.api.list("Pod", NS, labels=f"app={DRIVER}"), "the driver's pods are gone")
    wait_for(lambda: stack.condition("free", "NodeNotCovered").get("status") == "True", "the policy says so")
    assert stack.condition("free", "NodeNotCovered")["message"].startswith("2 nodes")
    assert stack.wait_reason("free", "not-covered")["count"] == 2
    right = {"spec": {"template": {"spec": {"nodeSelector": {"example.com/kernel": None}}}}}
    stack.api.patch("DaemonSet", DRIVER, right, NS)
    wait_for(lambda: all(stack.driver_hash(one) for one in nodes), "the driver's pods are back")
    wait_for(lambda: stack.condition("free", "NodeNotCovered").get("status") == "False", "the policy says so")
    assert {one.name: deploys(stack, one.name) for one in nodes} == before
    assert all(not sight.cordoned and sight.phase == "" for sight in witness.sights)


def test_pauses_outlive_a_sync(stack: Stack, rendered: Path, upgraded: Path) -> None:
    """A15, A7: `rollout pause` of a NodePolicy and of the fleet begin nothing, and stay when everything is applied
    again; the policy stays Ready and says why it is not rolled out. Resumed, it begins.
    """
    stack.start()
    (machine,) = nodes = stack.add(1, "free")
    stack.all_done(*nodes)
    assert stack.cli("pause", "free", "--reason", "ask Ada").returncode == 0
    assert stack.cli("pause", "--reason", "ask Bob").returncode == 0
    stack.apply(upgraded)
    stack.apply(rendered)
    stack.apply(upgraded)
    wait_for(lambda: "ask Bob" in stack.reason("free", machine), "the fleet is paused")
    assert stack.cli("resume").returncode == 0
    wait_for(lambda: "ask Ada" in stack.reason("free", machine), "the policy is paused")
    assert stack.phase(machine) == ""
    assert stack.condition("free", "Ready")["status"] == "True"
    assert (stack.condition("free", "RolledOut")["status"], stack.condition("free", "RolledOut")["reason"]) == (
        "False",
        "Paused",
    )
    assert stack.cli("resume", "free").returncode == 0
    wait_for(lambda: stack.phase(machine) or stack.last(machine)["kind"] == "driver", "it has begun, or is done")


def test_records_of_another_version(stack: Stack, upgraded: Path) -> None:
    """A16: on a node whose record can't be read nothing is done, and the others roll; `rollout retry` refuses it, and
    with --discard-record it rolls. A field that this version does not know stays in the record.
    """
    stack.start()
    unread, newer = nodes = stack.add(2, "free")
    stack.all_done(*nodes)
    stack.shorten = {"upgrade": {"waitForCompletion": {"podSelector": "app=long"}}}
    job = stack.gpu_pod(newer, labels={"app": "long"}, ends_in=600)
    record = json.dumps({"v": 99, "id": "x", "acts": ["driver"], "phase": "Acting"})
    stack.api.patch("Node", unread.name, {"metadata": {"annotations": {keys.OPERATION: record}}})
    assert stack.wait_reason("free", "unreadable")["nodes"] == [unread.name]
    version = stack.node(unread)["metadata"]["resourceVersion"]
    stack.apply(upgraded)
    stack.reaches(newer, "Held")
    known = {**stack.operation(newer), "novel": {"from": "tomorrow"}}
    stack.api.patch("Node", newer.name, {"metadata": {"annotations": {keys.OPERATION: json.dumps(known)}}})
    stack.api.patch("Pod", job["metadata"]["name"], {"metadata": {"labels": {"app": "short"}}}, "default")
    stack.reaches(newer, "Evicting")
    assert stack.operation(newer)["novel"] == {"from": "tomorrow"}
    stack.api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    stack.all_done(newer)
    assert stack.node(unread)["metadata"]["resourceVersion"] == version
    refused = stack.cli("retry", unread.name)
    assert refused.returncode != 0
    assert "--discard-record" in refused.stderr + refused.stdout
    discarded = stack.cli("retry", unread.name, "--discard-record")
    assert (discarded.returncode, record in discarded.stdout + discarded.stderr) == (0, True)
    stack.all_done(unread)
