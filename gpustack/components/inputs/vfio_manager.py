"""Inputs of the vfio-manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...policy.workloads import sandbox
from .common import OperandInputs, operand
from .driver_manager import driver_manager
from .driver_settings import Manager

if TYPE_CHECKING:
    from ...policy.spec import ClusterPolicySpec


class VfioManagerInputs(OperandInputs):
    """`manager` clears the node first."""

    manager: Manager


def from_spec(spec: ClusterPolicySpec) -> VfioManagerInputs | None:
    """None where no node serves virtual machines, and where the nodes bind their GPUs themselves."""
    section = spec.vfioManager
    if not sandbox(spec) or not section.enabled:
        return None
    shared = operand(spec, section, "vfioManager")
    secrets = (*(section.driverManager.imagePullSecrets or ()), *shared["pull_secrets"])
    manager = driver_manager(spec, section.driverManager, "vfioManager.driverManager")
    return VfioManagerInputs(**{**shared, "pull_secrets": secrets}, manager=manager)
