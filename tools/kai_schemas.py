"""The Queue of the KAI scheduler, group scheduling.run.ai, as a JSON schema written by hand: no module with it alone is
served.

Source: the type QueueSpec of its API v2 and the default queues in its documentation.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, Schema, obj

NUMBER: Schema = {"type": "number"}
RESOURCE = obj(quota=NUMBER, limit=NUMBER, overQuotaWeight=NUMBER)

KAI: dict[tuple[str, str], Schema] = {
    ("scheduling.run.ai/v2", "Queue"): obj(
        "spec",
        spec=obj(
            displayName=STRING,
            parentQueue=STRING,
            priority={"type": "integer"},
            preemptMinRuntime=STRING,
            reclaimMinRuntime=STRING,
            resources=obj(cpu=RESOURCE, memory=RESOURCE, gpu=RESOURCE),
        ),
    )
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
