"""All that can happen in a small cluster: `python -m tests.bench.reconciler_explore --nodes 2 --faults 1`.

Prints how many states and ways there are, and for each kind of what is wrong the steps that lead to it; 1 where
anything is, or where states were left out (`--most`, `--seconds`). Of states with one form the first is followed: with
several processes that may be another one, so that the numbers differ a little.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pool

from tests.reconciler.model.explore import FAULTS, Explored, Step, explore
from tests.reconciler.model.history import begun, halved


def _part(options: argparse.Namespace, first: Sequence[Step]) -> Explored:
    """What comes after a fault of FIRST."""
    history = begun(options.nodes)
    if options.policies > 1:
        halved(history)
    history.driver(0)
    return explore(history, options.faults, most=options.most, seconds=options.seconds, first=first)


def main() -> int:
    """Explore, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--faults", type=int, default=1, help="how many may happen on one way")
    parser.add_argument(
        "--policies", type=int, default=1, choices=[1, 2], help="two: every other node is in a second pool"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="of processor, at most, each")
    parser.add_argument("--most", type=int, default=10**9, help="states to follow, at most, each")
    parser.add_argument("--processes", type=int, default=1, help="each follows its share of what may come first")
    options = parser.parse_args()
    began = time.monotonic()
    parts = [FAULTS[number :: options.processes] for number in range(options.processes)]
    with Pool(options.processes, gc.set_threshold, (50_000, 20, 50)) as pool:  # circles are rare here
        found, *others = pool.map(partial(_part, options), parts, chunksize=1)
    for other in others:
        found.add(other)
    for kind, trace in found.wrong.items():
        steps = [step for step in trace if step[0]]
        print(f"{kind}: after {len(trace) - len(steps)} rests: {steps}")
    left = "" if found.whole else f", {found.left} more were seen and left out with all that follows"
    print(
        f"{options.nodes} nodes, {options.policies} policies, at most {options.faults} faults: "
        f"{len(found.followed)} states"
        f"{left}, {found.ways} ways, {len(found.resting)} of them at rest; {len(found.wrong)} kinds are wrong; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if found.wrong or not found.whole else 0


if __name__ == "__main__":
    sys.exit(main())
