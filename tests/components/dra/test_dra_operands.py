"""DCGM, its exporter and the validator where GPUs are allocated by DRA (operator.md 11.2)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.base import base_inputs
from gpustack.model import Body
from tests.components.common import container, env, grants, mounts, pod_of
from tests.components.dra.common import policy, rendered

DCGM, EXPORTER, VALIDATOR = "nvidia-dcgm-dra", "nvidia-dcgm-exporter-dra", "nvidia-dra-validator"


def exporter(**fields: Any) -> dict[str, Body]:
    """What is rendered where gpuCluster.dcgmExporter has FIELDS."""
    return rendered(gpuCluster={"dcgmExporter": fields})


@pytest.mark.parametrize(
    ("name", "template", "claim", "asked"),
    [
        (DCGM, "nvidia-dcgm-admin", "admin-gpus", {"allocationMode": "All"}),
        (EXPORTER, "nvidia-dcgm-exporter-admin", "admin-gpus", {"allocationMode": "All"}),
        (VALIDATOR, "nvidia-dra-validator-gpu", "validation-gpu", {"allocationMode": "ExactCount", "count": 1}),
    ],
)
def test_claims_of_an_administrator(name: str, template: str, claim: str, asked: dict[str, Any]) -> None:
    """Each looks at GPUs by an admin claim, which takes none away; no RuntimeClass, and nothing waits for a toolkit."""
    bodies = rendered(gpuCluster={"dcgm": {"enabled": True}})
    pod = pod_of(bodies, name)
    assert pod["resourceClaims"] == [{"name": claim, "resourceClaimTemplateName": template}]
    users = [*pod.get("initContainers", []), *pod["containers"]]
    assert [body["resources"]["claims"] for body in users if "resources" in body] == [[{"name": claim}]]
    assert "runtimeClassName" not in pod
    assert not [body for body in users if body["name"] == "toolkit-validation"]
    made = bodies[f"ResourceClaimTemplate/{template}"]
    assert made["apiVersion"] == "resource.k8s.io/v1"
    (found,) = made["spec"]["spec"]["devices"]["requests"]
    assert found == {"name": claim, "exactly": {"deviceClassName": "gpu.nvidia.com", "adminAccess": True, **asked}}


def test_the_namespace_admits_them() -> None:
    """The namespace carries the label without which the API server refuses admin claims (2.5)."""
    found = base_inputs.namespace(resolve(policy(gpuCluster={})))
    assert found is not None
    assert found.admin_access
    other = base_inputs.namespace(resolve(policy()))
    assert other is not None
    assert not other.admin_access


def test_a_claim_stands_beside_the_policys_resources() -> None:
    """`resources` do not replace the claim."""
    pod = pod_of(exporter(resources={"limits": {"memory": "1Gi"}}), EXPORTER)
    assert pod["containers"][0]["resources"] == {"limits": {"memory": "1Gi"}, "claims": [{"name": "admin-gpus"}]}


def test_the_exporter_resolves_devices() -> None:
    """KUBERNETES_ENABLE_DRA is on, with a token and the right to read ResourceSlices."""
    bodies = exporter()
    pod = pod_of(bodies, EXPORTER)
    assert env(pod["containers"][0])["KUBERNETES_ENABLE_DRA"] == "true"
    assert pod["automountServiceAccountToken"] is True
    role = bodies[f"ClusterRole/{EXPORTER}-read-pods"]
    assert grants(role) == {f"resourceslices:{verb}" for verb in ("get", "list", "watch")}


@pytest.mark.parametrize(
    "fields",
    [
        {"enablePodLabels": True},
        {"enablePodUID": True},
        {"env": [{"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}]},
    ],
)
def test_the_exporter_reads_pods_for_their_metadata(fields: dict[str, Any]) -> None:
    """Pods of all namespaces are readable only where metrics carry their labels or UIDs."""
    assert "pods:list" in grants(exporter(**fields)[f"ClusterRole/{EXPORTER}-read-pods"])


def test_the_exporter_finds_the_stand_alone_engine() -> None:
    """DCGM_REMOTE_HOSTENGINE_INFO names the engine's Service where DCGM is on, and is absent otherwise."""
    on = rendered(gpuCluster={"dcgm": {"enabled": True}})
    assert env(pod_of(on, EXPORTER)["containers"][0])["DCGM_REMOTE_HOSTENGINE_INFO"] == "nvidia-dcgm-dra:5555"
    assert on[f"Service/{DCGM}"]["spec"]["internalTrafficPolicy"] == "Local"
    assert "DCGM_REMOTE_HOSTENGINE_INFO" not in env(pod_of(exporter(), EXPORTER)["containers"][0])


def test_dcgm_is_off_unless_asked_for() -> None:
    """DCGM runs where `enabled` is true, the exporter where it isn't false, the validator always (11.1)."""
    names = {key for key in rendered(gpuCluster={"dcgmExporter": {"enabled": False}}) if key.startswith("DaemonSet/")}
    assert names == {"DaemonSet/nvidia-dra-driver-kubelet-plugin", f"DaemonSet/{VALIDATOR}"}


def test_the_kubelets_folder_of_the_exporter() -> None:
    """kubeletRootDir changes the folder on the node; in the container it stays where the exporter looks."""
    pod = pod_of(rendered(gpuCluster={"hostPaths": {"kubeletRootDir": "/data"}}), EXPORTER)
    found = mounts(pod, EXPORTER)["/var/lib/kubelet/pod-resources"]
    assert found["from"]["hostPath"]["path"] == "/data/pod-resources"


def test_monitors_where_prometheus_is() -> None:
    """A ServiceMonitor needs its switch and the Prometheus operator."""
    assert f"ServiceMonitor/{EXPORTER}" in exporter()
    assert f"ServiceMonitor/{EXPORTER}" not in exporter(serviceMonitor={"enabled": False})
    assert f"ServiceMonitor/{EXPORTER}" not in rendered(gpuCluster={}, cluster={"monitoring": False})


def test_the_validator_looks_like_the_one_that_upgrades_wait_for() -> None:
    """Its pods carry app=nvidia-operator-validator, whatever labels the policy adds, and are selected by their name."""
    bodies = rendered(gpuCluster={"daemonsets": {"labels": {"app.kubernetes.io/name": "x"}}})
    body = bodies[f"DaemonSet/{VALIDATOR}"]
    labels = body["spec"]["template"]["metadata"]["labels"]
    assert body["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": VALIDATOR}
    assert (labels["app"], labels["app.kubernetes.io/name"]) == ("nvidia-operator-validator", VALIDATOR)


def test_the_validator_has_no_rights() -> None:
    """No role, no privileges, no folder of the node: the injected GPU is all it needs."""
    bodies = rendered(gpuCluster={})
    assert not [key for key in bodies if key.partition("/")[0].endswith("Role") and VALIDATOR in key]
    pod = pod_of(bodies, VALIDATOR)
    assert "volumes" not in pod
    assert "securityContext" not in container(pod, "gpu-validation")


def test_pull_settings_of_the_validator() -> None:
    """It is pulled as the DRA driver is, with the secrets for its own image before those."""
    gpu_cluster = {"draDriver": {"imagePullPolicy": "Always", "imagePullSecrets": ["a"]}}
    pod = pod_of(rendered(gpuCluster=gpu_cluster, validator={"imagePullSecrets": ["b"]}), VALIDATOR)
    assert pod["imagePullSecrets"] == [{"name": "b"}, {"name": "a"}]
    assert pod["containers"][0]["imagePullPolicy"] == "Always"
