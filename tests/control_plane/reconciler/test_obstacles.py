"""Nodes on which something is in the way, and nodes that somebody else lays hands on: each stands for itself."""

from __future__ import annotations

import time
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.actors.surroundings import cordon
from tests.control_plane.api import Api, ApiError
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import budget
from tests.control_plane.reconciler.stack import ACCOUNT, NS, Stack
from tests.control_plane.reconciler.witness import Witness

OTHER = {"key": "example.com/other", "effect": "NoSchedule"}


def test_each_node_waits_for_its_own_reason(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """T9 to T11, A12: a budget without allowance, two budgets on a pod, somebody's cordon, a node that is down, a hold
    and a foreign taint each keep their own node, which is not touched, and no other; the status counts them by reason,
    and `--plan` names the budget. What was in the way gone, each goes on; somebody's cordon stays to the end.
    """
    stack.start()
    nodes = stack.add(7, "free")
    tight, double, cordoned, down, held, tainted, plain = nodes
    stack.all_done(*nodes)
    stack.gpu_pod(tight, "tight", labels={"app": "tight"})
    stack.gpu_pod(double, "double", labels={"app": "double"})
    for name, of in (("tight", "tight"), ("first", "double"), ("second", "double")):
        stack.api.create(budget(name, "default", {"app": of}, 1))
    cordon(stack.api, cordoned)
    stack.kubelets.down(down)
    stack.api.patch("Node", held.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.api.patch("Node", tainted.name, {"spec": {"taints": [OTHER]}})
    witness.sights.clear()
    stack.apply(upgraded)
    wait_for(lambda: stack.done(plain), "the node with nothing in its way is done", every=0.2)
    for reason, expected in (
        ("blocked", [tight, double]),
        ("cordoned", [cordoned]),
        ("not-ready", [down]),
        ("hold", [held]),
        ("taint", [tainted]),
    ):
        assert stack.wait_reason("free", reason)["nodes"] == sorted(one.name for one in expected)
    assert all(witness.phases(one.name) in ([], [""]) for one in nodes if one is not plain)
    plan = stack.start("plan", "--plan", "--identity", "plan")
    wait_for(lambda: not plan.running, "the plan is printed")
    assert (
        f"node {tight.name}: waits (blocked): default/tight: The disruption budget tight needs 1"
        in plan.log.read_text()
    )
    _clear(stack, tight, cordoned, down, held, tainted)
    stack.all_done(*(one for one in nodes if one is not cordoned))


def _clear(stack: Stack, tight: Machine, cordoned: Machine, down: Machine, held: Machine, tainted: Machine) -> None:
    """Take away what is in the way."""
    for name in ("tight", "second"):
        stack.api.delete("PodDisruptionBudget", name, "default")
    stack.api.patch("PodDisruptionBudget", "first", {"spec": {"minAvailable": 0}}, "default")
    stack.kubelets.up(down)
    stack.api.patch("Node", held.name, {"metadata": {"labels": {keys.HOLD: None}}})
    wait_for(lambda: stack.node(cordoned)["spec"].get("unschedulable"), "somebody's cordon is still there")
    assert stack.node(tainted)["spec"]["taints"] == [OTHER]
    stack.api.patch("Node", tainted.name, {"spec": {"taints": None}})


def test_others_interfere(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """T10, T11, T16: while a node is emptied somebody uncordons it (it is cordoned again, and looked at anew), holds it
    (it is given back, and taken later), takes it down (it waits), or deletes and creates it again under its name (it
    is a new node, without a past): each ends with the new driver.
    """
    stack.start()
    nodes = stack.add(4, "free")
    uncordoned, held, down, again = nodes
    stack.all_done(*nodes)
    jobs = {machine.name: stack.gpu_pod(machine, ends_in=600)["metadata"]["name"] for machine in nodes}
    witness.sights.clear()
    stack.apply(upgraded)
    for machine in nodes:
        stack.reaches(machine, "Evicting")
    cordon(stack.api, uncordoned, yes=False)
    stack.api.patch("Node", held.name, {"metadata": {"labels": {keys.HOLD: "true"}}})
    stack.kubelets.down(down)
    stack.kubelets.remove(again)
    stack.api.delete("Pod", jobs[again.name], "default", grace=0)
    stack.kubelets.add(fresh := Machine(again.name, labels=again.labels))
    wait_for(lambda: stack.last(held).get("outcome") == "released", "the held node is given back")
    assert not stack.node(held)["spec"].get("unschedulable")
    wait_for(lambda: stack.operation(uncordoned).get("recordons") == 1, "it is cordoned again")
    for machine in (uncordoned, held):
        stack.api.delete("Pod", jobs[machine.name], "default", grace=0)
    stack.api.patch("Node", held.name, {"metadata": {"labels": {keys.HOLD: None}}})
    stack.all_done(uncordoned, held, fresh, seconds=45)
    assert witness.phases(uncordoned.name).count("Held") == 2
    assert stack.last(fresh)["kind"] == "install"
    assert stack.phase(down) == "Evicting"
    stack.kubelets.up(down)
    stack.api.delete("Pod", jobs[down.name], "default", grace=0)
    stack.all_done(down)
    assert witness.torn() == []


def test_outage_of_node_feature_discovery(stack: Stack, witness: Witness) -> None:
    """T4, T15, T16: node feature discovery takes its labels from all nodes for longer than the grace, and gives them
    back: no label for operands changes and no driver pod ends; values that others wrote stay byte for byte; a
    component that a node opts out of goes when no pod uses its GPUs.
    """
    stack.start()
    nodes = stack.add(3, "free")
    stack.all_done(*nodes)
    first, second, _ = nodes
    foreign = {f"{keys.DEPLOY}dcgm": "false", f"{keys.DEPLOY}client": "paused-by-somebody"}
    stack.api.patch("Node", first.name, {"metadata": {"labels": foreign}})
    job = stack.gpu_pod(second)
    stack.api.patch("Node", second.name, {"metadata": {"annotations": {keys.OPT_OUT: "dcgm-exporter"}}})
    stack.wait_reason("free", "gpu-pods")
    before = {one.name: _deploys(stack.labels(one)) for one in nodes}
    drivers = {one["metadata"]["uid"] for one in stack.api.list("Pod", NS, labels="app=nvidia-driver-daemonset")}
    witness.sights.clear()
    lost = {key: None for key in stack.labels(first) if key.startswith("feature.node.kubernetes.io/")}
    kept = {key: stack.labels(first)[key] for key in lost}
    for machine in nodes:
        stack.api.patch("Node", machine.name, {"metadata": {"labels": lost}})
    wait_for(lambda: not stack.policy("free")["status"].get("nodes"), "the program has seen it")
    time.sleep(5)  # longer than the grace: that nothing happens can't be waited for
    for machine in nodes:
        stack.api.patch("Node", machine.name, {"metadata": {"labels": kept}})
    wait_for(lambda: stack.policy("free")["status"].get("nodes") == 3, "the program sees them again")
    assert all(_deploys(one.labels) == before[one.node] for one in witness.sights if one.labels)
    assert drivers == {
        one["metadata"]["uid"] for one in stack.api.list("Pod", NS, labels="app=nvidia-driver-daemonset")
    }
    stack.api.delete("Pod", job["metadata"]["name"], "default", grace=0)
    stack.api.patch("Node", second.name, {"metadata": {"annotations": {"example.com/touched": "yes"}}})
    wait_for(lambda: f"{keys.DEPLOY}dcgm-exporter" not in stack.labels(second), "the component is gone", 90)


def _deploys(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key.startswith((keys.DEPLOY, keys.PRESENT))}


def test_a_node_that_a_policy_pins(stack: Stack, upgraded: Path) -> None:
    """An admission policy of somebody's refuses each change of one node to the program: all others are rolled, the
    node waits with the words of the policy in status and Event, and is rolled once it may be changed.
    """
    stack.start()
    nodes = stack.add(3, "free")
    pinned, *others = nodes
    stack.all_done(*nodes)
    account = f"system:serviceaccount:{NS}:{ACCOUNT}"
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
            ]
        },
        "matchConditions": [{"name": "program", "expression": f"request.userInfo.username == '{account}'"}],
        "validations": [{"expression": f"object.metadata.name != '{pinned.name}'", "message": "it is pinned"}],
    }
    kind = "admissionregistration.k8s.io/v1"
    head = {"apiVersion": kind, "metadata": {"name": "pinned"}}
    stack.api.create({**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    binding = {"policyName": "pinned", "validationActions": ["Deny"]}
    stack.api.create({**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding})
    try:
        program = stack.api.as_user(stack.api.token_for(ACCOUNT, NS))
        wait_for(lambda: refused(program, pinned.name), "the policy is in force", 60)
        stack.apply(upgraded)
        stack.all_done(*others)
        found = stack.wait_reason("free", "refused")
        assert found["nodes"] == [pinned.name]
        assert "it is pinned" in found["message"]
        told = [one for one in stack.api.list("events.k8s.io/v1/Event", "default") if one["reason"] == "ChangeRefused"]
        assert pinned.name in {one["regarding"]["name"] for one in told}
        assert not stack.node(pinned)["spec"].get("unschedulable")
    finally:
        for one in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            stack.api.delete(f"{kind}/{one}", "pinned")
    stack.all_done(*nodes)


def refused(program: Api, node: str) -> bool:
    """Whether the program may not change a node."""
    try:
        program.patch("Node", node, {"metadata": {"annotations": {f"{keys.DOMAIN}/tried": "yes"}}})
    except ApiError as error:
        return error.status in {403, 422}
    return False
