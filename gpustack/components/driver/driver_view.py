"""One driver of a cluster as its inputs read it, wherever the policy describes it: in the section `driver`, in a node
pool that overrides fields of that, or as one of `drivers`.

Solves: eighty fields are the same in all three places, and two readings of them never stay equal. So each place makes
a view, and one set of functions reads that. A view says where a field stands, so that what is wrong is told of the
place that the user wrote. Rejected: a spec in which the one stands in the other's place. It is a policy that nobody
wrote: whatever it is asked beside the driver is wrong, and its findings had to be moved by replacing text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...policy.language.driver import Driver
from ...policy.language.host import GdrCopy, Gds
from ...policy.language.spec import ClusterPolicySpec


@dataclass(frozen=True)
class DriverView:
    """The sections of a driver, and the POOLS whose nodes it is for. `at` is where a field of them stands in the
    policy, by what the section calls it: "driver.usePrecompiled" may be "drivers[1].usePrecompiled"."""

    cluster: Cluster
    driver: Driver
    gds: Gds
    gdrcopy: GdrCopy
    pools: tuple[Pool, ...]
    at: Callable[[str], str] = str

    @property
    def spec(self) -> ClusterPolicySpec:
        """The effective spec, for all that is not the driver's."""
        return self.cluster.spec

    @classmethod
    def section(cls, cluster: Cluster) -> Self:
        """The section `driver`, for all pools."""
        spec = cluster.spec
        return cls(cluster, spec.driver, spec.gds, spec.gdrcopy, cluster.pools)
