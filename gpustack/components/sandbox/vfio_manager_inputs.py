"""Inputs of the vfio-manager."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..driver.driver_settings_inputs import Manager, driver_manager
from ..parts.common_inputs import OperandInputs, operand


class VfioManagerInputs(OperandInputs):
    """`manager` clears the node first."""

    manager: Manager


def from_cluster(cluster: Cluster) -> VfioManagerInputs | None:
    """None where no node serves virtual machines, and where the nodes bind their GPUs themselves."""
    spec = cluster.spec
    section = spec.vfioManager
    if not cluster.sandbox or not section.enabled:
        return None
    shared = operand(spec, section, "vfioManager")
    secrets = (*(section.driverManager.imagePullSecrets or ()), *shared["pull_secrets"])
    manager = driver_manager(spec, section.driverManager, "vfioManager.driverManager")
    return VfioManagerInputs(**{**shared, "pull_secrets": secrets}, manager=manager)
