"""Inputs of the DaemonSets that pull the images of drivers beforehand."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..driver.driver_inputs import DriverInputs
from ..driver.nvidia_drivers_inputs import NvidiaDriversInputs
from ..parts.common_inputs import Inputs
from .node_policies_inputs import drivers_of


class PrepullInputs(Inputs):
    """`driver` and `drivers` are what the images are computed from, by so many nodes at a time as `at_once`."""

    at_once: int | str = "100%"
    openshift: bool = False
    driver: DriverInputs | None = None
    drivers: NvidiaDriversInputs | None = None


def from_cluster(cluster: Cluster) -> PrepullInputs | None:
    """None where nobody waits for images, or no driver is rendered."""
    section, drivers = cluster.spec.reconciler, drivers_of(cluster)
    if section is None or section.prepull is None or drivers is None or drivers == (None, None):
        return None
    several, share = drivers.several, section.prepull.maxUnavailable
    return PrepullInputs(
        openshift=cluster.platform.security_constraints, driver=drivers.section, drivers=several, at_once=share
    )
