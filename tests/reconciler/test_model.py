"""Histories that Hypothesis makes up and shortens: the invariants hold after every write, and all comes to an end.

More of them, at random: `python -m tests.bench.reconciler_histories 20000 1`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.reconciler.model.history import STEPS, WEIGHTS, History

NAMES = [name for name in STEPS for _ in range(WEIGHTS.get(name, 1))]


class Histories(RuleBasedStateMachine):
    """The steps of `History`, in any order."""

    history: History | None = None

    @initialize(nodes=st.integers(1, 4), installed=st.booleans())
    def begin(self, nodes: int, installed: bool) -> None:
        """A cluster."""
        self.history = History(nodes, installed=installed)

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
