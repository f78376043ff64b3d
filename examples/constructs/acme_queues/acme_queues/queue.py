"""A plain cdk8s construct: it knows nothing of gpustack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cdk8s
from constructs import Construct

if TYPE_CHECKING:
    from . import Queues


class GpuQueues(Construct):
    """A GpuQueue for each team."""

    def __init__(self, scope: Construct, id: str, queues: Queues) -> None:  # noqa: A002 - cdk8s' own name for it
        super().__init__(scope, id)
        for team, gpus in sorted(queues.teams.items()):
            queue = cdk8s.ApiObject(
                self,
                team,
                api_version="acme.example/v1",
                kind="GpuQueue",
                metadata=cdk8s.ApiObjectMetadata(name=team),
            )
            queue.add_json_patch(cdk8s.JsonPatch.add("/spec", {"gpus": gpus}))
