"""Trials of GPUs carried out: pods made, waited for, and taken away again whatever comes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ...api.expectations import Kind
from ...live.nodes import Hit
from ...live.state import raw
from ...live.trials import GIVEN_UP, Trial
from ...reconciler.shell.cluster import Cluster, Conflict, NotFound, Selection

POD, NODE = raw(Kind("v1", "Pod", "any")), raw(Kind("v1", "Node"))
PAUSE, SLACK = 2.0, 60
"""Seconds between two looks, and how much longer than the pod one waits for its kubelet to say something."""


async def carried_out(cluster: Cluster, given: Iterable[Trial | Hit]) -> list[Hit]:
    """What came of the trials among what was GIVEN, side by side: hits of those that failed, and the other hits."""
    every = [*given]
    ran = await asyncio.gather(*(_tried(cluster, each) for each in every if isinstance(each, Trial)))
    return [*(each for each in every if isinstance(each, Hit)), *(hit for hits in ran for hit in hits)]


async def _tried(cluster: Cluster, trial: Trial) -> list[Hit]:
    """What came of TRIAL. A node that has passed loses its taint, one that hasn't keeps it and is given up."""
    name, space = trial.body["metadata"]["name"], trial.body["metadata"]["namespace"]
    try:
        uid = (await cluster.create(POD, trial.body, namespace=space)).uid
    except Conflict:
        what = f"is not tried: there is a pod {space}/{name}; delete it where nobody waits for it"
        return [Hit("LIV702", what, trial.node, trial.path)]
    try:
        why = await _ended(cluster, trial, Selection(space, fields=f"metadata.name={name}"))
    finally:
        with contextlib.suppress(NotFound):
            await asyncio.shield(cluster.delete(POD, name, namespace=space, uid=uid))
    sys.stderr.write(f"{trial.node}: {why or 'passed'}\n")
    if trial.taint:
        await _told(cluster, trial, why)
    return [Hit("LIV701", why, trial.node, trial.path)] if why else []


async def _ended(cluster: Cluster, trial: Trial, which: Selection) -> str:
    """Why the pod of TRIAL, which WHICH selects, did not pass, "" where it did; once it has ended, or its time has."""
    status: dict[str, Any] = {}
    for _ in range(int((trial.body["spec"]["activeDeadlineSeconds"] + SLACK) / PAUSE)):
        pods = (await cluster.list(POD, which)).items
        status = pods[0].get("status") or {} if pods else {"reason": "somebody has deleted its pod", "phase": "Failed"}
        if status.get("phase") in {"Succeeded", "Failed"}:
            break
        await asyncio.sleep(PAUSE)
    states = [one for each in status.get("containerStatuses") or [] for one in (each.get("state") or {}).values()]
    words = [str(each[key]).strip() for each in [status, *states] for key in ("reason", "message") if each.get(key)]
    said = ": ".join(words) or "it has not ended"
    return "" if status.get("phase") == "Succeeded" else f"the program did not pass: {said}"


async def _told(cluster: Cluster, trial: Trial, why: str) -> None:
    """Write on the node what came of its acceptance; again where it has changed meanwhile."""
    body: dict[str, Any] = {"metadata": {"annotations": {GIVEN_UP: f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ} {why}"[:900]}}}
    for _ in range(5):
        if not why:
            (node,) = (await cluster.list(NODE, Selection(fields=f"metadata.name={trial.node}"))).items
            left = [each for each in node["spec"].get("taints") or [] if (each["key"], each["effect"]) != trial.taint]
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            body = {"metadata": version, "spec": {"taints": left}}
        with contextlib.suppress(Conflict):
            await cluster.patch(NODE, trial.node, body)
            return
