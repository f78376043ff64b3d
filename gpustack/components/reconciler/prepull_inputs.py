"""Inputs of the DaemonSets that pull the images of drivers beforehand."""

from ...cluster.resolve import Cluster
from ..driver.driver_inputs import DriverInputs
from ..driver.nvidia_drivers_inputs import NvidiaDriversInputs
from ..parts.common_inputs import Inputs
from .node_policies_inputs import drivers_of


class PrepullInputs(Inputs):
    """`driver` and `drivers` are what the images are computed from, `at_once` is how many nodes pull at a time. On
    `openshift` the namespace says which user pods run as."""

    at_once: int | str = "100%"
    openshift: bool = False
    driver: DriverInputs | None = None
    drivers: NvidiaDriversInputs | None = None


def from_cluster(cluster: Cluster) -> PrepullInputs | None:
    """None where nobody waits for images, or no driver is rendered."""
    section = cluster.spec.reconciler
    if section is None or section.prepull is None:
        return None
    drivers = drivers_of(cluster)
    if drivers is None or drivers == (None, None):
        return None
    return PrepullInputs(
        at_once=section.prepull.maxUnavailable,
        openshift=cluster.platform.security_constraints,
        driver=drivers.section,
        drivers=drivers.several,
    )
