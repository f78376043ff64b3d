"""Queues in front of the tenants' quotas: Kueue's, or those of the KAI scheduler.

Solves: what a tenant is given stands in one table, and its queue and its quota can't differ. Kueue takes the first
flavor of a queue that has room, so a pool is a flavor; the labels and taints are those by which the pool is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ...model import Body, Stage
from ..component import Component
from ..parts.kube import metadata
from ..parts.pod import sparse
from .queues_inputs import FlavorInputs, QueueInputs, QueuesInputs

KUEUE, KAI = "kueue.x-k8s.io/v1beta2", "scheduling.run.ai/v2"
HOME = "kubernetes.io/metadata.name"
FREE: Body = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
"""Of KAI: as much as there is."""


class Queues(Component[QueuesInputs]):
    """After what nodes need: no driver waits because Kueue isn't there."""

    stage: ClassVar[Stage] = "operands"

    def manifests(self, inputs: QueuesInputs) -> Iterator[Body]:
        if inputs.kind == "kai":
            yield kai(inputs.cohort, FREE)
            for queue in inputs.queues:
                quota = sum(number for part in queue.quotas.values() for number in part.values())
                most = -1 if inputs.borrow else quota
                yield kai(queue.tenant, {"quota": quota, "limit": most, "overQuotaWeight": 1}, inputs.cohort)
            return
        yield from map(flavor, inputs.flavors)
        for queue in inputs.queues:
            yield cluster_queue(queue, inputs)
            yield {
                "apiVersion": KUEUE,
                "kind": "LocalQueue",
                "metadata": metadata(inputs.local_queue, queue.namespace),
                "spec": {"clusterQueue": queue.tenant, "stopPolicy": "None"},
            }


def kai(name: str, gpu: Body, parent: str = "") -> Body:
    """The queue NAME of the KAI scheduler, below PARENT."""
    resources = {"cpu": dict(FREE), "memory": dict(FREE), "gpu": dict(gpu)}
    return {
        "apiVersion": KAI,
        "kind": "Queue",
        "metadata": metadata(name),
        "spec": {**sparse(parentQueue=parent), "resources": resources},
    }


def flavor(one: FlavorInputs) -> Body:
    """The ResourceFlavor of a pool. Its jobs tolerate the pool's taints: they are why they are there."""
    tolerations = [
        sparse(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
        for key, value, effect in one.taints
    ]
    return {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": metadata(one.pool),
        "spec": sparse(nodeLabels=dict(one.labels), tolerations=tolerations),
    }


def cluster_queue(queue: QueueInputs, inputs: QueuesInputs) -> Body:
    """The ClusterQueue of a tenant, with what the API server would fill in."""
    covered = sorted({name for part in queue.quotas.values() for name in part})
    lent = {} if inputs.borrow else {"borrowingLimit": "0"}
    flavors = [
        {
            "name": pool,
            "resources": [
                *({"name": name, "nominalQuota": amount} for name, amount in inputs.beside.items()),
                *({"name": name, "nominalQuota": str(part.get(name, 0)), **lent} for name in covered),
            ],
        }
        for pool, part in queue.quotas.items()
    ]
    spec: dict[str, Any] = {
        "cohortName": inputs.cohort,
        "namespaceSelector": {"matchLabels": {HOME: queue.namespace}},
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "borrowWithinCohort": {"policy": "Never"},
            "reclaimWithinCohort": "Any" if inputs.borrow else "Never",
            "withinClusterQueue": "LowerPriority",
        },
        "resourceGroups": [{"coveredResources": [*inputs.beside, *covered], "flavors": flavors}],
    }
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": metadata(queue.tenant), "spec": spec}
