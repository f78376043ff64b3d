"""A render that is killed at any moment leaves each cluster as it was or as it should be.

test_dist.py kills single steps on purpose; here a whole render of a fleet is killed, by the clock. More of the same:
tests/bench/kill_soak.py.
"""

from __future__ import annotations

from tests.bench.kill_soak import soak
from tests.project import Project


def test_killed_renders(project: Project) -> None:
    """Ten kills leave no mixture, no process and nothing that the next render doesn't repair."""
    result = soak(project, 10, 1)
    assert (result.kills, result.bad) == (10, [])
