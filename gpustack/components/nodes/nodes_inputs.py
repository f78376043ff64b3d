"""Inputs of objects by which nodes are made: Karpenter, Node Readiness Controller, machine config operator."""

from collections.abc import Iterator

from ...cluster import autoscaling
from ...cluster.node_host import setup
from ...cluster.pool import Pool
from ...cluster.resolve import Cluster
from ...model import Body
from ...policy.language.autoscaling import Karpenter
from ..parts.common_inputs import Whole
from ..parts.kube import object_of
from ..parts.pod import sparse
from .forms import machine_config

PACED = ["Drifted", "Underutilized"]
"""Why Karpenter takes away nodes with pods; empty ones go at any time."""


def from_cluster(cluster: Cluster) -> Whole | None:
    """Pool by pool; None where no pool has any."""
    return Whole.of(each for pool in cluster.pools for each in _of(pool))


def _of(pool: Pool) -> Iterator[Body]:
    """The objects of POOL. One that can't be scaled as it says (GPU750) has no NodePool."""
    scaling, readiness = pool.said.autoscaling, pool.said.readiness
    if scaling.karpenter and not [*autoscaling.problems(pool)]:
        yield object_of("karpenter.sh/v1", "NodePool", pool.name, _node_pool(pool, scaling.karpenter))
        if offered := autoscaling.overlay(pool):
            capacity = {name: str(number) for name, number in offered.items()}
            over = {"requirements": [_one_of(autoscaling.NODEPOOL, [pool.name])], "capacity": capacity}
            yield object_of("karpenter.sh/v1alpha1", "NodeOverlay", pool.name, over)
    if readiness:
        rule: Body = {
            "conditions": [{"type": key, "requiredStatus": status} for key, status in readiness.conditions.items()],
            "taint": {"key": readiness.taint, "value": "pending", "effect": "NoSchedule"},
            "nodeSelector": sparse(matchLabels=pool.selection),
            "enforcementMode": readiness.mode,
            **({"dryRun": True} if readiness.dryRun else {}),
        }
        yield object_of("readiness.node.x-k8s.io/v1alpha1", "NodeReadinessRule", f"gpustack-{pool.name}", rule)
    if pool.said.host.machineConfigPool and pool.cluster.platform.os_images:
        yield machine_config(setup(pool, "machine-config"), pool)


def _node_pool(pool: Pool, said: Karpenter) -> Body:
    taints, starting = (
        [each.model_dump(exclude_none=True) for each in listed]
        for listed in (pool.said.taints, autoscaling.startup_taints(pool))
    )
    template: Body = {
        "nodeClassRef": autoscaling.node_class(pool, said),
        "requirements": _requirements(pool, said),
        "expireAfter": said.expireAfter,
        **sparse(taints=taints, startupTaints=starting, terminationGracePeriod=said.terminationGracePeriod),
    }
    pace = {"consolidationPolicy": said.consolidate, "consolidateAfter": said.consolidateAfter}
    amounts = {"nodes": pool.said.count and pool.said.count.max, **said.limits}
    return {
        "template": {**sparse(metadata=sparse(labels=autoscaling.given_labels(pool))), "spec": template},
        "disruption": {**pace, "budgets": _budgets(pool)},
        "limits": {name: str(amount) for name, amount in amounts.items()},
        **sparse(weight=said.weight),
    }


def _one_of(key: str, values: list[str]) -> Body:
    return {"key": key, "operator": "In", "values": values}


def _requirements(pool: Pool, said: Karpenter) -> list[Body]:
    """What instances have to be, by what the pool says of its nodes, and what is said beside it."""
    told = {"kubernetes.io/os": ["linux"], **({"kubernetes.io/arch": [pool.arch]} if pool.arch else {})}
    told |= {key: [value] for key, value in pool.said.nodeSelector.items() if autoscaling.known_before(key)}
    told |= sparse(**{autoscaling.INSTANCE: said.instanceTypes, "karpenter.sh/capacity-type": said.capacityTypes})
    more = [sparse(**each.model_dump()) for each in said.requirements]
    return [*(_one_of(key, values) for key, values in told.items()), *more]


def _budgets(pool: Pool) -> list[Body]:
    """How many nodes with pods Karpenter may take away at a time: no more than a roll-out may, and outside of the
    pool's windows none. Karpenter counts with the strictest."""
    budget = pool.budget
    numbers = dict.fromkeys([str(budget.unavailable), *([str(budget.parallel)] if budget.parallel else [])])
    shut = [
        {
            "nodes": "0",
            **({"schedule": schedule, "duration": f"{length // 60}h{length % 60}m"} if schedule else {}),
            "reasons": PACED,
        }
        for schedule, length in autoscaling.closed(budget.windows)
    ]
    return [*({"nodes": number, "reasons": PACED} for number in numbers), *shut]
