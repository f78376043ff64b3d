"""What the program may do: exactly what is rendered, and of a Node only what is its own."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpustack.api import keys
from gpustack.reconciler.shell.lease import NAME as LEASE
from tests.control_plane.api import Api, ApiError, Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.objects import pod
from tests.control_plane.reconciler.stack import ACCOUNT, NS, Stack, render

STARTING = {"key": "example.com/starting", "effect": "NoSchedule"}
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture
def account(stack: Stack) -> Api:
    """The API server, as the program."""
    return stack.api.as_user(stack.api.token_for(ACCOUNT, NS))


@pytest.fixture
def node(stack: Stack) -> str:
    """A node with a GPU."""
    (machine,) = stack.add(1, "free", taints=[STARTING])
    wait_for(lambda: stack.node(machine)["spec"]["taints"] == [STARTING], "Kubernetes has taken its own taint away")
    return machine.name


def without(role: Body, resource: str, verb: str) -> Iterator[Body]:
    """The rules of a role, less one verb on one resource."""
    for rule in role["rules"]:
        verbs = [one for one in rule["verbs"] if one != verb or resource not in rule["resources"]]
        if verbs:
            yield {**rule, "verbs": verbs}


def test_missing_right_stops_the_program(stack: Stack) -> None:
    """T20: an account that lacks a verb in the cluster and one in the namespace: the program does not start, and
    names both. With the rendered rights it lacks nothing: every other test runs it with those.
    """
    api, name = stack.api, "reduced"
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NS}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NS}
    for kind, space, resource, verb in (("ClusterRole", "", "nodes", "patch"), ("Role", NS, "pods", "delete")):
        rules = list(without(api.get(kind, ACCOUNT, space), resource, verb))
        meta = {"name": name, **({"namespace": space} if space else {})}
        api.create({"apiVersion": RBAC, "kind": kind, "metadata": meta, "rules": rules})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        api.create(
            {"apiVersion": RBAC, "kind": f"{kind}Binding", "metadata": meta, "subjects": [subject], "roleRef": ref}
        )
    program = stack.start("reduced", kubeconfig=stack.plane.account(name, NS))
    wait_for(lambda: not program.running, "the program has ended")
    assert program.process.returncode == 1
    (line,) = [one for one in stack.log(program) if one["level"] == "error"]
    # Nobody gave it the Role in `default` either, by which Events are written.
    lacks = f"patch nodes; delete pods in {NS}; create events.events.k8s.io in default"
    assert line["error"] == f"the ServiceAccount may not: {lacks}"


def allowed(name: str) -> Iterator[Body]:
    """Changes of a node that the program makes."""
    yield {"metadata": {"labels": {keys.PRESENT: "true", f"{keys.DEPLOY}driver": "true", keys.PHASE: "Held"}}}
    yield {
        "metadata": {"annotations": {keys.OPERATION: "{}", keys.UPGRADES_ENABLED: "true", keys.DO_NOT_DISRUPT: "true"}}
    }
    yield {"metadata": {"labels": {keys.MIG_CONFIG: "some", keys.MIG_STATE: None, keys.UPGRADE_STATE: None}}}
    # The startup taint, before a cordon: its taint is the node controller's, which nobody may take along.
    yield {"spec": {"taints": []}}
    yield {"spec": {"unschedulable": True}}
    yield {"spec": {"unschedulable": False}}


def refused(name: str) -> Iterator[Body]:
    """Changes of a node that are none of its business."""
    yield {"metadata": {"labels": {"example.com/pool": "another"}}}
    yield {"metadata": {"labels": {"kubernetes.io/hostname": None}}}
    yield {"metadata": {"labels": {"nvidia.com/gpu.product": "another"}}}
    yield {"metadata": {"annotations": {"example.com/note": "x"}}}
    yield {"metadata": {"finalizers": ["example.com/x"]}}
    yield {"spec": {"taints": [{"key": "example.com/more", "effect": "NoExecute"}]}}
    yield {"spec": {"providerID": "cloud://x"}}


def test_only_its_own_fields_of_a_node(stack: Stack, account: Api, node: str) -> None:
    """A19: the admission policy lets all through that the program writes, and nothing else; other users are not held
    to it, and neither is it a way to touch a node without a GPU, or to delete one.
    """
    wait_for(lambda: is_refused(account, node, {"metadata": {"annotations": {"example.com/note": "x"}}}), "it works")
    for change in refused(node):
        assert is_refused(account, node, change), change
    for change in allowed(node):
        account.patch("Node", node, change)
    stack.api.patch("Node", node, {"metadata": {"labels": {"example.com/more": "x"}}})
    stack.kubelets.add(plain := Machine("no-gpu", nfd=False))
    assert is_refused(account, plain.name, {"spec": {"unschedulable": True}})
    with pytest.raises(ApiError, match="403"):
        account.delete("Node", node)


def is_refused(account: Api, node: str, change: Body) -> bool:
    """Whether the admission policy refuses a change, as such."""
    try:
        account.patch("Node", node, change, dryRun="All")
    except ApiError as error:
        return error.status == 422 and "gpustack-reconciler-nodes" in error.message
    return False


def test_lease_goes_first(stack: Stack, account: Api) -> None:
    """A18: requests for the program's Lease belong to the rendered FlowSchema, whose priority is that of leaders; all
    its other requests do not.
    """
    schema = "flowcontrol.apiserver.k8s.io/v1/FlowSchema"
    ours = stack.api.get(schema, f"{ACCOUNT}-lease")["metadata"]["uid"]
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases/{LEASE}"
    wait_for(lambda: flow_schema(account, lease) == ours, "the API server knows the schema")
    assert flow_schema(account, "/api/v1/nodes?limit=1") not in {"", ours}


def flow_schema(api: Api, path: str) -> str:
    """The UID of the FlowSchema that a request fell under."""
    connection = api.connect()
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {api.token}"})
        answer: http.client.HTTPResponse = connection.getresponse()
        answer.read()
        return answer.getheader("X-Kubernetes-PF-FlowSchema-UID") or ""
    finally:
        connection.close()


def test_the_file_of_the_mig_managers(stack: Stack, account: Api) -> None:
    """The program writes one ConfigMap, by name; it takes no mark off it, and writes no other."""
    wait_for(lambda: stack.api.find("ConfigMap", keys.LAYOUTS, NS), "the ConfigMap is there")
    account.patch("ConfigMap", keys.LAYOUTS, {"metadata": {"annotations": {keys.LAYOUTS_AT: "now"}}}, NS)
    with pytest.raises(ApiError) as error:
        account.patch("ConfigMap", keys.LAYOUTS, {"metadata": {"labels": {"gpustack.dev/guarded": None}}}, NS)
    assert "gpustack-configmaps" in error.value.message
    with pytest.raises(ApiError) as error:
        account.patch("ConfigMap", "nvidia-mig-manager-entrypoint", {"data": {"entrypoint.sh": "id"}}, NS)
    assert error.value.status == 403
    with pytest.raises(ApiError) as error:
        account.delete("ConfigMap", keys.LAYOUTS, NS)
    assert error.value.status == 403


def test_it_deletes_what_the_policy_names(stack: Stack, account: Api, node: str, tmp_path: Path) -> None:
    """A rule that says `delete` gives the right, and the API server holds it to pods of that rule: by labels, and for
    budgets that are ignored by what they ask for: a RuntimeClass that isn't the stack's is no GPU."""
    with pytest.raises(ApiError) as error:
        account.delete("Pod", "none", "default")
    assert error.value.status == 403
    rules = [{"labels": {"app": "job"}, "namespace": "default", "then": "delete"}]
    stack.apply(render(tmp_path / "rules", {"reconciler": {"podRules": rules}}))
    for name, labels in (("job", {"app": "job"}), ("web", {"app": "web"})):
        stack.api.create(pod(name, "default", labels=labels, nodeName=node))
    wait_for(lambda: denied_by(account, "web") == "gpustack-reconciler-pods", "the policy is in force")
    account.delete("Pod", "job", "default", grace=0)
    stack.apply(render(tmp_path / "ignoring", {"reconciler": {"ignoreBudgetsAfterSeconds": 60}}))
    stack.api.create(pod("gpu", "default", gpus=1, nodeName=node))
    wait_for(lambda: denied_by(account, "gpu") == "", "the policy has changed")
    account.delete("Pod", "gpu", "default", grace=0)
    assert denied_by(account, "web") == "gpustack-reconciler-pods"
    for runtime in ("nvidia", "sandboxed"):
        if not stack.api.find("node.k8s.io/v1/RuntimeClass", runtime):
            meta = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": runtime}}
            stack.api.create({**meta, "handler": runtime})
        stack.api.create(pod(runtime, "default", runtimeClassName=runtime, nodeName=node))
    assert [denied_by(account, runtime) for runtime in ("nvidia", "sandboxed")] == ["", "gpustack-reconciler-pods"]


def denied_by(account: Api, name: str) -> str:
    """The policy that denies the deletion of a pod; "" where nothing does."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    try:
        account.request("DELETE", account.path("Pod", name, "default"), options)
    except ApiError as error:
        return "gpustack-reconciler-pods" if "gpustack-reconciler-pods" in error.message else ""
    return ""
