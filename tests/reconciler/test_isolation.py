"""I19: a node that fails, hangs, falls silent or goes never delays another by more than its slot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpustack.reconciler.shell.cluster import PODS
from tests.reconciler.model import moment as m
from tests.reconciler.model.history import History
from tests.reconciler.world.workloads import Workload, add_workload, start

ONE_AT_A_TIME, TWO_AT_A_TIME = 0, 2
"""Of `actors.LIMITS`: 1 and 1; 2 and half of four nodes."""
BAD, GOOD = "n0", ("n1", "n2", "n3")
STEP = 5.0


def _fault(kind: str) -> Callable[[History], None]:
    def begin(history: History) -> None:
        history.world.machines[BAD].faults.add(kind)

    return begin


def _silent(history: History) -> None:
    history.world.set_works(BAD, False)


def _cordoned(history: History) -> None:
    history.world.cordon(BAD)


def _pinned(history: History) -> None:
    """A pod that no budget lets go."""
    add_workload(history.world, Workload("pinned", 0, max_unavailable=0))
    start(history.world, history.world.workloads["pinned"], BAD)


def _endless(history: History) -> None:
    """A pod that was told to end and does not."""
    add_workload(history.world, Workload("endless", 0, max_unavailable=1, ends_after=100_000))
    start(history.world, history.world.workloads["endless"], BAD)


def _unreadable(history: History) -> None:
    history.world.annotate(BAD, {m.OP: "{"})


def _nothing(history: History) -> None:
    pass


def _seconds(history: History, names: tuple[str, ...], done: int, at: Callable[[History, int], None]) -> float:
    """How long it takes until NAMES have driver DONE and are given back."""
    for count in range(1000):
        history.once()
        history.world.tick(STEP)
        at(history, count)
        nodes = [history.world.node(name) for name in names]
        loaded = {history.world.machines[name].loaded for name in names}
        if loaded == {f"digest-{done}"} and not any(m.operation(node) or m.cordoned(node) for node in nodes):
            return history.world.elapsed
    raise AssertionError(f"never done: {history.problems()}")


def _roll(nodes: int, limits: int, begin: Callable[[History], None], *, goes: bool = False) -> float:
    """The time that a driver takes to come to the good nodes of NODES, beside one that is as BEGIN makes it."""
    history = History(nodes, limits=limits)
    history.world.workloads["train"].replicas = 0
    for name in list(history.world.machines):
        for pod in list(history.world.gpu_pods(name)):
            history.world.server.remove(PODS, pod["metadata"]["name"], "work")
    begin(history)
    history.want.together = True  # the first node of a rollout is waited for, bad or not: that is another promise
    history.driver(0)
    began = history.world.elapsed

    def at(history: History, count: int) -> None:
        if goes and BAD in history.world.machines and m.operation(history.world.node(BAD)):
            history.world.remove_node(BAD)

    return _seconds(history, GOOD if nodes > 3 else tuple(history.world.machines), history.versions, at) - began


BADNESS: dict[str, Callable[[History], None]] = {
    "its driver fails": _fault("driver"),
    "its validator fails": _fault("validator"),
    "its programs hang": _fault("stuck"),
    "it is not Ready": _silent,
    "somebody cordoned it": _cordoned,
    "a pod is pinned to it": _pinned,
    "a pod on it does not end": _endless,
    "its record can't be read": _unreadable,
    "it is deleted meanwhile": _nothing,
}


@pytest.mark.parametrize("what", BADNESS)
def test_a_bad_node_costs_the_others_no_more_than_its_slot(what: str) -> None:
    """With two slots and a bad node, the three others take no longer than three good ones do with one slot."""
    alone = _roll(3, ONE_AT_A_TIME, _nothing)
    beside = _roll(4, TWO_AT_A_TIME, BADNESS[what], goes=what == "it is deleted meanwhile")
    assert beside <= alone + STEP
