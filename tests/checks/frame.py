"""What snippets of a rule's page stand in when they are tried."""

from __future__ import annotations

from typing import Any

FRAME: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {"kubernetesVersion": "1.34", "containerRuntime": "containerd"},
    "nodePools": [{"name": "training", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}],
}


def framed(snippet: dict[str, Any]) -> dict[str, Any]:
    """The spec of a cluster with what SNIPPET says."""
    cluster = {**FRAME["cluster"], **snippet.get("cluster", {})}
    return {**FRAME, **snippet, "cluster": cluster}
