"""The section `queues` of a policy: GPUs that teams may use, as custom resources of Acme's own.

    constructs:
      queues:
        teams: {research: 8, serving: 4}

`for_cluster` looks at what the cluster is: no team gets more GPUs than its pools have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from gpustack.cluster.resolve import Cluster


class Queues(BaseModel):
    """Teams, and the GPUs that each may use at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    construct: ClassVar[str] = "acme_queues.queue:GpuQueues"

    teams: dict[str, int]

    def for_cluster(self, cluster: Cluster) -> Queues:
        """The same teams, none with more GPUs than there are."""
        pools = cluster.spec.nodePools
        if any(pool.count is None or pool.gpusPerNode is None for pool in pools) or not pools:
            return self
        total = sum((pool.count.max or 0) * (pool.gpusPerNode or 0) for pool in pools if pool.count)
        return Queues(teams={team: min(gpus, total) for team, gpus in self.teams.items()})
