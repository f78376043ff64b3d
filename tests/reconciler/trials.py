"""A cluster in which something is refused, undone or forged again and again, and what becomes of its roll-out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gpustack.reconciler.shell.cluster import PODS, POLICIES
from tests.reconciler.memory import drive
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.world.workloads import Workload, start

Each = Callable[[], object]


def quiet(nodes: int, limits: int = 0, **options: bool) -> History:
    """A cluster of so many nodes on which no pod of a tenant runs."""
    history = History(nodes, limits=limits, **options)
    history.world.workloads.clear()
    for pod in list(history.world.server.all(PODS)):
        if pod["metadata"]["namespace"] == "work":
            history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    return history


def roll(history: History, **upgrade: Any) -> None:
    """Commit another driver, and what UPGRADE says of how."""
    history.want.version, history.want.digest = "2", ""
    history.sync(0)
    if upgrade:
        history.world.server.edit(POLICIES, POOL, {"spec": {"upgrade": upgrade}})


def go(history: History, passes: int, seconds: float = 60.0, each: Each = lambda: None) -> list[str]:
    """Some passes, before each of which EACH happens. All that was said of waiting, once each."""
    said: dict[str, None] = {}
    for _ in range(passes):
        each()
        history.once()
        said |= dict.fromkeys(f"{wait.node} {wait.kind}: {wait.message}" for wait in history.replica.decided.waits)
        history.world.tick(seconds)
    return list(said)


def until(history: History, node: str, phase: str, seconds: float = 1.0) -> None:
    """Passes until NODE is in PHASE."""
    for _ in range(900):
        if phases(history).get(node) == phase:
            return
        go(history, 1, seconds)
    raise AssertionError(f"{node} never was in {phase}: {phases(history)}")


def phases(history: History) -> dict[str, str]:
    """The phases of the operations that are open."""
    found = {name: str(m.operation(history.world.node(name)).get("phase", "")) for name in history.world.machines}
    return {name: phase for name, phase in found.items() if phase}


def loaded(history: History) -> list[str]:
    """The drivers, by node."""
    return [machine.loaded.removeprefix("digest-") for _, machine in sorted(history.world.machines.items())]


def rewrite(history: History, node: str, **changes: Any) -> None:
    """The kubelet of NODE writes something else into its record, if there is one."""
    if text := history.world.annotations(node).get(m.OP):
        record = json.loads(text)
        finish = {**record["finish"], **changes.pop("finish", {})}
        history.world.annotate(node, {m.OP: json.dumps({**record, "finish": finish, **changes})})


def evicted(history: History) -> list[str]:
    """The workloads whose pods were evicted, in order."""
    return [m.labels(each.before)["app"] for each in history.world.server.writes if each.subresource == "eviction"]


def comes_again(history: History, node: str) -> Each:
    """A pod that tolerates every taint, and comes again on NODE as soon as it has gone."""
    workload = Workload("tolerant", 1, ends_after=1)
    start(history.world, workload, node)

    def again() -> None:
        machine = history.world.machines[node]
        if machine.loaded and not list(history.world.gpu_pods(node)):
            start(history.world, workload, node)

    return again


def another_leads(history: History) -> None:
    """The leader gives up, and a new process leads."""
    drive(history.replica.runner.elector.release())
    history.restart(0)


def stood(history: History) -> float:
    """For how long the metric says that the pool has stood, in seconds."""
    since = history.replica.runner.metrics.still.values.get((POOL,))
    return history.world.server.now.timestamp() - since if since else 0.0
