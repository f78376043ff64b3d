"""What proves that GPUs are cut: the MIG manager's answer to the program's own command, and to nothing else.

Its state names no layout and has no time (reconciler.md M1), and an old one stays until the manager has looked (M3). So
a success beside a label that somebody has set by hand may be that of another layout. Nobody knows here what a node
offers with which layout: no number helps. That nothing is called done before the GPUs are cut is for `i17_proof`.
"""

from __future__ import annotations

import pytest

from gpustack.api import keys
from gpustack.reconciler.shell.cluster import POLICIES
from tests.reconciler.model import moment as m
from tests.reconciler.model.actors import POOL
from tests.reconciler.model.history import History
from tests.reconciler.trials import go, phases, quiet, roll, until
from tests.reconciler.world.stack import MIG_MANAGER

UNKNOWN = {"spec": {"gpu": {"resources": None}}}


def halves(*faults: str) -> History:
    """A node that is to get another driver, and halves of its GPUs, while FAULTS are in the way."""
    history = quiet(1)
    history.world.machines["n0"].faults |= set(faults)
    history.want.mig = "halves"
    roll(history)
    history.world.server.edit(POLICIES, POOL, UNKNOWN)
    return history


def by_hand(history: History, *layouts: str) -> None:
    """Somebody names the MIG manager one layout after the other."""
    for layout in layouts:
        history.world.label("n0", {keys.MIG_CONFIG: layout})


def ends(history: History) -> str:
    """All is well with the machine from now on. How its operation ends, once the GPUs are cut."""
    history.world.machines["n0"].faults.clear()
    go(history, 120, 15)
    assert phases(history) == {}
    assert history.world.machines["n0"].geometry[0] == "halves"
    return str(history.world.annotations("n0")[m.LAST])


@pytest.mark.parametrize("layouts", [("halves",), ("small", "halves")], ids=["once", "twice"])
@pytest.mark.parametrize("phase", ["Held", "Evicting", "Acting", "Quarantine"])
def test_a_layout_that_others_set_before_it_is_commanded(phase: str, layouts: tuple[str, ...]) -> None:
    """The driver fails, so that no layout is commanded yet; the MIG manager waits for it, and an older success stands.
    Once the driver works, the layout is commanded before anything counts as done."""
    history = halves("driver")
    until(history, "n0", phase)
    by_hand(history, *layouts)
    assert '"outcome":"done"' in ends(history)


@pytest.mark.parametrize("phase", ["Acting", "Verifying", "Quarantine"])
def test_a_layout_that_others_set_and_take_back(phase: str) -> None:
    """What was commanded has been overruled as soon as somebody saw it: it is commanded once more."""
    history = halves("validator" if phase == "Verifying" else "stuck")
    until(history, "n0", "Acting")
    while m.operation(history.world.node("n0"))["step"] != "mig":
        go(history, 1, 1)
    until(history, "n0", phase, 15)
    by_hand(history, "small")
    go(history, 1, 0)
    by_hand(history, "halves")
    # The manager's answer to the one before comes only now, and a new one has to start for the other.
    history.world.label("n0", {keys.MIG_STATE: "success"})
    history.world.machines["n0"].geometry = ("small", "1")
    history.world.delete_operand(MIG_MANAGER, "n0")
    assert '"outcome":"done"' in ends(history)


def test_an_answer_to_what_the_manager_was_at_when_it_was_told() -> None:
    """It says success of the earlier layout once more after the command, and is at work on the other soon after. No
    validator tells of that either: none is rendered."""
    history = quiet(1)
    history.want.mig, history.want.without = "halves", "operator-validator"
    history.sync(0)
    history.world.server.edit(POLICIES, POOL, UNKNOWN)
    until(history, "n0", "Acting")
    while m.labels(history.world.node("n0"))[keys.MIG_CONFIG] != "halves":
        go(history, 1, 1)
    history.world.label("n0", {keys.MIG_STATE: "success"})
    while history.once():
        pass
    assert '"outcome":"done"' in ends(history)
