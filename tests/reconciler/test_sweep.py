"""The process is killed after every single write of a rollout, and what it leaves is always picked up (T7, I11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.reconciler.model import moment as m
from tests.reconciler.model.history import History, begun, copied
from tests.reconciler.world.workloads import Workload, add_workload

Change = Callable[[History], None]


def driver(history: History) -> None:
    """Another driver."""
    history.want.version = "2"
    history.sync(0)


def mig(history: History) -> None:
    """Another MIG layout."""
    history.want.mig = "halves"
    history.sync(0)


def both(history: History) -> None:
    """A driver and a layout, in one operation."""
    history.want.version, history.want.mig = "2", "halves"
    history.sync(0)


def start(nodes: int) -> History:
    """An installed cluster whose budget lets a third of its nodes go at a time."""
    history = begun(nodes)
    history.want.limits = 4
    history.sync(0)
    for _ in range(3):
        history.once()
    add_workload(history.world, Workload("train", nodes, max_unavailable=2, ends_after=6))
    for _ in range(3):
        history.world.tick()
    return history


def finish(history: History, passes: list[tuple[int, History]] | None = None) -> dict[str, Any]:
    """Roll to the end. How the nodes are then; PASSES gets each that wrote: the writes before, and a copy."""
    calm = 0
    for _ in range(1500):
        writes = history.watcher.writes["one"]
        before = None if passes is None else copied(history)
        wrote = history.once()
        if passes is not None and before is not None and history.watcher.writes["one"] > writes:
            passes.append((writes, before))
        history.world.tick(5)
        calm = calm + 1 if not wrote and not history.problems() else 0
        if calm >= 2:
            break
    assert not history.problems()
    return {name: end_of(history.world.node(name)) for name in history.world.machines}


def end_of(node: dict[str, Any]) -> dict[str, Any]:
    """A node without times, ids and what its pods are called."""
    records = {}
    for key, value in m.annotations_of(node).items():
        found = json.loads(value) if value.startswith("{") else value
        if isinstance(found, dict):
            found = {name: each for name, each in found.items() if name not in {"id", "at", "notBefore"}}
        if key != "gpustack.dev/fence":  # says that an admission of the killed process did not happen
            records[key] = found
    status = node["status"]
    return {"labels": m.labels(node), "annotations": records, "spec": node["spec"], "offers": status["allocatable"]}


def sweep(nodes: int, change: Change, every: int = 1) -> int:
    """Kill after each write in turn; EVERY skips some."""
    history = start(nodes)
    change(history)
    first, passes = history.watcher.writes["one"], list[tuple[int, History]]()
    wanted = finish(history, passes)
    writes = history.watcher.writes["one"] - first
    for number in range(0, writes, every):
        made, before = max((each for each in passes if each[0] <= first + number), key=lambda each: each[0])
        killed = copied(before)
        killed.watcher.kill["one"] = first + number - made
        assert finish(killed) == wanted, f"killed after write {number}"
    return writes


@pytest.mark.parametrize("change", [driver, mig, both])
def test_resumes_from_every_write(change: Change) -> None:
    """On three nodes, after each write of the whole rollout."""
    assert sweep(3, change) > 15


def test_resumes_on_twelve_nodes() -> None:
    """Driver and layout on twelve nodes, after one write in many."""
    assert sweep(12, both, every=37) > 60
