"""What features ask of Kubernetes, boards, hosts and systems of pools."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from tests.checks.snippets import said as said_of
from tests.checks.spec_rules import paths

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
    ],
)
def test_gates_of_kubernetes(kubernetes: str, gate: str, found: bool) -> None:
    """By the documentation of the DRA driver (guides/gpu-allocation/mig.md, guides/gpu-health-checking.md) and its
    pkg/featuregates; a feature that is off asks for nothing."""
    assert bool(paths("GPU483", GATE % (kubernetes, gate, "true"))) == found
    assert not paths("GPU483", GATE % (kubernetes, gate, "false"))


@pytest.mark.parametrize(("product", "found"), [("NVIDIA-L40S", True), ("NVIDIA-H200", False), ("NVIDIA-GB200", True)])
def test_partitions_of_fabric_manager(product: str, found: bool) -> None:
    """They are for single-node NVSwitch systems (the DRA driver's feature-gates.md)."""
    policy = GATE % ("1.36", "FabricManagerPartitioning", "true")
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
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia", "emptyDir: {}", False),
        ("v26.7.0", "cpu", "/etc/nvidia", "configMap: {name: p}", False),
        ("v26.3.3", "nvidia.com/gpu", "/etc/nvidia", "configMap: {name: p}", False),
        ("v26.7.0", "nvidia.com/gpu", "/etc/nvidia-mine", "configMap: {name: p}", False),
    ],
)
def test_folder_that_the_toolkit_writes(
    tmp_path: Path, release: str, resource: str, folder: str, volume: str, found: bool
) -> None:
    """container-toolkit v1.20 writes there (awslabs/amazon-eks-ami issue 2790); v26.3.3 brings v1.19."""
    snippet = f"release: {release}{POD % (resource, folder, volume)}"
    assert bool(said_of(RULES["GPU790"], snippet, Store(tmp_path, own_digest()))) == found
