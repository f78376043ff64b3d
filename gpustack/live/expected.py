"""What a cluster is to be, with the policy's meaning, for who has the policy: `preflight` and `why` ask that too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..api.expectations import Expectation
from ..cluster.expectations import expectation
from ..model import Body

if TYPE_CHECKING:
    from ..cluster.resolve import Cluster


class Expected(Expectation, kw_only=True, frozen=True):
    """An expectation, and the CLUSTER that it is of."""

    cluster: Cluster

    @classmethod
    def of(cls, cluster: Cluster, rendered: Sequence[Body]) -> Expected:
        """What CLUSTER is to be, with what it is RENDERED to."""
        return cls(**msgspec.structs.asdict(expectation(cluster, rendered)), cluster=cluster)
