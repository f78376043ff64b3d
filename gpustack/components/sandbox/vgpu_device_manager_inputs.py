"""Inputs of the vGPU device manager."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ...cluster.workloads import DEFAULT_VGPU_CONFIG
from ..parts.common_inputs import OperandInputs, operand
from ..plugin.configs_inputs import vgpu_config_map

DEFAULT_NAME = "default"


class VgpuDeviceManagerInputs(OperandInputs):
    """`config` is a ConfigMap of the policy, "" for the default one, which differs between releases; `default` the set
    of devices of nodes that no label gives one.

    What the ConfigMap holds isn't an input, on purpose: pods that restart for it would delete and make the devices of
    all nodes at once. A new set comes to a node by its label.
    """

    config: str = ""
    default: str = DEFAULT_NAME
    release: str = ""


def from_cluster(cluster: Cluster) -> VgpuDeviceManagerInputs | None:
    """None where no node serves virtual machines, and where something else makes the devices."""
    spec = cluster.spec
    section = spec.vgpuDeviceManager
    if not cluster.sandbox or not section.enabled:
        return None
    config = vgpu_config_map(spec).name
    return VgpuDeviceManagerInputs(
        **operand(spec, section, "vgpuDeviceManager"),
        config=config,
        default=section.config.default or DEFAULT_NAME,
        release=spec.release if config in ("", DEFAULT_VGPU_CONFIG) else "",
    )
