"""What is rendered into a cluster, as little of it as the program and the simulated controllers look at: the driver's
DaemonSet, those of the operands, NodePolicies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from gpustack.api import keys
from gpustack.reconciler.memory.server import Document

NAMESPACE = "gpu-operator"
DRIVER = "nvidia-driver-daemonset"
PULLER = f"{DRIVER}-images"
"""Pulls the driver's images beforehand."""
POOL = "example.com/pool"
MIG_MANAGER, PLUGIN, FEATURES, VALIDATOR = (
    "nvidia-mig-manager",
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
    "nvidia-operator-validator",
)
STARTUP = {"key": "example.com/startup", "effect": "NoSchedule"}
"""A taint with which a platform may bring up nodes; the stack tolerates it."""
OPERANDS = {
    PLUGIN: "device-plugin",
    FEATURES: "gpu-feature-discovery",
    MIG_MANAGER: "mig-manager",
    VALIDATOR: "operator-validator",
}
"""The DaemonSets besides the driver's, each with the component that its nodeSelector names."""
COMPONENTS = ("driver", *OPERANDS.values())

LAYOUTS: Mapping[str, Mapping[str, int]] = {
    "all-disabled": {"nvidia.com/gpu": 2},
    "halves": {"nvidia.com/mig-3g.40gb": 4},
    "small": {"nvidia.com/mig-1g.10gb": 14},
}
"""Names of MIG layouts, and what a node of two GPUs offers with them."""


def base(name: str) -> str:
    """The layout that NAME stands for: the program writes another content of it under a name with a digest."""
    return re.sub("-[0-9a-f]{8}$", "", name)


def layouts_map(content: str) -> Document:
    """What is rendered of the ConfigMap that the MIG managers read: every layout has the CONTENT of that name."""
    wanted = {name: [{"devices": content, "layout": name}] for name in LAYOUTS}
    return {
        "metadata": {"name": keys.LAYOUTS, "namespace": NAMESPACE},
        "data": {
            keys.LAYOUTS_WANTED: json.dumps(wanted),
            keys.LAYOUTS_DIGESTS: json.dumps(dict.fromkeys(LAYOUTS, content)),
        },
    }


def daemon_set(name: str, component: str, labels: Mapping[str, str], env: Mapping[str, str] | None = None) -> Document:
    """A DaemonSet that runs where its component is to be deployed."""
    container: Document = {"name": name, "image": f"example.com/{name}"}
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in sorted(env.items())]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": dict(labels)},
            "template": {
                "metadata": {"labels": dict(labels)},
                "spec": {
                    "nodeSelector": {f"{keys.DEPLOY}{component}": "true"},
                    "containers": [container],
                    "tolerations": [
                        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
                        for key in ("nvidia.com/gpu", STARTUP["key"])
                    ],
                },
            },
        },
    }


def driver_set(version: str, digest: str = "") -> Document:
    """The driver's DaemonSet. DIGEST tells what is installed; without, every version installs something else."""
    labels = {"app": DRIVER, "app.kubernetes.io/component": "nvidia-driver"}
    env = {"DRIVER_CONFIG_DIGEST": digest or f"digest-{version}", "VERSION": version}
    made = daemon_set(DRIVER, "driver", labels, env)
    made["metadata"]["annotations"] = {keys.REVISION: f"{version}/{digest}"}
    return made


def puller_set(version: str) -> Document:
    """The DaemonSet that pulls the images of a driver beforehand, replaced as it changes."""
    made = daemon_set(PULLER, "driver", {"app": PULLER})
    made["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    made["spec"]["template"]["metadata"]["labels"][keys.IMAGES] = f"images-{version}"
    return made


def operand_sets() -> list[Document]:
    """The DaemonSets of the operands."""
    return [daemon_set(name, component, {"app": name}) for name, component in OPERANDS.items()]


def node_policy(
    name: str = "gpus", *, version: str = "1", digest: str = "", mig: str = "", content: str = "1", **spec: Any
) -> Document:
    """The NodePolicy of the pool NAME, made with the driver VERSION; SPEC goes over the rest."""
    layout = LAYOUTS[mig or "all-disabled"]
    made: Document = {
        "pools": [name],
        "nodeSelector": {POOL: name},
        "components": list(COMPONENTS),
        "migManager": True,
        "gpu": {"resources": dict(layout), "migCapable": True},
        "driver": {"daemonSets": [{"name": DRIVER, "revision": f"{version}/{digest}"}]},
        "upgradeAnnotation": True,
        "upgrade": {"maxParallel": 1, "maxUnavailable": 1},
        "fleet": {"maxParallel": 0, "maxUnavailable": "100%"},
    }
    if spec.get("upgrade", {}).get("prepull"):
        made["driver"]["daemonSets"][0]["images"] = f"images-{version}"
    if mig:
        made["mig"] = {"config": mig, "digest": content}
    return {"metadata": {"name": name}, "spec": {**made, **spec}}
