"""The ValidatingAdmissionPolicies that are rendered allow and deny what they say, to tokens as kubelets get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.control_plane.api import Api, ApiError, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.machine import PCI_LABEL
from tests.control_plane.manifests import DIST, apply_cluster
from tests.control_plane.objects import pod

NS = "gpu-operator"
NFD_WORKER = "gpu-operator-node-feature-discovery-worker"
GFD = "nvidia-gpu-feature-discovery"
DRA = "nvidia-dra-driver-kubeletplugin"
NODE_FEATURE = "nfd.k8s-sigs.io/v1alpha1/NodeFeature"
NODE_NAME = "nfd.node.kubernetes.io/node-name"
RECONCILER = "gpustack-reconciler"
POLICIES = ("gpustack-nodefeatures-of-own-node", "resourceslices-policy-nvidia-dra-driver", "gpustack-reconciler-nodes")
FOREIGN_TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane with dist/dra-gb200 and the device plugin's stack of dist/lab-a100; two nodes, no kubelets."""
    with ControlPlane(tmp_path_factory.mktemp("admission"), emulated=emulated) as plane:
        for cluster in ("dra-gb200", "lab-a100"):  # the last one's guards stay: GFD is of the device plugin's stack
            apply_cluster(plane.admin, DIST / cluster)
        for name in ("here", "there"):
            plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        gpu = {"name": "gpu", "labels": {PCI_LABEL: "true", "example.com/team": "a"}}
        plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": gpu, "spec": {"taints": [FOREIGN_TAINT]}})
        wait_for(lambda: is_enforced(plane), "the policies are enforced")
        yield plane


def is_enforced(plane: ControlPlane) -> bool:
    """A policy takes effect some time after it is created: when what it denies is denied."""
    if any(type_checked(plane.admin, name) is None for name in POLICIES):
        return False
    probes: tuple[Callable[[], object], ...] = (
        lambda: as_pod(plane, GFD, "here").create(feature("probe", "there"), dryRun="All"),
        lambda: as_pod(plane, DRA, "here").create(resource_slice("probe", "there"), dryRun="All"),
        lambda: without_pod(plane, RECONCILER).patch("Node", "here", {"spec": {"unschedulable": True}}, dryRun="All"),
    )
    for probe in probes:
        try:
            probe()
        except ApiError as error:
            if error.reason == "Invalid" and "ValidatingAdmissionPolicy" in error.message:
                continue
            raise
        return False
    return True


def type_checked(api: Api, name: str) -> list[Body] | None:
    """What the API server's type checker has against a policy; None while it has not looked."""
    policy = api.get("ValidatingAdmissionPolicy", name)
    status = policy.get("status", {})
    if status.get("observedGeneration") != policy["metadata"]["generation"]:
        return None
    warnings: list[Body] = status.get("typeChecking", {}).get("expressionWarnings", [])
    return warnings


def as_pod(plane: ControlPlane, account: str, node: str) -> Api:
    """The API server, as a pod of a ServiceAccount on a node."""
    name = f"{account[-30:]}-{node}".strip("-")
    found = plane.admin.find("Pod", name, NS)
    if found is None:
        found = plane.admin.create(pod(name, NS, nodeName=node, serviceAccountName=account))
    return plane.admin.as_user(plane.admin.token_for(account, NS, pod=found))


def without_pod(plane: ControlPlane, account: str) -> Api:
    """The API server, as a ServiceAccount by a token that is bound to no pod: somebody took it, or it is a test's."""
    return plane.admin.as_user(plane.admin.token_for(account, NS))


def feature(name: str, node: str | None) -> Body:
    """A NodeFeature object about a node, or about none."""
    labels = {} if node is None else {NODE_NAME: node}
    meta = {"name": name, "namespace": NS, "labels": labels}
    spec: Body = {"labels": {}, "features": {"flags": {}, "attributes": {}, "instances": {}}}
    return {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": meta, "spec": spec}


def resource_slice(name: str, node: str) -> Body:
    """A ResourceSlice of the GPU driver on a node."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": []}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def denied(error: pytest.ExceptionInfo[ApiError], policy: str, message: str) -> None:
    """The refusal is the policy's, with its message, and not for want of rights."""
    assert (error.value.status, error.value.reason) == (422, "Invalid")
    assert f"ValidatingAdmissionPolicy '{policy}'" in error.value.message
    assert message in error.value.message


@pytest.mark.parametrize("name", POLICIES)
def test_expressions_are_sound(plane: ControlPlane, name: str) -> None:
    """The API server's type checker has nothing against the policy's expressions."""
    assert type_checked(plane.admin, name) == []


@pytest.mark.parametrize("account", [NFD_WORKER, GFD])
def test_finder_writes_about_its_own_node_only(plane: ControlPlane, account: str) -> None:
    """A worker or GFD writes its own node's NodeFeature; others' are denied, and so is passing one over."""
    policy, message = POLICIES[0], "a pod may write NodeFeature objects about its own node only"
    here, there = as_pod(plane, account, "here"), as_pod(plane, account, "there")
    name = f"{account}-own"
    own = here.create(feature(name, "here"))
    own = here.update({**own, "spec": {**own["spec"], "labels": {"seen": "true"}}})
    for body in (feature(f"{account}-other", "there"), feature(f"{account}-none", None)):
        with pytest.raises(ApiError) as error:
            here.create(body)
        denied(error, policy, message)
    for node in ("there", None):
        with pytest.raises(ApiError) as error:
            here.update(renamed(own, node))
        denied(error, policy, message)
    for node in ("there", "here"):  # another node's pod: to take it over, or to write about this one
        with pytest.raises(ApiError) as error:
            there.update(renamed(own, node))
        denied(error, policy, message)
    with pytest.raises(ApiError) as error:
        without_pod(plane, account).create(feature(f"{account}-stolen", "here"))
    denied(error, policy, message)
    assert plane.admin.get(NODE_FEATURE, name, NS) == own


def renamed(body: Body, node: str | None) -> Body:
    """BODY, about another node."""
    return {**body, "metadata": {**body["metadata"], "labels": {} if node is None else {NODE_NAME: node}}}


def test_others_write_any_node_feature(plane: ControlPlane) -> None:
    """The policy is about the finders: an administrator writes about any node."""
    plane.admin.create(feature("by-hand", "there"))
    plane.admin.patch(NODE_FEATURE, "by-hand", {"metadata": {"labels": {NODE_NAME: "here"}}}, NS)


def test_dra_driver_publishes_its_own_node_only(plane: ControlPlane) -> None:
    """The DRA driver's plugin writes and deletes its own node's ResourceSlices, not others', none without a node."""
    policy, message = POLICIES[1], "this user running on node 'here' may not modify cluster or node resourceslices"
    here, there = as_pod(plane, DRA, "here"), as_pod(plane, DRA, "there")
    here.create(resource_slice("here-1", "here"))
    there.create(resource_slice("there-1", "there"))
    with pytest.raises(ApiError) as error:
        here.create(resource_slice("there-2", "there"))
    denied(error, policy, message)
    with pytest.raises(ApiError) as error:
        here.delete("ResourceSlice", "there-1")
    denied(error, policy, message)
    with pytest.raises(ApiError) as error:
        without_pod(plane, DRA).create(resource_slice("stolen", "here"))
    denied(error, policy, "no node association found for user")
    here.delete("ResourceSlice", "here-1")
    plane.admin.delete("ResourceSlice", "there-1")


def test_reconciler_changes_its_own_of_gpu_nodes(plane: ControlPlane) -> None:
    """The reconciler cordons, and writes and takes back its own labels and annotations, in one patch, on a GPU node."""
    api = without_pod(plane, RECONCILER)
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.deploy.driver": "true",
        "nvidia.com/mig.config": "all-1g.5gb",
    }
    annotations = {"gpustack.dev/op": "{}", "nvidia.com/gpu-driver-upgrade-enabled": "true"}
    own = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"unschedulable": True}}
    written = api.patch("Node", "gpu", own)
    assert labels.items() <= written["metadata"]["labels"].items()
    assert written["spec"]["unschedulable"] is True
    back = {"labels": dict.fromkeys(labels), "annotations": dict.fromkeys(annotations)}
    written = api.patch("Node", "gpu", {"metadata": back, "spec": {"unschedulable": None}})
    assert not labels.keys() & written["metadata"]["labels"].keys()
    assert "unschedulable" not in written["spec"]


@pytest.mark.parametrize("key", ["gpustack.dev/op", "gpustack.dev/node"])
def test_reconciler_gives_back_what_it_has_taken(plane: ControlPlane, key: str) -> None:
    """Also where a node has lost every label that tells a GPU, in the middle of its first operation for example."""
    plane.admin.patch("Node", "here", {"metadata": {"annotations": {key: "{}"}}})
    back = without_pod(plane, RECONCILER).patch("Node", "here", {"metadata": {"annotations": {key: None}}})
    assert key not in back["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("node", "patch", "message"),
    [
        ("here", {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}, "nodes with a GPU only"),
        ("here", {"spec": {"unschedulable": True}}, "nodes with a GPU only"),
        ("gpu", {"metadata": {"labels": {"example.com/team": "b"}}}, "its own labels"),
        ("gpu", {"metadata": {"labels": {"example.com/team": None}}}, "its own labels"),
        ("gpu", {"metadata": {"labels": {"example.com/new": "b"}}}, "its own labels"),
        ("gpu", {"metadata": {"labels": {PCI_LABEL: None}}}, "its own labels"),
        ("gpu", {"metadata": {"annotations": {"example.com/new": "b"}}}, "its own annotations"),
        ("gpu", {"metadata": {"finalizers": ["example.com/stays"]}}, "nothing of a node's spec"),
        ("gpu", {"spec": {"providerID": "other://1"}}, "nothing of a node's spec"),
        ("gpu", {"spec": {"taints": None}}, "adds no taint"),
        ("gpu", {"spec": {"taints": [FOREIGN_TAINT, {"key": "a", "effect": "NoExecute"}]}}, "adds no taint"),
        ("gpu", {"spec": {"taints": [{**FOREIGN_TAINT, "value": "other"}]}}, "adds no taint"),
    ],
)
def test_reconciler_changes_nothing_else(plane: ControlPlane, node: str, patch: Body, message: str) -> None:
    """Foreign labels, annotations, taints and the rest of a node are denied it, and so are nodes without a GPU."""
    with pytest.raises(ApiError) as error:
        without_pod(plane, RECONCILER).patch("Node", node, patch)
    denied(error, POLICIES[2], message)
