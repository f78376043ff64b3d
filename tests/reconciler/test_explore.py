"""What can happen in the smallest clusters, all of it; `make explore` has two nodes, and more faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpustack.reconciler.core import engine
from tests.reconciler.model import moment as m
from tests.reconciler.model.explore import FAULTS, canonical, explore
from tests.reconciler.model.history import STEPS, History, begun, copied, halved


def committed(nodes: int = 1) -> History:
    """A cluster in which another driver was just committed."""
    history = begun(nodes)
    history.driver(0)
    return history


def test_faults_on_one_node() -> None:
    """One node and a program that is killed, restarted, overtaken or refused at any moment: no invariant breaks,
    nothing stops in silence, and every way ends well."""
    found = explore(committed(), 1, [step for step in FAULTS if step[0] in {"kill", "restart", "stall", "deny"}])
    assert found.wrong == {}
    assert found.whole
    assert found.resting


def test_two_nodes_without_a_fault() -> None:
    """Two nodes get the driver one after the other, and are at rest."""
    found = explore(committed(2), 0)
    assert (found.wrong, found.whole, len(found.resting)) == ({}, True, 1)


def test_two_pools_without_a_fault() -> None:
    """Two nodes, each in a pool with a policy of its own, get the driver and are at rest."""
    history = begun(2)
    halved(history)
    assert len({history.world.annotations(name)[m.MEMORY].partition('"uid"')[0] for name in ("n0", "n1")}) == 2
    history.driver(0)
    found = explore(history, 0)
    assert (found.wrong, found.whole, len(found.resting)) == ({}, True, 1)


def test_what_is_left_out_is_said() -> None:
    """An exploration that is cut off says how many states it had seen and not looked at."""
    found = explore(committed(), 1, most=20)
    assert (len(found.followed), found.whole) == (20, False)
    assert found.left > 1


def test_what_processes_find_is_put_together() -> None:
    """Each follows all that may come after the faults that it begins with; what either finds is in the sum."""
    which = [step for step in FAULTS if step[0] in {"kill", "hold", "deny"}]
    found, other = (explore(committed(), 1, which, first=some) for some in (which[::2], which[1::2]))
    alone = {key for key in other.followed if key not in found.followed}
    assert alone
    other.wrong["i1_budget"] = [("kill", 0)]
    found.add(other)
    assert alone < found.followed.keys()
    assert (found.wrong, found.whole) == ({"i1_budget": [("kill", 0)]}, True)


def test_a_copy_goes_its_own_way() -> None:
    """Nothing that happens to a copy happens to what it was made of, and both go on alike."""
    history = committed(2)
    before = canonical(history)
    made = copied(history)
    assert canonical(made) == before
    for step, number in FAULTS:
        STEPS[step](copied(history), number)
    made.go(0)
    assert canonical(history) == before
    assert canonical(made) != before
    history.go(0)
    assert canonical(history) == canonical(made)


@pytest.mark.parametrize("lacks", ["actions", "waits"])
def test_a_silent_stop_is_found(monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    """A program that does not what is due, or that waits and doesn't say for what."""
    real = engine.decide
    without: dict[str, Any] = {lacks: ()}
    monkeypatch.setattr(engine, "decide", lambda known: replace(real(known), **without))
    assert set(explore(committed(), 0).wrong) == {"silent_stop"}


def test_faults_are_steps() -> None:
    """Every fault is a step of histories, which random ones draw, too."""
    assert {name for name, _ in FAULTS} <= STEPS.keys()
