"""The MIG solver over every layout that a board can hold, and those that are one instance too large."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from gpustack.catalog import mig, mig_solver
from gpustack.catalog.mig import MigLayout
from tests.bench.scenarios import Bench, Figure

LIMIT_MS = 10.0
BOARDS = ("H100-80GB", "A30", "RTX-PRO-6000-Blackwell")
"""A board of each geometry."""


def figures(_: Bench) -> Iterator[Figure]:
    """The slowest and the median layout of each geometry, with its reason where it doesn't fit; nothing is cached."""
    for board in BOARDS:
        names = [profile.name for profile in mig.board_profiles(board)]
        fitting = {
            part
            for layout in mig_solver.completions(board, {})
            for part in (layout, *(MigLayout.of({**layout.as_dict(), name: 0}) for name in layout.as_dict()))
        }
        layouts = sorted(fitting | {layout.plus(name) for layout in fitting for name in names}, key=str)
        times = [milliseconds(board, layout) for layout in layouts]
        verdict = "ok" if max(times) <= LIMIT_MS else "MISSED"
        yield Figure(
            f"solver, {len(layouts):,} layouts of {board}: median {statistics.median(times):.2f} ms, "
            f"slowest {max(times):.2f} ms (target {LIMIT_MS:.0f} ms, {verdict})",
            [],
        )


def milliseconds(board: str, layout: MigLayout) -> float:
    """How long it takes to place LAYOUT, or to say why it has no place."""
    mig_solver._placements.cache_clear()
    start = time.process_time()
    mig_solver.explain(board, layout)
    return (time.process_time() - start) * 1000
