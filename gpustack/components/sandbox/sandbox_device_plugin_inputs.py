"""Inputs of the device plugin for virtual machines of KubeVirt."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand


class SandboxDevicePluginInputs(OperandInputs):
    """Nothing but the shared fields."""


def from_cluster(cluster: Cluster) -> SandboxDevicePluginInputs | None:
    """None where no node serves virtual machines, and where they are Kata's."""
    spec = cluster.spec
    if not cluster.offered_to_kubevirt:
        return None
    return SandboxDevicePluginInputs(**operand(spec, spec.sandboxDevicePlugin, "sandboxDevicePlugin"))
