"""The guards hold the stack's accounts to their own node, with tokens as kubelets get them for the pods there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.control_plane.api import MERGE, Api, ApiError, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import DIST, apply_cluster, clusters, manifests
from tests.control_plane.objects import daemon_set, pod
from tests.control_plane.test_admission import as_pod, denied, type_checked, without_pod

NS = "gpu-operator"
NODES, PODS, LABELS = "gpustack-nodes-of-own-pods", "gpustack-pods-of-own-node", "gpustack-labels-by-discovery"
LAYOUTS, CONFIG_MAPS, WORKLOADS = "gpustack-layouts-of-own-node", "gpustack-configmaps", "gpustack-dra-workloads"
DRIVER, MIG, VALIDATOR = "nvidia-driver", "nvidia-mig-manager", "nvidia-operator-validator"
NFD = "gpu-operator-node-feature-discovery"
PLUGIN, CONTROLLER = "nvidia-dra-driver-kubeletplugin", "nvidia-dra-driver-controller"
DAEMON = "compute-domain-daemon-service-account"
DEPLOY, MIG_STATE = "nvidia.com/gpu.deploy.device-plugin", "nvidia.com/mig.config.state"
SCRIPT = "nvidia-mig-manager-entrypoint"
PAUSED: Body = {"metadata": {"labels": {DEPLOY: "paused-for-driver-upgrade"}}}


def of_cluster(cluster: str, folder: Any, emulated: str) -> Iterator[ControlPlane]:
    """A control plane with CLUSTER and two nodes without kubelets, on which its guards are in force."""
    with ControlPlane(folder, emulated=emulated) as plane:
        apply_cluster(plane.admin, DIST / cluster)
        for name in ("here", "there"):
            labels = {DEPLOY: "true", "example.com/team": "a", "node.kubernetes.io/old": "1"}
            meta = {"name": name, "labels": labels, "annotations": {f"{NODE_LISTS}labels": "node.kubernetes.io/old"}}
            plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
        guards = [one["metadata"]["name"] for one in plane.admin.list("ValidatingAdmissionPolicy")]
        wait_for(lambda: all(type_checked(plane.admin, name) is not None for name in guards), "the policies are read")
        wait_for(lambda: in_force(plane), "the guards are in force")
        yield plane


NODE_LISTS = "nfd.node.kubernetes.io/feature-"


def in_force(plane: ControlPlane) -> bool:
    """Whether what a guard denies is denied; bindings of one apply come into force together."""
    if plane.admin.find("ValidatingAdmissionPolicy", WORKLOADS):
        account, test = PLUGIN, {"metadata": {"labels": {"resource.nvidia.com/computeDomain": "x"}}}
    else:
        account, test = DRIVER, PAUSED
    try:
        as_pod(plane, account, "here").patch("Node", "there", test, dryRun="All")
    except ApiError as error:
        return error.reason == "Invalid"
    return False


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """The device plugin's stack, synced by a Flux in the cluster."""
    yield from of_cluster("train-dgx", tmp_path_factory.mktemp("guards"), emulated)


@pytest.fixture(scope="module")
def dra(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A cluster whose GPUs are allocated by DRA, with compute domains."""
    yield from of_cluster("dra-gb200", tmp_path_factory.mktemp("guards-dra"), emulated)


def refused(policy: str, message: str, call: Any, *arguments: Any, **more: Any) -> None:
    """The CALL is denied by POLICY with MESSAGE."""
    with pytest.raises(ApiError) as error:
        call(*arguments, **more)
    denied(error, policy, message)


def test_expressions_are_sound(plane: ControlPlane) -> None:
    """The API server's type checker has nothing against any policy that is rendered for any of the clusters."""
    made = []
    for cluster in clusters():
        for manifest in (one for stage in manifests(DIST / cluster) for one in stage):
            if manifest.body["kind"] == "ValidatingAdmissionPolicy":
                name = f"{manifest.name}-{cluster}"
                plane.admin.create({**manifest.body, "metadata": {"name": name}})
                made.append(name)
    wait_for(lambda: all(type_checked(plane.admin, name) is not None for name in made), "all are read", 240)
    kinds = ("nodefeatures", "resourceslices")  # kinds that this cluster doesn't have
    warnings = {name: type_checked(plane.admin, name) for name in made if not any(kind in name for kind in kinds)}
    assert {name: found for name, found in warnings.items() if found} == {}
    for name in made:
        plane.admin.delete("ValidatingAdmissionPolicy", name)


@pytest.mark.parametrize(
    ("account", "patch"),
    [
        (DRIVER, {**PAUSED, "spec": {"unschedulable": True}}),
        (MIG, {"metadata": {"labels": {MIG_STATE: "success", DEPLOY: "paused-for-mig-change"}}}),
    ],
)
def test_own_node_is_changed(plane: ControlPlane, account: str, patch: Body) -> None:
    """Driver manager and MIG manager pause the other pods of their node, say how far they are, cordon it, and take it
    back; of another node they change nothing, and with a token that is bound to no pod not even of their own."""
    here = as_pod(plane, account, "here")
    here.patch("Node", "here", patch)
    here.patch("Node", "here", {"metadata": {"labels": {DEPLOY: "true"}}, "spec": {"unschedulable": None}})
    refused(NODES, "its own node only", here.patch, "Node", "there", patch)
    refused(NODES, "its own node only", without_pod(plane, account).patch, "Node", "here", patch)


@pytest.mark.parametrize(
    ("account", "patch", "message"),
    [
        (DRIVER, {"metadata": {"labels": {"example.com/team": "b"}}}, "those labels"),
        (DRIVER, {"metadata": {"labels": {"example.com/team": None}}}, "those labels"),
        (DRIVER, {"metadata": {"labels": {MIG_STATE: "failed"}}}, "those labels"),
        (DRIVER, {"metadata": {"annotations": {"gpustack.dev/op": "{}"}}}, "no annotation"),
        (DRIVER, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, "no taint"),
        (DRIVER, {"metadata": {"finalizers": ["example.com/stays"]}}, "nothing of its node's spec"),
        (MIG, {"spec": {"unschedulable": True}}, "nothing of its node's spec"),
        (MIG, {"metadata": {"labels": {"nvidia.com/mig.config": "all-disabled"}}}, "those labels"),
    ],
)
def test_own_node_is_changed_in_its_own_labels(plane: ControlPlane, account: str, patch: Body, message: str) -> None:
    """Of its own node a pod changes the labels that it is there for, and no more."""
    refused(NODES, message, as_pod(plane, account, "here").patch, "Node", "here", patch)


def workload(name: str, node: str, account: str = VALIDATOR, **spec: Any) -> Body:
    """A pod as the validator makes them: with its node's name."""
    return pod(name, NS, nodeName=node, serviceAccountName=account, **spec)


def test_validator_makes_pods_of_its_own_node(plane: ControlPlane) -> None:
    """It makes and deletes its workload there under its own account; neither elsewhere, nor as another account, nor
    with a Secret of the namespace."""
    here = as_pod(plane, VALIDATOR, "here")
    here.create(workload("cuda-here", "here"))
    here.delete("Pod", "cuda-here", NS, grace=0)
    refused(PODS, "its own node only", here.create, workload("cuda-there", "there"))
    refused(PODS, "its own node only", here.create, pod("anywhere", NS, serviceAccountName=VALIDATOR))
    refused(PODS, "its own ServiceAccount", here.create, workload("driver", "here", DRIVER))
    refused(PODS, "its own ServiceAccount", here.create, workload("reconciler", "here", "gpustack-reconciler"))
    secret = [{"name": "s", "secret": {"secretName": "licence"}}]
    refused(PODS, "no Secret", here.create, workload("secret", "here", volumes=secret))
    projected = [{"name": "s", "projected": {"sources": [{"secret": {"name": "licence"}}]}}]
    refused(PODS, "no Secret", here.create, workload("projected", "here", volumes=projected))
    env = [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "licence", "key": "token"}}}]
    inside = [{"name": "main", "image": "registry.example/pause:1", "env": env}]
    refused(PODS, "no Secret", here.create, workload("env", "here", containers=inside))
    refused(
        PODS, "reads no Secret", here.create, workload("init", "here", initContainers=[{**inside[0], "name": "init"}])
    )
    pulls = [{"name": "licence"}]
    refused(PODS, "imagePullSecrets", here.create, workload("pulls", "here", imagePullSecrets=pulls))


@pytest.mark.parametrize("account", [VALIDATOR, MIG])
def test_pods_of_another_node_stay(plane: ControlPlane, account: str) -> None:
    """Whoever may delete pods of the stack deletes those of its own node."""
    for node in ("here", "there"):
        plane.admin.create(workload(f"{account[-5:]}-{node}", node))
    here = as_pod(plane, account, "here")
    here.delete("Pod", f"{account[-5:]}-here", NS, grace=0)
    refused(PODS, "its own node only", here.delete, "Pod", f"{account[-5:]}-there", NS)
    refused(PODS, "its own node only", without_pod(plane, account).delete, "Pod", f"{account[-5:]}-there", NS)


def test_nobody_evicts_but_the_reconciler(plane: ControlPlane) -> None:
    """An Eviction names no node, so the driver's account has no right to evict; the reconciler has."""
    plane.admin.create(pod("tenant", "default", nodeName="here"))
    with pytest.raises(ApiError) as error:
        as_pod(plane, DRIVER, "here").evict("tenant", "default")
    assert error.value.status == 403
    without_pod(plane, "gpustack-reconciler").evict("tenant", "default", dry_run=True)


def config_map(name: str, **data: str) -> Body:
    """A ConfigMap of the stack's namespace."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NS}, "data": data}


def test_mig_manager_publishes_its_own_layouts(plane: ControlPlane) -> None:
    """It creates and changes the ConfigMap of its node; no other's, and no script."""
    here = as_pod(plane, MIG, "here")
    here.create(config_map("here-mig-config", a="1"))
    here.patch("ConfigMap", "here-mig-config", {"data": {"a": "2"}}, NS)
    refused(LAYOUTS, "its own node", here.create, config_map("there-mig-config", a="1"))
    refused(LAYOUTS, "its own node", here.create, config_map("nvidia-mig-manager", a="1"))
    with pytest.raises(ApiError) as error:
        here.patch("ConfigMap", SCRIPT, {"data": {"entrypoint.sh": "id"}}, NS)
    assert "ValidatingAdmissionPolicy" in error.value.message


def test_scripts_are_written_by_the_engine(plane: ControlPlane) -> None:
    """Flux's account changes a script, deletes and makes it; nobody else does, whatever rights somebody gave it, and
    nobody takes the mark off."""
    rights = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    for namespace, name in (("flux-system", "kustomize-controller"), ("default", "somebody"), (NS, "somebody")):
        writer(plane.admin, namespace, name, rights)
    engine = plane.admin.as_user(plane.admin.token_for("kustomize-controller", "flux-system"))
    before = engine.get("ConfigMap", SCRIPT, NS)
    engine.patch("ConfigMap", SCRIPT, {"metadata": {"annotations": {"seen": "1"}}}, NS)
    for namespace in ("default", NS):
        other = plane.admin.as_user(plane.admin.token_for("somebody", namespace))
        for patch in ({"data": {"entrypoint.sh": "id"}}, {"metadata": {"labels": {"gpustack.dev/guarded": None}}}):
            refused(CONFIG_MAPS, "only the engine", other.patch, "ConfigMap", SCRIPT, patch, NS)
        refused(CONFIG_MAPS, "only the engine", other.delete, "ConfigMap", SCRIPT, NS)
        other.create(config_map(f"of-somebody-{namespace}", a="1"))
    # In the foreground, as Argo CD prunes: the garbage collector ends it.
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    engine.request("DELETE", engine.path("ConfigMap", SCRIPT, NS), options)
    wait_for(lambda: engine.find("ConfigMap", SCRIPT, NS) is None, "the script is gone")
    bare = {"name": SCRIPT, "namespace": NS, "labels": before["metadata"]["labels"]}
    engine.create({**before, "metadata": bare})


def writer(admin: Api, namespace: str, name: str, rules: list[Body]) -> None:
    """A ServiceAccount that may do everything with ConfigMaps."""
    if not admin.find("Namespace", namespace):
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
    role, group = f"{namespace}-{name}", "rbac.authorization.k8s.io"
    admin.create({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}, "subjects": [subject]}
    admin.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role}, **binding})


def test_discovery_labels_any_node(plane: ControlPlane) -> None:
    """The master labels every node in its namespaces, notes that in its annotations, offers its own resources, and
    lets go of an old label that it had called its own."""
    api = without_pod(plane, NFD)
    lists = {f"{NODE_LISTS}labels": "cpu-model.id,nvidia.com/gpu.product"}
    labels: Body = {"feature.node.kubernetes.io/cpu-model.id": "1", "nvidia.com/gpu.product": "A100"}
    api.patch(
        "Node", "there", {"metadata": {"labels": {**labels, "node.kubernetes.io/old": None}, "annotations": lists}}
    )
    own = {"status": {"capacity": {"feature.node.kubernetes.io/links": "2"}}}
    api.patch("Node", "there", own, subresource="status")
    api.patch(
        "Node", "there", {"status": {"capacity": {"feature.node.kubernetes.io/links": None}}}, subresource="status"
    )


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"metadata": {"labels": {DEPLOY: "false"}}}, "none that steers"),
        ({"metadata": {"labels": {DEPLOY: None}}}, "none that steers"),
        ({"metadata": {"labels": {"nvidia.com/mig.config": "all-disabled"}}}, "none that steers"),
        ({"metadata": {"labels": {"nvidia.com/gpu.workload.config": "vm-vgpu"}}}, "none that steers"),
        ({"metadata": {"labels": {"gpustack.dev/hold": "true"}}}, "none that steers"),
        ({"metadata": {"labels": {"example.com/team": "b"}}}, "in the namespaces of"),
        ({"metadata": {"labels": {"example.com/team": None}}}, "in the namespaces of"),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, "in the namespaces of"),
        ({"metadata": {"annotations": {f"{NODE_LISTS}labels": f"a,{DEPLOY}"}}}, "none that steers"),
        ({"metadata": {"annotations": {"gpustack.dev/op": "{}"}}}, "its own annotations"),
        ({"metadata": {"annotations": {"csi.volume.kubernetes.io/nodeid": "{}"}}}, "its own annotations"),
        ({"spec": {"unschedulable": True}}, "nothing of a node's spec"),
        ({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, "no taint"),
    ],
)
def test_discovery_steers_nothing(plane: ControlPlane, patch: Body, message: str) -> None:
    """It sets no label that says what runs on a node, nor one of others, and takes none for its own."""
    refused(LABELS, message, without_pod(plane, NFD).patch, "Node", "here", patch)


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"capacity": {"nvidia.com/gpu": "0"}}},
        {"status": {"allocatable": {"cpu": "0"}}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}},
        {"metadata": {"labels": {DEPLOY: "false"}}},
    ],
)
def test_discovery_changes_no_status_of_others(plane: ControlPlane, patch: Body) -> None:
    """Neither a node's resources and conditions, nor its labels by way of its status."""
    refused(
        LABELS, "node feature discovery", without_pod(plane, NFD).patch, "Node", "here", patch, subresource="status"
    )


def updated(api: Api, name: str, change: Callable[[Body], object]) -> None:
    """Replace the node by itself with a CHANGE; again with the newest where a controller wrote in between."""

    def taken() -> bool:
        node = api.get("Node", name)
        change(node)
        try:
            api.update(node)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            return False
        return True

    wait_for(taken, f"{name} is replaced", 30)


def test_compute_domains(dra: ControlPlane) -> None:
    """The plugin labels its own node, the controller takes that label off any, and neither does more."""
    domain = "resource.nvidia.com/computeDomain"
    here, controller = as_pod(dra, PLUGIN, "here"), as_pod(dra, CONTROLLER, "there")
    here.patch("Node", "here", {"metadata": {"labels": {domain: "1"}}})
    updated(controller, "here", lambda node: node["metadata"]["labels"].pop(domain))
    refused(NODES, "its own node only", here.patch, "Node", "there", {"metadata": {"labels": {domain: "1"}}})
    for message, change in (
        ("nothing of its node's spec", lambda node: node["spec"].update(unschedulable=True)),
        ("those labels", lambda node: node["metadata"]["labels"].update({DEPLOY: "false"})),
    ):
        refused(NODES, message, updated, controller, "here", change)


def daemons(name: str, **spec: Any) -> Body:
    """A compute domain's DaemonSet, as the controller makes it."""
    made = daemon_set(name, NS, serviceAccountName=DAEMON, **spec)
    made["metadata"]["labels"] = {"resource.nvidia.com/computeDomain": "1"}
    return made


def test_controller_makes_daemons_of_compute_domains_only(dra: ControlPlane) -> None:
    """Not a DaemonSet of another kind, not one with power over nodes; and it leaves the driver's alone."""
    controller = as_pod(dra, CONTROLLER, "here")
    made = controller.create(daemons("computedomain-daemon-1"))
    controller.delete("DaemonSet", made["metadata"]["name"], NS)
    refused(WORKLOADS, "compute domains only", controller.create, daemon_set("any", NS, serviceAccountName=DAEMON))
    other = daemons("other")
    other["spec"]["template"]["spec"]["serviceAccountName"] = PLUGIN
    refused(WORKLOADS, "its own account", controller.create, other)
    strong = [{"name": "main", "image": "registry.example/pause:1", "securityContext": {"privileged": True}}]
    root = [{"name": "root", "hostPath": {"path": "/"}}]
    for spec in (
        {"containers": strong},
        {"initContainers": [{**strong[0], "name": "init"}]},
        {"volumes": root},
        {"hostPID": True},
    ):
        refused(WORKLOADS, "shares nothing of its node", controller.create, daemons("strong", **spec))
    names = [one["metadata"]["name"] for one in dra.admin.list("DaemonSet", NS)]
    driver = dra.admin.get("DaemonSet", next(name for name in names if "gpu-driver" in name), NS)
    refused(WORKLOADS, "compute domains only", controller.delete, "DaemonSet", driver["metadata"]["name"], NS)
    driver["metadata"]["labels"]["resource.nvidia.com/computeDomain"] = "1"
    refused(WORKLOADS, "compute domains only", controller.update, driver)


def test_daemon_marks_pods_of_its_node(dra: ControlPlane) -> None:
    """The daemon of a compute domain labels its pod; it changes no image, and no pod of another node or namespace."""
    here = as_pod(dra, DAEMON, "here")
    for name, namespace, node in (("mine", NS, "here"), ("far", NS, "there"), ("tenant", "default", "here")):
        dra.admin.create(pod(name, namespace, nodeName=node))
    here.patch("Pod", "mine", {"metadata": {"labels": {"clique": "1"}}}, NS)
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.example/other:1"}]
    refused(PODS, "another pod runs", here.patch, "Pod", "mine", image, NS, how="application/json-patch+json")
    for name, namespace in (("far", NS), ("tenant", "default")):
        refused(PODS, "its own node only", here.patch, "Pod", name, {"metadata": {"labels": {"a": "1"}}}, namespace)


def test_audit_lets_through_and_warns(dra: ControlPlane) -> None:
    """With `guards.mode: Audit` what a guard is against is done, and who did it is warned."""
    dra.admin.patch("ValidatingAdmissionPolicyBinding", NODES, {"spec": {"validationActions": ["Audit", "Warn"]}})
    api, path = as_pod(dra, PLUGIN, "here"), dra.admin.path("Node", "there")
    label = {"metadata": {"labels": {"resource.nvidia.com/computeDomain": "2"}}}

    def warned() -> tuple[str, ...]:
        try:
            return api.request("PATCH", path, label, content=MERGE).warnings
        except ApiError as error:
            if error.reason != "Invalid":  # the binding is not in force yet
                raise
            return ()

    warnings = wait_for(warned, "the change is let through with a warning")
    assert "a pod changes its own node only" in "".join(warnings)
    assert dra.admin.get("Node", "there")["metadata"]["labels"]["resource.nvidia.com/computeDomain"] == "2"
