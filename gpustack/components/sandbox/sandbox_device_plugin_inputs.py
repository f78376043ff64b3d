"""Inputs of the device plugin for virtual machines of KubeVirt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cluster.workloads import offered_to_kubevirt
from ..parts.common_inputs import OperandInputs, operand

if TYPE_CHECKING:
    from ...policy.language.spec import ClusterPolicySpec


class SandboxDevicePluginInputs(OperandInputs):
    """Nothing but the shared fields."""


def from_spec(spec: ClusterPolicySpec) -> SandboxDevicePluginInputs | None:
    """None where no node serves virtual machines, and where they are Kata's."""
    if not offered_to_kubevirt(spec):
        return None
    return SandboxDevicePluginInputs(**operand(spec, spec.sandboxDevicePlugin, "sandboxDevicePlugin"))
