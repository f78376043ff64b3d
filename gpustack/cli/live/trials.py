"""What `verify --smoke` and `--acceptance` run: a CUDA program on a node of each pool, a longer one on nodes that wait.

The pod names its node, so no scheduler sees it: nothing is preempted for it, and no autoscaler buys a node because it
waits. So a node is asked whether it is free beforehand; one whose GPUs are shared, or in use, is never taken. Pods are
made, waited for, and taken away again whatever comes.
"""

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...api.expectations import Kind
from ...api.objects import count
from ...catalog import _data
from ...cluster.expectations import Expected
from ...cluster.pool import Pool
from ...components.parts.common_inputs import Common, served
from ...components.parts.pod import sparse
from ...live import nodes
from ...live.nodes import Hit
from ...live.state import State, labels, raw
from ...live.why import NAMED, taken
from ...model import Body, few
from ...reconciler.shell.cluster import Cluster, Conflict, NotFound, Selection

POD, NODE = raw(Kind("v1", "Pod", "any")), raw(Kind("v1", "Node"))
PAUSE, SLACK = 2.0, 60
"""Seconds between two looks, and how much longer than the pod one waits for its kubelet to say something."""
NAME = "gpustack-trial"
SECONDS = 300
"""How long the validator's program may take, with the pull of its image."""
GIVEN_UP = "gpustack.dev/acceptance"
"""The annotation of a node that has not passed: nobody tries it again before it is taken away."""


Taint = tuple[str, str]
"""Key and effect."""


@dataclass(frozen=True)
class Trial:
    """A pod for a NODE of the pool at PATH; one that passes takes the `taint` away."""

    node: str
    path: str
    body: Body
    taint: Taint | None = None


def smoke(expected: Expected, state: State) -> Iterator[Trial | Hit]:
    """A trial for each pool, on a node of it that is free, or the reason why it gets no trial."""
    image = Common.from_cluster(expected.cluster).validation.image
    program = SimpleNamespace(image=image, command=["vectorAdd"], seconds=SECONDS)  # operator.md 14
    for pool in expected.cluster.pools:
        idle = (each for each in _members(pool, state) if not (_busy(each, state) or each["spec"].get("unschedulable")))
        why = _never(pool) or "no node of it is Ready and idle"
        node = None if _never(pool) else next(idle, None)
        if node is None:
            yield Hit("LIV702", f"the pool {pool.name} is not tried: {why}", path=pool.path)
        else:
            yield _trial(expected, pool, node, program, {next(iter(_offers(node))): "1"})


def acceptance(expected: Expected, state: State) -> Iterator[Trial | Hit]:
    """A trial for each node that has the taint of the policy, with all that it offers."""
    said = expected.cluster.spec.verify.acceptance if expected.cluster.spec.verify else None
    if said is None:
        yield Hit("LIV702", "no node is tried: the policy has no verify.acceptance")
        return
    taint = (said.taint.key, said.taint.effect)
    for pool, node in ((one, node) for one in expected.cluster.pools for node in _members(one, state)):
        has = {(each.get("key"), each.get("effect")) for each in node["spec"].get("taints") or []}
        given_up = (node["metadata"].get("annotations") or {}).get(GIVEN_UP)
        if taint in has and given_up:
            yield Hit("LIV701", f"was given up: {given_up}", node["metadata"]["name"], pool.path)
        elif taint in has and (why := _never(pool) or _busy(node, state)):
            yield Hit("LIV702", f"is not tried: {why}", node["metadata"]["name"], pool.path)
        elif taint in has:
            yield _trial(expected, pool, node, said, _offers(node), taint=taint)


def _trial(
    expected: Expected, pool: Pool, node: Body, runs: Any, limits: Mapping[str, str], *, taint: Taint | None = None
) -> Trial:
    """A pod on NODE of POOL with LIMITS of what it has, in which the program RUNS."""
    common, name = Common.from_cluster(expected.cluster), node["metadata"]["name"]
    body: Body = _data.copy(_data.read(Path(__file__).with_suffix(".yaml")))
    body["metadata"] = {"name": f"{NAME}-{name}"[:253], "namespace": expected.namespace, "labels": {"app": NAME}}
    body["spec"] |= sparse(
        nodeName=name,
        activeDeadlineSeconds=runs.seconds,
        runtimeClassName=common.operand_runtime_class,
        imagePullSecrets=[{"name": each} for each in common.validation.pull_secrets],
    )
    container, image = body["spec"]["containers"][0], served(pool.spec, runs.image)
    container |= {"image": image, "command": [*runs.command], "resources": {"limits": dict(limits)}}
    return Trial(name, pool.path, body, taint)


def _never(pool: Pool) -> str:
    """Why no node of POOL is ever tried."""
    if pool.cluster.dra:
        return "its GPUs are allocated by claims, which the scheduler fulfils"
    if pool.workload != "container":
        return "its GPUs are for virtual machines"
    return f"its GPUs are shared ({pool.sharing.kind})" if pool.sharing.kind else ""


def _members(pool: Pool, state: State) -> list[Body]:
    """The nodes of POOL that work, and that nobody works on."""
    every = (node for node in state.of("Node") if nodes.selects(pool.selection, labels(node)))
    return [node for node in every if nodes.ready(node) and not nodes.busy(node)]


def _offers(node: Body) -> dict[str, str]:
    """The GPUs that NODE offers, by resource."""
    amounts: Mapping[str, str] = (node.get("status") or {}).get("allocatable") or {}
    return {key: str(has) for key, has in amounts.items() if nodes.OF_GPUS.fullmatch(key) and count(str(has))}


def _busy(node: Body, state: State) -> str:
    """Why NODE can't be tried now."""
    offers, name = _offers(node), node["metadata"]["name"]
    used = [who for (where, _), each in taken(state, dict.fromkeys(offers, 1)).items() if where == name for who in each]
    return f"its GPUs are used by {few(used, NAMED)}" if used else "" if offers else "it offers no GPU yet"


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
