"""A pass: from what is known to what is done. Two pure functions, so that a plan and its execution can't differ.

`survey` says which nodes need a closer look (their pods, a trial of their evictions), so that a pass costs requests for
the nodes that something happens on and not for all. `decide` makes the decision from what was then gathered.
"""

from __future__ import annotations

from dataclasses import dataclass

from .actions import Decision
from .snapshot import Snapshot


@dataclass(frozen=True)
class Wanted:
    """Nodes whose pods the decision needs, and those of them on which evictions are to be tried first (dry run)."""

    pods: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


def survey(known: Snapshot) -> Wanted:
    """Which nodes to look at more closely. KNOWN has everything but `pods`, `claims` and `prechecks`."""
    return Wanted()


def decide(known: Snapshot) -> Decision:
    """All that is to be done now. Every node that waits says why."""
    return Decision()
