"""Fleets to measure with: a project folder of policies and layers, the same bytes for the same arguments.

Three sorts, by what can be shared between clusters. `shapes`: many clusters, few effective specs, as in a fleet that is
cut from templates. `distinct`: no two clusters have the same effective spec, but they differ in what people differ in
(image versions, environment, pools, sharing, a namespace), so components repeat. `unshared`: every cluster puts a label
of its own on every DaemonSet, so that nearly nothing can be taken from another: the worst case.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

Spec = dict[str, Any]

LAYERS: dict[str, Spec] = {
    "base": {
        "release": "v26.7.0",
        "cluster": {"kubernetesVersion": "1.34", "monitoring": True},
        "daemonsets": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]},
        "dcgmExporter": {"serviceMonitor": {"interval": "30s", "scrapeTimeout": "10s"}},
    },
    "bare-metal": {"cluster": {"platform": "kubeadm-bare-metal", "containerRuntime": "containerd"}},
    "eks": {"cluster": {"platform": "eks-al2023", "containerRuntime": "containerd"}},
    "gke": {"cluster": {"platform": "gke-cos", "containerRuntime": "containerd"}},
    "rke2": {"cluster": {"platform": "rke2", "containerRuntime": "containerd"}},
    "aks": {"cluster": {"platform": "aks-ubuntu", "containerRuntime": "containerd"}},
}

SYSTEMS = {
    "bare-metal": ("ubuntu22.04", "ubuntu24.04", "rhel9.4"),
    "eks": ("amzn2023",),
    "gke": ("cos",),
    "rke2": ("ubuntu22.04", "ubuntu24.04"),
    "aks": ("ubuntu24.04",),
}
"""Operating systems of the nodes of each platform's layer."""

LABELS = {"gke": {"gke-no-default-nvidia-gpu-device-plugin": "true"}}
"""Labels that a platform's nodes need."""

PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4", "Tesla-T4")
POOLS = ("training", "inference", "notebooks", "batch", "render", "ci", "research", "vision")
NAMESPACES = ("gpu-operator", "gpu-operator", "gpu-operator", "gpu-operator", "nvidia-gpu-operator", "gpu-system")
DRIVERS = ("580.126.20", "580.142", "590.48.01", "595.58.03")
PLUGINS = ("v0.19.3", "v0.19.4", "v0.20.0")
EXPORTERS = ("4.5.1-4.8.0-distroless", "4.5.2-4.8.1-distroless")
INTERVALS = ("15s", "30s", "60s")


def write(root: Path, clusters: int, sort: str, *, shapes: int = 20, seed: int = 1) -> None:
    """Write the policies of CLUSTERS clusters and their layers below ROOT/policies. SORT as in the docstring above."""
    layers = root / "policies" / "layers"
    layers.mkdir(parents=True)
    for name, spec in LAYERS.items():
        _write(layers / f"{name}.yaml", "PolicyLayer", name, spec)
    for index, spec in enumerate(specs(clusters, sort, shapes=shapes, seed=seed)):
        name = f"cluster-{index:04}"
        _write(root / "policies" / f"{name}.yaml", "ClusterPolicy", name, spec)


def specs(clusters: int, sort: str, *, shapes: int = 20, seed: int = 1) -> list[Spec]:
    """The spec of each cluster's own policy file."""
    rng = random.Random(seed)
    if sort == "shapes":
        distinct = _different(rng, shapes)
        return [distinct[index % shapes] for index in range(clusters)]
    found = _different(rng, clusters)
    if sort == "unshared":
        return [
            spec | {"daemonsets": {"labels": {"example.com/cluster": f"cluster-{index:04}"}}}
            for index, spec in enumerate(found)
        ]
    return found


def changed(spec: Spec) -> Spec:
    """SPEC with another driver and one more variable: a change as a pull request brings it."""
    env = [{"name": "LOG_LEVEL", "value": "debug"}]
    return spec | {"gfd": {"env": env}, "devicePlugin": {**spec.get("devicePlugin", {}), "env": env}}


def rewrite(root: Path, index: int, spec: Spec) -> None:
    """Write SPEC into the policy of cluster INDEX."""
    name = f"cluster-{index:04}"
    _write(root / "policies" / f"{name}.yaml", "ClusterPolicy", name, spec)


def rewrite_layer(root: Path, name: str, spec: Spec) -> None:
    """Write SPEC into the layer NAME."""
    _write(root / "policies" / "layers" / f"{name}.yaml", "PolicyLayer", name, spec)


def _different(rng: random.Random, count: int) -> list[Spec]:
    seen: dict[str, Spec] = {}
    while len(seen) < count:
        spec = _spec(rng)
        seen.setdefault(json.dumps(spec, sort_keys=True), spec)
    return list(seen.values())


def _spec(rng: random.Random) -> Spec:
    """One cluster: a platform, one to four pools, and a few settings that are not the default."""
    layer = rng.choice(list(SYSTEMS))
    spec: Spec = {
        "extends": ["base", layer],
        "cluster": {
            "kubernetesVersion": rng.choice(("1.33", "1.34", "1.34", "1.35", "1.36")),
            "namespace": rng.choice(NAMESPACES),
        },
        "nodePools": [_pool(rng, name, layer) for name in rng.sample(POOLS, rng.randint(1, 4))],
    }
    if rng.random() < 0.5:
        spec["driver"] = {"version": rng.choice(DRIVERS)}
    if rng.random() < 0.4:
        spec["devicePlugin"] = {"version": rng.choice(PLUGINS)}
    if rng.random() < 0.3:
        level = {"name": "NVIDIA_CONTAINER_RUNTIME_LOG_LEVEL", "value": rng.choice(("info", "debug"))}
        spec["toolkit"] = {"env": [level]}
    exporter: Spec = {}
    if rng.random() < 0.4:
        exporter["version"] = rng.choice(EXPORTERS)
    if rng.random() < 0.4:
        exporter["serviceMonitor"] = {"interval": rng.choice(INTERVALS)}
    if rng.random() < 0.3:
        exporter["env"] = [{"name": "DCGM_EXPORTER_INTERVAL", "value": str(rng.choice((5000, 10000, 15000, 60000)))}]
    if exporter:
        spec["dcgmExporter"] = exporter
    if any("mig" in pool.get("sharing", {}) for pool in spec["nodePools"]):
        spec["migManager"] = {"env": [{"name": "WITH_REBOOT", "value": "true"}]}
    if rng.random() < 0.1:
        spec["daemonsets"] = {"labels": {"example.com/cost-centre": f"cc-{rng.randint(100, 130)}"}}
    return spec


def _pool(rng: random.Random, name: str, layer: str) -> Spec:
    product = rng.choice(PRODUCTS)
    pool: Spec = {
        "name": name,
        "os": rng.choice(SYSTEMS[layer]),
        "gpuProduct": product,
        "gpusPerNode": rng.choice((1, 4, 8)),
        "count": rng.randint(1, 40),
        "nodeSelector": {"example.com/pool": f"{name}-{rng.randint(1, 12)}"} | LABELS.get(layer, {}),
    }
    kind = rng.random()
    if kind < 0.35:
        pool["sharing"] = {"timeSlicing": {"replicas": rng.choice((2, 4, 6, 8, 10))}}
    elif kind < 0.45:
        pool["sharing"] = {"mps": {"replicas": rng.choice((2, 4, 8))}}
    elif kind < 0.6 and "A100" in product:
        pool["sharing"] = {"mig": {"layout": rng.choice(({"1g.10gb": 7}, {"3g.40gb": 2}, {"2g.20gb": 3}))}}
    return pool


def _write(path: Path, kind: str, name: str, spec: Spec) -> None:
    document = {"apiVersion": "gpustack.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    path.write_text("\n".join(_lines(document, "")) + "\n", "utf-8")


def _lines(value: Spec, indent: str) -> list[str]:
    """VALUE as YAML, in blocks where people would write blocks."""
    lines: list[str] = []
    for key, item in value.items():
        if isinstance(item, dict) and item and len(indent) < 4 and key != "metadata":
            lines += [f"{indent}{key}:", *_lines(item, indent + "  ")]
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            lines.append(f"{indent}{key}:")
            for entry in item:
                first, *rest = _lines(entry, "")
                lines += [f"{indent}- {first}", *(f"{indent}  {line}" for line in rest)]
        else:
            lines.append(f"{indent}{key}: {json.dumps(item)}")
    return lines
