"""What OpenShift has and other platforms lack: monitoring of its own, rules of namespaces, its finder (operator.md 2.5,
8, 9.3)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.components import DcgmExporter, Namespace, NodeFeatureDiscovery, NodeStatusExporter, OpenShiftMonitoring
from gpustack.components.base import base_inputs
from gpustack.components.monitoring import monitoring_inputs
from gpustack.components.nfd import nfd_inputs as nfd
from gpustack.model import Body
from tests.components.common import grants, render, spec

OPENSHIFT: dict[str, Any] = {"platform": "openshift", "openshift": {"version": "4.18.1"}}
RECORDED = {
    "accelerator_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "accelerator_memory_used_bytes": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "accelerator_memory_total_bytes": "DCGM_FI_DEV_FB_TOTAL",
    "accelerator_power_usage_watts": "DCGM_FI_DEV_POWER_USAGE",
    "accelerator_temperature_celsius": "DCGM_FI_DEV_GPU_TEMP",
    "accelerator_sm_clock_hertz": "DCGM_FI_DEV_SM_CLOCK",
    "accelerator_memory_clock_hertz": "DCGM_FI_DEV_MEM_CLOCK",
}
"""Source: 9.3."""


def labels(psa: bool = False, **cluster: Any) -> dict[str, str]:
    """The labels of the namespace."""
    inputs = base_inputs.namespace(resolve(spec(cluster=cluster, psa={"enabled": psa})))
    assert inputs is not None
    found: dict[str, str] = render(Namespace, inputs)[f"Namespace/{inputs.name}"]["metadata"].get("labels", {})
    return found


def test_namespace_is_monitored() -> None:
    """OpenShift's Prometheus looks into nvidia-gpu-operator; nothing is labelled elsewhere or for other names (2.5)."""
    monitored = {"openshift.io/cluster-monitoring": "true"}
    assert labels(**OPENSHIFT, namespace="nvidia-gpu-operator") == monitored
    assert labels(**OPENSHIFT, namespace="nvidia-gpu-operator", monitoring=False) == {}
    assert labels(**OPENSHIFT, namespace="gpus") == {}
    assert labels(namespace="nvidia-gpu-operator", monitoring=True) == {}


def test_namespace_is_privileged() -> None:
    """`psa.enabled` opens the namespace; on OpenShift only nvidia-gpu-operator, which is the stack's alone (2.5)."""
    modes = {f"pod-security.kubernetes.io/{mode}" for mode in ("audit", "enforce", "warn")}
    assert modes == set(labels(psa=True, namespace="gpus"))
    assert modes < set(labels(psa=True, **OPENSHIFT, namespace="nvidia-gpu-operator"))
    assert labels(psa=True, **OPENSHIFT, namespace="gpus") == {}


@pytest.mark.parametrize(
    ("platform", "priority", "expected"),
    [("gke-cos", None, True), ("gke-cos", "gpu-high", False), ("eks-al2023", None, False), (None, None, False)],
)
def test_quota_for_critical_pods(platform: str | None, priority: str | None, expected: bool) -> None:
    """GKE alone admits system-critical pods by quota; pods of another class need none there (bug-reports.md B22)."""
    cluster = {"platform": platform} if platform else {}
    inputs = base_inputs.namespace(
        resolve(spec(cluster=cluster, daemonsets={"priorityClassName": priority} if priority else {}))
    )
    assert inputs is not None
    assert any(name.startswith("ResourceQuota/") for name in render(Namespace, inputs)) is expected


def test_prometheus_may_look_around() -> None:
    """OpenShift's Prometheus reads services, endpoints and pods of the namespace; elsewhere it is not asked (9.3)."""
    inputs = monitoring_inputs.openshift_monitoring(resolve(spec(cluster={**OPENSHIFT, "namespace": "gpus"})))
    assert inputs is not None
    bodies = render(OpenShiftMonitoring, inputs)
    verbs, resources = ("get", "list", "watch"), ("services", "endpoints", "pods")
    assert grants(bodies["Role/prometheus-k8s"]) == {f"{each}:{verb}" for each in resources for verb in verbs}
    assert bodies["RoleBinding/prometheus-k8s"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}
    ]
    assert {body["metadata"]["namespace"] for body in bodies.values()} == {"gpus"}
    assert monitoring_inputs.openshift_monitoring(resolve(spec(cluster={**OPENSHIFT, "monitoring": False}))) is None
    assert monitoring_inputs.openshift_monitoring(resolve(spec(cluster={"monitoring": True}))) is None


def exporter_rule(**cluster: Any) -> Body | None:
    """The DCGM exporter's rule for Prometheus."""
    inputs = monitoring_inputs.dcgm_exporter(resolve(spec(cluster=cluster)))
    assert inputs is not None
    return render(DcgmExporter, inputs).get("PrometheusRule/nvidia-dcgm-exporter")


def test_accelerator_metrics() -> None:
    """GPU metrics are recorded under OpenShift's names, with the vendor, every half minute; on OpenShift only (9.3)."""
    rule = exporter_rule(**OPENSHIFT)
    assert rule is not None
    assert validate(rule, "1.33") == []
    (group,) = rule["spec"]["groups"]
    assert (group["name"], group["interval"]) == ("dcgm.accelerator.metrics", "30s")
    assert {each["record"]: each["expr"] for each in group["rules"]} == RECORDED
    assert all(each["labels"] == {"vendor": "nvidia"} for each in group["rules"])
    assert exporter_rule(monitoring=True) is None
    assert exporter_rule(**OPENSHIFT, monitoring=False) is None


def test_node_alerts() -> None:
    """Four warnings after half an hour; toolkit and CUDA count only where the driver works (9.3)."""
    inputs = monitoring_inputs.node_status_exporter(
        resolve(spec(cluster=OPENSHIFT, nodeStatusExporter={"enabled": True}))
    )
    assert inputs is not None
    rule = render(NodeStatusExporter, inputs)["PrometheusRule/nvidia-node-status-exporter-alerts"]
    assert validate(rule, "1.33") == []
    assert rule["metadata"]["labels"] == {"app": "nvidia-node-status-exporter"}
    alerts = rule["spec"]["groups"][0]["rules"]
    assert {(each["for"], each["labels"]["severity"]) for each in alerts} == {("30m", "warning")}
    works = "gpu_operator_node_driver_validation == 1"
    assert {each["alert"]: each["expr"].split("\nAND\n") for each in alerts} == {
        "GPUOperatorNodeDeploymentFailed": ["gpu_operator_node_device_plugin_devices_total == 0\n"],
        "GPUOperatorNodeDeploymentDriverFailed": ["gpu_operator_node_driver_validation == 0\n"],
        "GPUOperatorNodeDeploymentToolkitFailed": ["gpu_operator_node_toolkit_ready == 0", f"{works}\n"],
        "GPUOperatorNodeDeploymentCudaFailed": ["gpu_operator_node_cuda_ready == 0", f"{works}\n"],
    }
    for each in alerts:
        assert "{{ $labels.node }}" in each["annotations"]["description"]
        assert each["annotations"]["summary"]


def test_no_alerts_without_their_exporter() -> None:
    """The operator creates these alerts always; without the exporter nothing could ever raise them (1.4)."""
    assert (
        monitoring_inputs.node_status_exporter(resolve(spec(cluster=OPENSHIFT, nodeStatusExporter={"enabled": False})))
        is None
    )


def finder(**section: Any) -> dict[str, Body]:
    """What the section `nfd` renders to on OpenShift."""
    inputs = nfd.nfd(resolve(spec(cluster=OPENSHIFT, nfd=section)))
    return render(NodeFeatureDiscovery, inputs) if inputs else {}


GUARD = [f"ValidatingAdmissionPolicy{end}/gpustack-nodefeatures-of-own-node" for end in ("", "Binding")]
"""Over what GFD tells the finder."""


def test_openshift_runs_its_own_finder() -> None:
    """`nfd.enabled` asks OpenShift's operator for an instance, and installs nothing (data/platforms, needs)."""
    bodies = finder(enabled=True)
    assert list(bodies) == [*GUARD, "NodeFeatureDiscovery/nfd-instance"]
    body = bodies["NodeFeatureDiscovery/nfd-instance"]
    assert validate(body, "1.33") == []
    assert body["metadata"]["namespace"] == "openshift-nfd"
    pci = yaml.safe_load(body["spec"]["workerConfig"]["configData"])["sources"]["pci"]
    assert {"0300", "0302"} <= set(pci["deviceClassWhitelist"])
    assert pci["deviceLabelFields"] == ["vendor"]
    assert body["spec"]["extraLabelNs"] == ["nvidia.com"]
    assert "image" not in body["spec"]["operand"]
    assert list(finder(enabled=False)) == GUARD


def test_what_a_policy_says_about_the_finder() -> None:
    """Image, PCI classes and label namespaces reach the instance."""
    image = {"repository": "registry.example/nfd", "image": "finder", "version": "v1"}
    body = finder(enabled=True, **image, pciClasses=["12"], labelNamespaces=["example.com"])[
        "NodeFeatureDiscovery/nfd-instance"
    ]["spec"]
    assert body["operand"]["image"] == "registry.example/nfd/finder:v1"
    assert body["extraLabelNs"] == ["example.com", "nvidia.com"]
    assert '"12"' in body["workerConfig"]["configData"]
