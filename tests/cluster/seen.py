"""What those say of a node who look at what it offers: `gpustack verify`, and the reconciler before it goes back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from gpustack.api.node_policy import NodePolicy
from gpustack.api.objects import Node
from gpustack.cluster import expectations
from gpustack.cluster.pool import Pool
from gpustack.live import nodes
from gpustack.reconciler.core import verify
from gpustack.reconciler.core.admission import operation_for
from gpustack.reconciler.core.due import Due
from gpustack.reconciler.core.record import Target
from gpustack.reconciler.core.snapshot import Snapshot
from gpustack.reconciler.core.view import View


def amiss(pool: Pool, spec: Mapping[str, Any], resources: Mapping[str, int]) -> list[list[str]]:
    """What `verify`, and the reconciler by SPEC, that of a NodePolicy, have against a node of POOL that offers
    RESOURCES.
    """
    offered = {name: str(count) for name, count in resources.items()}
    body = {"metadata": {"name": "n", "labels": pool.all_labels}, "status": {"allocatable": offered}}
    policy = msgspec.convert({"spec": spec}, NodePolicy)
    view = View(msgspec.convert(body, Node), (policy,))
    known = Snapshot(datetime(2026, 11, 1, tzinfo=UTC), "gpu-operator")
    operation = operation_for(known, view, policy, Due(("install",), Target()))
    hits = [hit.what for hit in nodes._offered(expectations.nodes(pool), body) if hit.id == "LIV501"]
    return [hits, list(verify._resources(view, operation))]


def agreed(pool: Pool, spec: Mapping[str, Any], resources: Mapping[str, int]) -> bool:
    """Whether both are content with RESOURCES, and neither with one less of each."""
    less = {name: count - 1 for name, count in resources.items()}
    return amiss(pool, spec, resources) == [[], []] and all(amiss(pool, spec, less))
