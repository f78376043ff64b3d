"""What `verify --smoke` and `--acceptance` run: a CUDA program on a node of each pool, a longer one on nodes that wait.

The pod names its node, so no scheduler sees it: nothing is preempted for it, and no autoscaler buys a node because it
waits. So a node is asked whether it is free beforehand; one whose GPUs are shared, or in use, is never taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..api import keys
from ..api.objects import count
from ..catalog import _data
from ..cluster.pool import Pool
from ..components.parts.common_inputs import Common, served
from ..components.parts.pod import sparse
from ..model import Body
from . import nodes
from .expected import Expected
from .nodes import Hit
from .state import State, labels
from .why import some, taken

NAME = "gpustack-trial"
SECONDS = 300
"""How long the validator's program may take, with the pull of its image."""
GIVEN_UP = "gpustack.dev/acceptance"
"""The annotation of a node that has not passed: nobody tries it again before it is taken away."""


@dataclass(frozen=True)
class Trial:
    """A pod for a NODE of the pool at PATH; one that passes takes the `taint` (key, effect) away."""

    node: str
    path: str
    body: Body
    taint: tuple[str, str] | None = None


def smoke(expected: Expected, state: State) -> Iterator[Trial | Hit]:
    """A trial for each pool, on a node of it that is free, or why there is none."""
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
    expected: Expected,
    pool: Pool,
    node: Body,
    runs: Any,
    limits: Mapping[str, str],
    *,
    taint: tuple[str, str] | None = None,
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
    container = {
        "image": served(pool.spec, runs.image),
        "command": [*runs.command],
        "resources": {"limits": dict(limits)},
    }
    body["spec"]["containers"][0] |= container
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
    """What NODE offers of NVIDIA's resources."""
    amounts: Mapping[str, str] = (node.get("status") or {}).get("allocatable") or {}
    return {key: str(has) for key, has in amounts.items() if key.startswith(keys.NVIDIA) and count(str(has))}


def _busy(node: Body, state: State) -> str:
    """Why NODE can't be tried now."""
    offers, name = _offers(node), node["metadata"]["name"]
    used = [who for (where, _), each in taken(state, dict.fromkeys(offers, 1)).items() if where == name for who in each]
    return f"its GPUs are used by {some(used)}" if used else "" if offers else "it offers no GPU yet"
