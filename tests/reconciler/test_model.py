"""Histories that Hypothesis makes up and shortens: the invariants hold after every write, and all comes to an end.

More of them, at random: `python -m tests.bench.reconciler_histories 20000 1`.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gpustack.reconciler.shell.uninstall import uninstall
from tests.reconciler.memory import FakeCluster, drive
from tests.reconciler.model import moment as m
from tests.reconciler.model.history import STEPS, WEIGHTS, History, begun
from tests.reconciler.model.replica import Replica

NAMES = [name for name in STEPS for _ in range(WEIGHTS.get(name, 1))]


OURS = (m.OP, m.LAST, m.MEMORY, m.CORDONED, "gpustack.dev/fence")


FOUND: dict[str, tuple[int, bool, int, list[tuple[str, int]]]] = {
    "a MIG manager fell asleep over a new node, and its components stayed paused": (
        3,
        True,
        4,
        [("replace", 10), ("go", 0), ("tick", 6), ("fault", 11), ("manual", 1), ("tick", 6), ("go", 8)],
    ),
    "a layout was commanded, nobody answered, and another driver was rendered": (
        3,
        True,
        1,
        [("mig", 5), ("limits", 10), ("go", 9), ("go", 1), ("go", 2), ("tick", 6), ("driver", 5)],
    ),
    "the clock went back, and the validator was evicted again and again": (
        2,
        True,
        0,
        [("mig", 5), ("operator", 10), ("go", 6), ("jump", 4), ("hold", 9), ("kill", 3), ("jump", 8)],
    ),
    "a record was removed while leaders changed, and the fence came before the node was given back": (
        4,
        True,
        4,
        [("driver", 4), ("content", 11), ("tick", 7), ("nfd", 0), ("stall", 6), ("record", 6)],
    ),
    "the driver manager's pause was forgotten while the MIG manager was at work for long": (
        4,
        True,
        3,
        [("driver_gone", 9), ("content", 7), ("driver", 7), ("go", 8), ("revert", 1)],
    ),
    "a new node was given up, and its layout had another content at the next attempt": (
        3,
        False,
        2,
        [("mig", 5), ("go", 1), ("taint", 9), ("go", 0), ("stall", 1), ("content", 1), ("go", 4), ("go", 2)],
    ),
    "the mark of our cordon was removed in Acting, and labels were lost as well": (
        2,
        False,
        2,
        [("labelling", 5), ("operator", 5), ("go", 3), ("record", 9)],
    ),
    "an hour was jumped over while nobody told of the new driver pod": (
        3,
        True,
        3,
        [("lag", 4), ("driver_gone", 1), ("driver", 10), ("go", 5), ("jump", 3), ("go", 9)],
    ),
    "what was known of a layout was removed, and its content changed": (
        4,
        False,
        2,
        [("content", 5), ("mig", 1), ("go", 11), ("go", 6), ("record", 8), ("content", 3)],
    ),
    "a kubelet registered its node anew, with the platform's taint, while everything ran": (
        3,
        True,
        1,
        [("startup", 0), ("register", 2), ("go", 2)],
    ),
    "the GPUs of a node that registered anew were cut for another pool": (
        4,
        False,
        2,
        [("startup", 3), ("pool", 1), ("go", 1), ("register", 9)],
    ),
    "the driver's pods went in the middle of a pause, and a layout was due": (
        4,
        True,
        1,
        [("driver_gone", 11), ("mig", 9), ("go", 6), ("revert", 2)],
    ),
    "all was taken away in the middle of a cut that nobody had said to be done, and came back": (
        4,
        True,
        0,
        [("pool", 1), ("mig", 1), ("manual", 9), ("go", 7), ("go", 11), ("uninstall", 0)],
    ),
    "the clock was put back by an hour while the MIG manager was restarted": (
        3,
        True,
        4,
        [("mig", 10), ("go", 3), ("go", 4), ("uninstall", 3), ("everything", 8), ("once", 3), ("jump", 8)],
    ),
    "somebody set the layout by hand that the policy wanted next, while the driver failed": (
        3,
        True,
        4,
        [
            ("mig", 6),
            ("go", 3),
            ("go", 0),
            ("fault", 0),
            ("mig", 9),
            ("go", 10),
            ("rival", 1),
            ("go", 8),
            ("manual", 9),
        ],
    ),
    "a component was kept off a node for a while, in which its mode changed and failed": (
        2,
        False,
        2,
        [
            *(("stall", 8), ("foreign", 5), ("go", 3), ("opt_out", 3), ("mode", 2), ("once", 5), ("mode", 11)),
            *(("go", 11), ("go", 5), ("go", 4)),
        ],
    ),
    "the leader was killed between the announcement of a retry and its record, and the node was uncordoned by hand": (
        2,
        True,
        0,
        [
            *(("mig", 2), ("go", 4), ("lies", 2), ("go", 5), ("go", 5), ("mig", 3), ("kill", 9), ("driver", 6)),
            ("cordon", 4),
        ],
    ),
    "the ledger was lost in the middle of a new layout, and nobody knew of it any more": (
        3,
        True,
        1,
        [("mig", 5), ("go", 0), ("go", 1), ("ledger", 10), ("restart", 5)],
    ),
    "a layout's content changed while the operator ran beside, and the node was in use when its install was given up": (
        3,
        False,
        0,
        [
            *(("everything", 1), ("go", 1), ("go", 4), ("rival", 9), ("go", 2), ("content", 4), ("works", 5)),
            ("tick", 4),
        ],
    ),
    "all nodes told of a fault, one of them of no pool, and the other was taken": (
        2,
        False,
        3,
        [
            *(("once", 9), ("ill", 0), ("ill", 1), ("labelling", 1), ("pool", 4), ("go", 1), ("drop_policy", 11)),
            ("go", 7),
        ],
    ),
    "a node that told of a fault went to a pool without a policy, and another one was taken": (
        2,
        True,
        0,
        [("ill", 5), ("pool", 11), ("ill", 10), ("go", 7)],
    ),
    "whoever owns a new node took the driver's label away, and the deadline out of its record": (
        3,
        False,
        3,
        [("go", 6), ("foreign", 4), ("edit", 1)],
    ),
    "the driver's DaemonSet went while a registry gave no answer to a new node that offers no GPU": (
        3,
        False,
        1,
        [("foreign", 5), ("fault", 11), ("go", 2), ("go", 11), ("driver_gone", 7), ("go", 11)],
    ),
    "a registry gave no answer to a new node that offers no GPU, and the driver was kept off it": (
        1,
        False,
        1,
        [("foreign", 5), ("fault", 11), *(("go", 2),) * 5, ("foreign", 0), ("go", 11)],
    ),
    "both nodes told of a fault, one of a pool whose policy only reported it yet": (
        2,
        True,
        1,
        [("ill", 5), ("ill", 0), ("pool", 8), ("reporting", 10), ("go", 11)],
    ),
    "the ledger was lost while a node was out for a fault, and another one told of one": (
        3,
        True,
        3,
        [("ill", 5), ("go", 4), ("ill", 0), ("restart", 9), ("ledger", 6), ("go", 0), ("go", 4)],
    ),
    "somebody set the layout while the driver was replaced, beside a success of the one before": (
        3,
        True,
        3,
        [
            *(("mig", 9), ("go", 1), ("once", 2), ("undo", 6), ("manual", 3), ("go", 1), ("go", 7), ("go", 8)),
            *(("content", 11), ("go", 11), ("labelling", 1), ("go", 3)),
        ],
    ),
    "what a node begins with could not be cut, and it stayed out of service for good": (
        4,
        False,
        4,
        [("mig", 5), *[("go", 6)] * 3, ("register", 1), ("driver", 8), ("mig", 0), ("go", 8)],
    ),
    "nodes of a policy that doesn't speak of faults yet tell of one as well": (
        2,
        False,
        2,
        [
            *(("pool", 1), ("drop_policy", 10), ("drop_policy", 5), ("go", 2), ("go", 1)),
            *(("ill", 2), ("ill", 1), ("go", 7)),
        ],
    ),
    "the layout was taken out while a cut node was in quarantine, and its content had changed": (
        4,
        True,
        2,
        [
            *(("everything", 6), ("lies", 4), ("go", 8), ("once", 2), ("go", 7), ("go", 9), ("go", 0), ("tick", 6)),
            *(("content", 10), ("unlist", 0), ("manager", 7), ("go", 3)),
        ],
    ),
}
"""Histories that once broke something: nodes, whether installed, budget, steps."""
KEPT = {
    "somebody set the layout while the driver was replaced, beside a success of the one before",
    "what a node begins with could not be cut, and it stayed out of service for good",
}
"""Those in which the program writes the file of the MIG managers."""


@pytest.mark.parametrize("what", FOUND)
def test_found_histories(what: str) -> None:
    """What was mended stays so."""
    nodes, installed, limits, steps = FOUND[what]
    history = begun(nodes, installed=installed, limits=limits, kept=what in KEPT)
    for name, number in steps:
        STEPS[name](history, number)
    history.settle()


@pytest.mark.parametrize("seed", range(12))
def test_uninstall_from_anywhere(seed: int) -> None:
    """I25: no cordon, label or annotation of ours is left; cordons of others stay; whoever uses a GPU keeps it."""
    history = play_on(seed)
    owners = dict(history.watcher.owners)
    labels = {name: history.world.labels(name) for name in history.world.machines}
    history.watcher.quiet()
    runner = Replica(history.world, lambda: FakeCluster(history.world.server, "uninstall")).runner
    drive(runner.elector.look())
    history.world.elapsed += 60  # the Lease of whoever led has run out
    drive(uninstall(runner.cluster, runner.sources, runner.elector, runner.log))
    for name in history.world.machines:
        node = history.world.node(name)
        if m.operation(history.world.node(name)).get("unreadable") or "{" in m.annotations_of(node).values():
            continue  # whose its cordon is isn't known: it is reported
        assert not set(OURS) & m.annotations_of(node).keys()
        assert "gpustack.dev/phase" not in m.labels(node)
        assert m.cordoned(node) == (owners.get(name) in {"others", "operator"})
        if list(history.world.gpu_pods(name)):
            kept = {key: value for key, value in labels[name].items() if key.startswith(m.DEPLOY)}
            assert kept.items() <= m.labels(node).items()


def play_on(seed: int) -> History:
    """A history of steps at random, which ends in the middle."""
    draw = random.Random(seed)
    history = begun(3)
    for name in draw.choices(NAMES, k=25):
        STEPS[name](history, draw.randrange(12))
    return history


class Histories(RuleBasedStateMachine):
    """The steps of `History`, in any order."""

    history: History | None = None

    @initialize(nodes=st.integers(1, 4), installed=st.booleans(), limits=st.integers(0, 4), kept=st.booleans())
    def begin(self, nodes: int, installed: bool, limits: int, kept: bool) -> None:
        """A cluster."""
        self.history = begun(nodes, installed=installed, limits=limits, kept=kept)

    @precondition(lambda self: self.history is not None)
    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 11))
    def step(self, name: str, number: int) -> None:
        """Anything that anybody may do."""
        assert self.history is not None
        STEPS[name](self.history, number)

    def teardown(self) -> None:
        """Everybody cooperates: every node comes to be as wanted."""
        if self.history is not None:
            self.history.settle()


Histories.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestHistories = Histories.TestCase
