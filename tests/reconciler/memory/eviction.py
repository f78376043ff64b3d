"""Evictions that happen, and the controller that counts the pods of PodDisruptionBudgets.

An allowance is used up before the pod is deleted, so an eviction that names another UID burns it (reconciler.md A11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpustack.reconciler.memory.eviction import BUDGETS, healthy, selects, tried
from gpustack.reconciler.memory.server import Document, stamp
from gpustack.reconciler.shell.cluster import PODS, Conflict

from .server import Server


def evict(server: Server, pod: Document, body: Mapping[str, Any], *, dry_run: bool) -> None:
    """Delete POD if its budget allows that. Raises `TooMany`, `Conflict` or a 500."""
    options = body.get("deleteOptions") or {}
    dry_run = dry_run or bool(options.get("dryRun"))
    budget = tried(server, pod)
    if budget is not None and not dry_run:
        allowed = budget["status"]["disruptionsAllowed"] - 1
        used = {"disruptionsAllowed": allowed, "disruptedPods": {pod["metadata"]["name"]: stamp(server.now)}}
        server.edit(BUDGETS, budget["metadata"]["name"], {"status": used}, budget["metadata"]["namespace"])
    uid = (options.get("preconditions") or {}).get("uid", "")
    if not dry_run:
        server.delete(PODS, server.get(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"]), uid)
    elif uid and uid != pod["metadata"]["uid"]:
        raise Conflict(f"Precondition failed: UID in precondition: {uid}", 409, "Conflict")


def settle_budgets(server: Server) -> None:
    """What the disruption controller does: count the pods of every budget, and say how many may go."""
    for budget in list(server.all(BUDGETS)):
        namespace, spec = budget["metadata"]["namespace"], budget["spec"]
        pods = [pod for pod in server.all(PODS) if pod["metadata"]["namespace"] == namespace and selects(budget, pod)]
        present = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        well = sum(1 for pod in pods if healthy(pod) and "deletionTimestamp" not in pod["metadata"])
        if "maxUnavailable" in spec:
            desired = max(len(pods) - _scaled(spec["maxUnavailable"], len(pods)), 0)
        else:
            desired = _scaled(spec.get("minAvailable", 1), len(pods))
        before = (budget.get("status") or {}).get("disruptedPods") or {}
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": max(well - desired, 0),
            "currentHealthy": well,
            "desiredHealthy": desired,
            "expectedPods": len(pods),
            "disruptedPods": {name: None for name in before if name not in present},
        }
        server.edit(BUDGETS, budget["metadata"]["name"], {"status": status}, namespace)


def _scaled(value: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    return math.ceil(int(value.rstrip("%")) * total / 100) if isinstance(value, str) else value
