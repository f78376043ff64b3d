"""The node labels by which operands are paused and brought back: what driver-manager and mig-manager do to them.

Values and their meaning: reconciler.md L19 to L23. Both programs write blindly, without looking at who wrote before;
that is what makes them worth simulating.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.control_plane.api import STRATEGIC
from tests.control_plane.pod import Pod

DEPLOY = "nvidia.com/gpu.deploy."
DRIVER_PAUSE = "paused-for-driver-upgrade"
MIG_PAUSE = "paused-for-mig-change"

CONTAINER = (
    "driver",
    "container-toolkit",
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm",
    "dcgm-exporter",
    "node-status-exporter",
    "operator-validator",
    "client",
)
"""What a node for containers gets (reconciler.md 1.4), besides `mig-manager` where its GPUs are capable."""

APPS = {
    "operator-validator": "nvidia-operator-validator",
    "container-toolkit": "nvidia-container-toolkit-daemonset",
    "device-plugin": "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery": "gpu-feature-discovery",
    "dcgm": "nvidia-dcgm",
    "dcgm-exporter": "nvidia-dcgm-exporter",
    "mig-manager": "nvidia-mig-manager",
    "sandbox-device-plugin": "nvidia-sandbox-device-plugin-daemonset",
    "sandbox-validator": "nvidia-sandbox-validator",
    "vgpu-device-manager": "nvidia-vgpu-device-manager",
}
"""Component -> the label `app` of its pods (reconciler.md 1.4)."""


def deployed(*more: str) -> dict[str, str]:
    """The labels of a node for containers, and of MORE components."""
    return {"nvidia.com/gpu.present": "true", **{DEPLOY + name: "true" for name in (*CONTAINER, *more)}}


async def write(pod: Pod, labels: Mapping[str, str | None]) -> None:
    """Write node labels, as a strategic merge patch without a precondition; None takes one away."""
    if labels:
        patch = {"metadata": {"labels": dict(labels)}}
        await pod.kubelets.call(pod.kubelets.api.patch, "Node", pod.machine.name, patch, how=STRATEGIC)


async def components(pod: Pod, names: Iterable[str]) -> dict[str, str]:
    """The present values of `gpu.deploy.NAME`, "" where absent."""
    node = await pod.kubelets.call(pod.kubelets.api.get, "Node", pod.machine.name)
    labels = node["metadata"].get("labels", {})
    return {name: labels.get(DEPLOY + name, "") for name in names}


def paused_for_driver(value: str) -> str:
    """What driver-manager makes of a value (L19 to L21): opt-outs and what was never deployed stay."""
    if value in {"", "false"} or value.endswith(DRIVER_PAUSE):
        return value
    return DRIVER_PAUSE if value == "true" else f"{value}_{DRIVER_PAUSE}"


def back_from_driver(value: str) -> str:
    """What driver-manager restores (L21)."""
    if value == DRIVER_PAUSE:
        return "true"
    return value.removesuffix(f"_{DRIVER_PAUSE}")


def paused_for_mig(value: str) -> str:
    """What mig-manager makes of a value: anything but an opt-out is paused, what is absent too (L22)."""
    return value if value == "false" else MIG_PAUSE


async def wait_gone(pod: Pod, names: Iterable[str]) -> bool:
    """Wait until the node has no pods of these components in the pod's namespace; False when it takes too long."""
    apps = {APPS[name] for name in names if name in APPS}

    def none() -> bool:
        there = pod.kubelets.on(pod.machine)
        return not any(one.app in apps and one.namespace == pod.namespace for one in there)

    return await pod.within(none, pod.kubelets.pace.pod_wait)
