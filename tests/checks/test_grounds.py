"""What features ask of Kubernetes, boards, hosts and systems of pools."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from tests.checks.snippets import said as said_of
from tests.checks.spec_rules import paths, said

RULES = {rule.id: rule for rule in all_rules()}
GATE = (
    "cluster: {kubernetesVersion: '%s'}\ndrivers: [{name: default, default: true}]\n"
    "gpuCluster: {draDriver: {featureGates: {%s: %s}}}\n"
)


@pytest.mark.parametrize(
    ("kubernetes", "gate", "found"),
    [
        ("1.34", "DynamicMIG", True),
        ("1.35", "DynamicMIG", True),
        ("1.36", "DynamicMIG", False),
        ("1.35", "NVMLDeviceHealthCheck", True),
        ("1.36", "NVMLDeviceHealthCheck", False),
        ("1.36", "DRAListTypeAttributes", True),
        ("1.34", "TimeSlicingSettings", False),
        ("1.35", "ConsumableShares", True),
        ("1.36", "ConsumableShares", False),
        ("1.36", "HostManagedIMEXDaemon", True),
    ],
)
def test_gates_of_kubernetes(kubernetes: str, gate: str, found: bool) -> None:
    """By the documentation of the DRA driver (guides/gpu-allocation/mig.md, guides/gpu-health-checking.md,
    reference/feature-gates.md) and its pkg/featuregates; a feature that is off asks for nothing."""
    assert bool(paths("GPU483", GATE % (kubernetes, gate, "true"))) == found
    assert not paths("GPU483", GATE % (kubernetes, gate, "false"))


@pytest.mark.parametrize(("product", "found"), [("NVIDIA-L40S", True), ("NVIDIA-H200", False), ("NVIDIA-GB200", True)])
def test_partitions_of_fabric_manager(product: str, found: bool) -> None:
    """They are for single-node NVSwitch systems, and Fabric Manager needs FABRIC_MODE=1 (the DRA driver's
    feature-gates.md).
    """
    policy = GATE % ("1.36", "FabricManagerPartitioning", "true")
    (host,) = said("GPU179", policy)
    assert "FABRIC_MODE=1" in host.what
    assert not said("GPU179", policy.replace("true}}}", "false}}}"))
    assert bool(paths("GPU483", policy + f"nodePools: [{{name: a, os: ubuntu24.04, gpuProduct: {product}}}]")) == found


@pytest.mark.parametrize(
    ("platform", "product", "found"),
    [
        ("eks-al2023", "NVIDIA-GB200", True),
        ("kubeadm-bare-metal-preinstalled-driver", "NVIDIA-GB300", True),
        ("kubeadm-bare-metal", "NVIDIA-GB200", False),
        ("eks-al2023", "NVIDIA-H200", False),
    ],
)
def test_imex_of_the_host(platform: str, product: str, found: bool) -> None:
    """The unit must be disabled and masked where packages of the driver are on the node (its prerequisites.md)."""
    os = "amzn2023" if platform == "eks-al2023" else "ubuntu24.04"
    policy = f"cluster: {{platform: {platform}}}\nnodePools: [{{name: a, os: {os}, gpuProduct: {product}}}]\n"
    assert bool(paths("GPU485", policy + "computeDomains: {enabled: true}")) == found
    assert not paths("GPU485", policy)


@pytest.mark.parametrize(
    ("platform", "os", "found"),
    [
        ("eks-al2023", "bottlerocket1.50", True),
        ("eks-bottlerocket", "bottlerocket1.50", False),
        ("eks-al2023", "amzn2023", False),
        ("kubeadm-bare-metal", "ubuntu22.04", False),
        ("gke-ubuntu", "cos121", True),
    ],
)
def test_systems_with_a_stack_of_their_own(platform: str, os: str, found: bool) -> None:
    """Bottlerocket and Container-Optimized OS bring theirs (data/platforms), whatever the cluster's platform is."""
    pools = f"nodePools: [{{name: a, os: {os}, gpuProduct: NVIDIA-A10G}}]\n"
    assert bool(paths("GPU484", f"cluster: {{platform: {platform}}}\n{pools}")) == found


@pytest.mark.parametrize(("system", "component"), [("bottlerocket1.50", "device-plugin"), ("cos121", "driver")])
def test_the_remedy_for_such_a_system_passes(system: str, component: str) -> None:
    """A node whose label nvidia.com/gpu.deploy.driver is "false" runs no driver pod (operator.md 2.2), so it needs no
    image for its system (GPU435)."""
    pool = f"nodePools: [{{name: a, os: {system}, gpuProduct: NVIDIA-A10G, nodeSelector: {{%s}}}}]\n"
    stack = "cluster: {platform: kubeadm-bare-metal}\n"
    (told, *_) = [hit for hit in said("GPU484", stack + pool % "a: b") if component in hit.remedy]
    assert paths("GPU435", stack + pool % "a: b")
    assert not paths("GPU435", stack + pool % 'nvidia.com/gpu.deploy.driver: "false"')
    assert told.remedy.endswith("spec.nodePools[0].nodeSelector")


ALERT = """
extraObjects:
- apiVersion: monitoring.coreos.com/v1
  kind: PrometheusRule
  metadata: {name: gpus}
  spec: {groups: [{name: gpus, rules: [{alert: Xid, expr: "%s > 0"}]}]}
"""


@pytest.mark.parametrize(
    ("release", "metric", "found"),
    [
        ("v26.3.3", "DCGM_FI_DEV_XID_ERRORS", True),
        ("v26.3.3", "DCGM_FI_DEV_GPU_TEMP", False),
        ("v26.3.1", "DCGM_FI_DEV_XID_ERRORS", False),
    ],
)
def test_alerts_on_series_that_are_missing(release: str, metric: str, found: bool) -> None:
    """The names of NVIDIA/dcgm-exporter issue 700, which is about 4.5.3-4.8.2."""
    assert bool(paths("GPU533", f"release: {release}{ALERT % metric}")) == found


@pytest.mark.parametrize(
    ("exporter", "path"),
    [
        ("{version: 4.5.3-4.8.2-distroless}", "version"),
        ("{image: 'nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless'}", "image"),
        ("{enabled: false, version: 4.5.3-4.8.2-distroless}", ""),
        ("{}", ""),
    ],
)
def test_alerts_on_series_that_are_missing_beside_claims(exporter: str, path: str) -> None:
    """With a gpuCluster its own exporter serves the metrics (operator.md 11.1)."""
    alert = ALERT % "DCGM_FI_DEV_XID_ERRORS"
    beside = f"drivers: [{{name: a, default: true}}]\ngpuCluster: {{dcgmExporter: {exporter}}}{alert}"
    hits = said("GPU533", beside)
    assert bool(hits) == bool(path)
    assert all(hit.remedy.endswith(f"in spec.gpuCluster.dcgmExporter.{path}") for hit in hits)


POD = """
extraObjects:
- apiVersion: v1
  kind: Pod
  metadata: {name: render}
  spec:
    containers:
    - name: main
      image: registry.example.com/a:1
      resources: {limits: {%s: 1}}
      volumeMounts: [{name: v, mountPath: %s}]
    volumes: [{name: v, %s}]
"""


@pytest.mark.parametrize(
    ("release", "resource", "folder", "volume", "found"),
    [
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia", "configMap: {name: p}", True),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia/", "secret: {secretName: p}", True),
        ("v26.7.0", "nvidia.com/gpu", "/etc", "configMap: {name: p}", True),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia/nvidia-application-profiles-rc.d", "configMap: {name: p}", True),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia/nvidia-application-profiles-rc.d", "emptyDir: {}", False),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia/mine", "configMap: {name: p}", False),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia", "emptyDir: {}", False),
        ("v26.7.0", "cpu", "/etc/nvidia", "configMap: {name: p}", False),
        ("v26.3.3", "nvidia.com/gpu", "/etc/nvidia", "configMap: {name: p}", False),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia-mine", "configMap: {name: p}", False),
    ],
)
def test_folder_that_the_toolkit_writes(
    tmp_path: Path, release: str, resource: str, folder: str, volume: str, found: bool
) -> None:
    """container-toolkit v1.20 makes /etc/nvidia/nvidia-application-profiles-rc.d and writes there (NVIDIA/
    nvidia-container-toolkit issue 2026, awslabs/amazon-eks-ami issue 2790); v26.3.3 brings v1.19."""
    snippet = f"release: {release}{POD % (resource, folder, volume)}"
    assert bool(said_of(RULES["GPU790"], snippet, Store(tmp_path, own_digest()))) == found
