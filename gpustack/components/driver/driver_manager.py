"""Clearing a node for virtual machines: the init container of vfio-manager and vGPU manager (operator.md 7.11, 7.14).

It unloads the driver that containers used. Nodes change what they serve by hand and while nothing runs on them, so it
neither evicts nor drains, unless the policy's `driverManager.env` says so.
"""

from collections.abc import Mapping
from typing import Any

from ..parts.common_inputs import Common
from ..parts.daemonset import host_root
from ..parts.pod import PRIVILEGED, Container, Env
from .driver_settings_inputs import Manager
from .driver_volumes import HOST_SYS, RUN_NVIDIA

EVICTION = ("ENABLE_GPU_POD_EVICTION", "ENABLE_AUTO_DRAIN")
"""The variables that tell it to evict (reconciler.md D1)."""


def clear_node(common: Common, manager: Manager, resources: Mapping[str, Any] | None) -> Container:
    """The init container; RESOURCES are those of the component that it runs in."""
    env = Env().field("NODE_NAME", "spec.nodeName").set("NVIDIA_VISIBLE_DEVICES", "void")
    env.set("ENABLE_GPU_POD_EVICTION", False).set("ENABLE_AUTO_DRAIN", False)
    env.field("OPERATOR_NAMESPACE", "metadata.namespace")
    return uninstaller(common, manager, env.policy(manager.env), resources)


def uninstaller(common: Common, manager: Manager, env: Env, resources: Mapping[str, Any] | None) -> Container:
    """MANAGER's container with its environment ENV."""
    command = ["driver-manager"]
    container = Container("k8s-driver-manager", manager.image, manager.pull_policy, command, ["uninstall_driver"], env)
    container.security, container.resources = PRIVILEGED, resources
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    return container.mount(HOST_SYS, "/sys")


def evicts(manager: Manager) -> bool:
    """Whether the policy tells MANAGER to evict or to drain."""
    return any(name in EVICTION and value.lower() not in ("", "false") for name, value in manager.env)
