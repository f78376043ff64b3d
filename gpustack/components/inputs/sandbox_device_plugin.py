"""Inputs of the device plugin for virtual machines of KubeVirt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common import OperandInputs, operand
from ...policy.workloads import kata, sandbox

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec


class SandboxDevicePluginInputs(OperandInputs):
    """Nothing but the shared fields."""


def from_spec(spec: ClusterPolicySpec) -> SandboxDevicePluginInputs | None:
    """None where no node serves virtual machines, and where they are Kata's."""
    section = spec.sandboxDevicePlugin
    if not sandbox(spec) or not section.enabled or kata(spec):
        return None
    return SandboxDevicePluginInputs(**operand(spec, section, "sandboxDevicePlugin"))
