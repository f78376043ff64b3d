"""Inputs of the device plugin for Kata containers."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand


class KataDevicePluginInputs(OperandInputs):
    """Nothing but the shared fields."""


def from_cluster(cluster: Cluster) -> KataDevicePluginInputs | None:
    """None where no node serves Kata containers."""
    spec = cluster.spec
    section = spec.kataSandboxDevicePlugin
    if not cluster.sandbox or not section.enabled or not cluster.kata:
        return None
    return KataDevicePluginInputs(**operand(spec, section, "kataSandboxDevicePlugin"))
