"""What a real API server makes of `tenancy`: quotas that hold, pods that are refused with a reason, and queues that
nobody has to wait for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.tenancy.queues import Queues
from gpustack.components.tenancy.tenancy import Tenancy
from tests.components.common import chart, spec
from tests.control_plane.api import ApiError, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import established
from tests.control_plane.objects import IMAGE
from tests.control_plane.test_admission import type_checked
from tests.control_plane.test_secrets import definition

POLICY = "gpustack-tenant-pods"
POOLS = [
    {
        "name": "whole",
        "os": "ubuntu24.04",
        "gpuProduct": "NVIDIA-H100-80GB-HBM3",
        "gpusPerNode": 8,
        "count": 2,
        "nodeSelector": {"example.com/pool": "whole"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    },
    {
        "name": "slices",
        "os": "ubuntu24.04",
        "gpuProduct": "NVIDIA-A100-SXM4-80GB",
        "gpusPerNode": 8,
        "count": 1,
        "nodeSelector": {"example.com/pool": "slices"},
        "sharing": {"mig": {"layout": {"1g.10gb": 7}}, "timeSlicing": {"replicas": 2}},
    },
]
SLICE = "nvidia.com/mig-1g.10gb"
TENANTS = [
    {
        "name": "team-a",
        "createNamespace": True,
        "pools": {"slices": {"slices": {"1g.10gb": 8}}},
        "priorities": ["gpu-low"],
        "limits": {"defaultRequest": {"cpu": "100m"}, "default": {"cpu": "1"}},
    },
    {"name": "team-b", "createNamespace": True, "pools": {"whole": {"gpus": 8}}, "maxPerPod": 4},
]
LOW = {"name": "gpu-low", "value": 100, "preempts": False}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane with two tenants, whose admission denies."""
    tenancy: Body = {"tenants": TENANTS, "priorities": [LOW], "admission": {"mode": "Deny"}}
    cluster = resolve(spec(nodePools=POOLS, mig={"strategy": "mixed"}, tenancy=tenancy))
    made = Tenancy(chart(), "tenancy", cluster).resources()
    with ControlPlane(tmp_path_factory.mktemp("tenancy"), emulated=emulated) as plane:
        for body in sorted((each.body for each in made), key=lambda body: body["kind"] != "Namespace"):
            plane.admin.apply(body)
        for home in ("team-a", "team-b"):
            wait_for(partial(plane.admin.find, "ServiceAccount", "default", home), "pods may be made")
            wait_for(partial(hard, plane, home), "the quota counts")
        wait_for(lambda: type_checked(plane.admin, POLICY) is not None, "the policy is read")
        wait_for(lambda: refused(plane, "team-b", privileged(pod("team-b"))), "the policy is in force")
        yield plane


def hard(plane: ControlPlane, namespace: str) -> Body:
    """What the quota of NAMESPACE counts, {} while nobody has looked at it."""
    counted: Body = plane.admin.get("v1/ResourceQuota", "gpustack-gpus", namespace).get("status", {}).get("hard", {})
    return counted


def pod(namespace: str, **limits: int) -> Body:
    """A pod of a tenant's that asks for nothing, or for so many of each of LIMITS."""
    resources = {name: str(number) for name, number in limits.items()}
    spec: Body = {"containers": [{"name": "main", "image": IMAGE, "resources": {"limits": resources}}]}
    if namespace == "team-a":
        spec["priorityClassName"] = "gpu-low"
    labels = {"gpustack.dev/shares-gpu": "true"}
    meta: Body = {"name": f"pod-{next(NUMBERS)}", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "tolerations": [TOLERATION]}}


def slices(number: int) -> Body:
    """A pod of team-a that asks for so many slices."""
    return pod("team-a", **{SLICE: number})


def gpus(number: int) -> Body:
    """A pod of team-b that asks for so many GPUs."""
    return pod("team-b", **{"nvidia.com/gpu": number})


def privileged(body: Body) -> Body:
    """BODY, privileged."""
    body["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return body


def mounting(body: Body, path: str) -> Body:
    """BODY with a folder of its node."""
    body["spec"]["volumes"] = [{"name": "node", "hostPath": {"path": path}}]
    return body


def refused(plane: ControlPlane, namespace: str, body: Body) -> str:
    """Why the API server takes no such pod, "" where it does."""
    try:
        plane.admin.create(body, dryRun="All")
    except ApiError as error:
        return error.message
    return ""


def test_the_policy_is_well_typed(plane: ControlPlane) -> None:
    """The API server's type checker has nothing against any expression."""
    assert type_checked(plane.admin, POLICY) == []


def test_the_ninth_slice(plane: ControlPlane) -> None:
    """Eight slices are a tenant's, and the API server refuses the ninth; of what it isn't given, the first."""
    made = [plane.admin.create(slices(4))["metadata"]["name"] for _ in range(2)]
    assert "exceeded quota: gpustack-gpus" in refused(plane, "team-a", slices(1))
    assert "exceeded quota: gpustack-gpus" in refused(plane, "team-a", pod("team-a", **{"nvidia.com/gpu": 1}))
    for name in made:
        plane.admin.delete("Pod", name, "team-a", grace=0)


def test_good_pods(plane: ControlPlane) -> None:
    """Pods that ask for what they are given, and pods that ask for no GPU, are taken."""
    nothing = changed(pod("team-a", **{"nvidia.com/gpu": 0}), tolerations=[], priorityClassName=None)
    nothing["metadata"]["labels"] = {}
    once = {"resources": {"limits": {"nvidia.com/gpu": "4"}}}
    before = changed(gpus(4), initContainers=[container(**once)])
    for body in (slices(1), gpus(4), pod("team-a"), pod("team-b"), mounting(gpus(1), "/data/sets"), nothing, before):
        assert refused(plane, body["metadata"]["namespace"], body) == ""


def test_defaults_of_containers(plane: ControlPlane) -> None:
    """A container without requests gets those of the LimitRange, and no GPU."""
    made = plane.admin.create(pod("team-a"), dryRun="All")
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/proc/1/root",
        "/etc/kubernetes/manifests",
        "/var/lib/kubelet/plugins",
        "/var/run/nri",
        "/dev",
        "/dev/nvidia0",
        "/run//nvidia/driver",
        "/etc/cron.d",
        "/run/./nvidia",
        "/run",
        "/run/cdi/",
        "/usr/local/nvidia/toolkit",
        "/usr/lib/x86_64-linux-gnu",
        "/opt/cni/bin",
        "/var/lib/rancher/rke2",
        "/var/lib/containers/storage",
        "/var/spool/cron/crontabs",
        "/root/.ssh",
    ],
)
def test_folders_of_the_node(plane: ControlPlane, path: str) -> None:
    """No pod mounts a folder by which it reaches GPUs that it didn't ask for, however the path is written."""
    assert "mounts no folder of the node" in refused(plane, "team-b", mounting(pod("team-b"), path))


def changed(body: Body, **spec: Any) -> Body:
    """BODY with other fields of its spec."""
    body["spec"].update(spec)
    return body


def container(**fields: Any) -> Body:
    """A container."""
    return {"name": "other", "image": IMAGE, **fields}


VISIBLE = {"name": "NVIDIA_VISIBLE_DEVICES"}
BAD: dict[str, tuple[Body, str]] = {
    "privileged": (privileged(gpus(1)), "isn't privileged"),
    "privileged in an init container": (
        changed(pod("team-b"), initContainers=[container(securityContext={"privileged": True})]),
        "isn't privileged",
    ),
    "all devices": (changed(pod("team-b"), containers=[container(env=[{**VISIBLE, "value": "all"}])]), "VISIBLE"),
    "devices from elsewhere": (
        changed(
            pod("team-b"),
            containers=[container(env=[{**VISIBLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])],
        ),
        "VISIBLE",
    ),
    "more than one pod may": (gpus(5), "asks for 4 GPUs or slices at most"),
    "more, in two containers": (
        changed(
            gpus(3),
            containers=[container(name=name, resources={"limits": {"nvidia.com/gpu": "3"}}) for name in ("a", "b")],
        ),
        "asks for 4 GPUs or slices at most",
    ),
    "a power over the node": (
        changed(pod("team-b"), containers=[container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})]),
        "no power over its node",
    ),
    **{
        f"a power over the node as {name}": (
            changed(pod("team-b"), initContainers=[container(securityContext={"capabilities": {"add": [name]}})]),
            "no power over its node",
        )
        for name in ("sys_admin", "CAP_SYS_ADMIN", "cap_sys_ptrace", "all")
    },
    "more, while a sidecar runs": (
        changed(
            pod("team-b"),
            initContainers=[
                container(restartPolicy="Always", resources={"limits": {"nvidia.com/gpu": "2"}}),
                {**container(resources={"limits": {"nvidia.com/gpu": "3"}}), "name": "next"},
            ],
        ),
        "asks for 4 GPUs or slices at most",
    ),
    "the node's processes": (changed(pod("team-b"), hostPID=True), "shares no processes"),
    "more, with a sidecar": (
        changed(
            gpus(3),
            initContainers=[container(restartPolicy="Always", resources={"limits": {"nvidia.com/gpu": "2"}})],
        ),
        "asks for 4 GPUs or slices at most",
    ),
    "no toleration": (changed(gpus(1), tolerations=[]), "tolerates the taint nvidia.com/gpu"),
    "another toleration": (
        changed(gpus(1), tolerations=[{**TOLERATION, "effect": "NoExecute"}]),
        "tolerates the taint nvidia.com/gpu",
    ),
    "another priority": (changed(slices(1), priorityClassName="system-node-critical"), "has the priority gpu-low"),
    "requests below limits": (
        changed(
            gpus(1),
            containers=[container(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}})],
        ),
        "must be equal to",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pods(plane: ControlPlane, name: str) -> None:
    """A pod that would take more than it is given is refused, and the message says why."""
    body, words = BAD[name]
    assert words in refused(plane, body["metadata"]["namespace"], body)


def test_sharing_is_meant(plane: ControlPlane) -> None:
    """A pod that asks for a slice which others use too says that it knows."""
    body = slices(1)
    body["metadata"]["labels"] = {}
    assert 'the label gpustack.dev/shares-gpu: "true"' in refused(plane, "team-a", body)


def test_annotations_of_cdi(plane: ControlPlane) -> None:
    """A device that an annotation asks the runtime for is refused: no quota counts it."""
    body = pod("team-b")
    for key in ("cdi.k8s.io/mine", "nvidia.cdi.k8s.io/container.main"):
        body["metadata"]["annotations"] = {key: "nvidia.com/gpu=all"}
        assert "no annotation of CDI" in refused(plane, "team-b", body)


def test_a_pod_that_is_there(plane: ControlPlane) -> None:
    """A pod gets no annotation of CDI afterwards; all else about it may change."""
    name = plane.admin.create(pod("team-b"))["metadata"]["name"]
    with pytest.raises(ApiError, match="no annotation of CDI"):
        plane.admin.patch("Pod", name, {"metadata": {"annotations": {"cdi.k8s.io/a": "b"}}}, namespace="team-b")
    plane.admin.patch("Pod", name, {"metadata": {"annotations": {"example.com/a": "b"}}}, namespace="team-b")


def test_debugging_containers(plane: ControlPlane) -> None:
    """An ephemeral container is no way for a running pod to get all GPUs."""
    made = plane.admin.create(pod("team-b"))
    del made["metadata"]["resourceVersion"]  # the scheduler writes to the pod, too
    made["spec"]["ephemeralContainers"] = [container(securityContext={"privileged": True})]
    with pytest.raises(ApiError, match="isn't privileged"):
        plane.admin.update(made, subresource="ephemeralcontainers")


def test_other_namespaces(plane: ControlPlane) -> None:
    """Pods of namespaces that are no tenant's are not looked at."""
    plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}})
    wait_for(lambda: plane.admin.find("ServiceAccount", "default", "free"), "pods may be made")
    assert refused(plane, "free", privileged(mounting(pod("free"), "/dev"))) == ""


OTHERS = {
    "PolicyException": ("policyexceptions.kyverno.io", "kyverno.io-v2", "Namespaced"),
    "ResourceFlavor": ("resourceflavors.kueue.x-k8s.io", "kueue.x-k8s.io-v1beta2", "Cluster"),
    "ClusterQueue": ("clusterqueues.kueue.x-k8s.io", "kueue.x-k8s.io-v1beta2", "Cluster"),
    "LocalQueue": ("localqueues.kueue.x-k8s.io", "kueue.x-k8s.io-v1beta2", "Namespaced"),
    "Queue": ("queues.scheduling.run.ai", "scheduling.run.ai-v2", "Cluster"),
}
"""Kinds of other programs: name of the definition, the group and version of its schema, and its scope."""


def test_objects_of_other_programs(plane: ControlPlane) -> None:
    """Each is valid by a definition made of its schema, is read back as rendered, and no field besides is taken."""
    plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}})
    for kind, (name, of, scope) in OTHERS.items():
        version = of.rpartition("-")[2]
        plane.admin.create(definition(name, f"{kind.lower()}-{of}", kind, version, scope))
    for name, _, _ in OTHERS.values():
        wait_for(partial(established, plane.admin, name), f"{name} is served")
    said = {"tenants": TENANTS, "priorities": [LOW], "exceptions": {"kyverno": ["disallow-host-path"]}}
    whole = {**said, "tenants": TENANTS[1:]}
    made = []
    for queues, tenancy in (({"kind": "kueue"}, said), ({"kind": "kai"}, whole)):
        cluster = resolve(spec(nodePools=POOLS, mig={"strategy": "mixed"}, tenancy={**tenancy, "queues": queues}))
        for construct in (Tenancy, Queues):
            made += [
                each.body for each in construct(chart(), f"{queues['kind']}-{construct.__name__}", cluster).resources()
            ]
    mine = [body for body in made if body["kind"] in OTHERS]
    assert {body["kind"] for body in mine} == OTHERS.keys()
    for body in mine:
        assert plane.admin.apply(body).body["spec"] == body["spec"]
        with pytest.raises(ApiError, match="besides"):
            plane.admin.apply({**body, "spec": {**body["spec"], "besides": 1}})
