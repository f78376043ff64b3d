"""All that can happen in a small cluster: `python -m tests.bench.reconciler_explore --nodes 2 --faults 1`.

Prints how many states and ways there are, and for each kind of what is wrong the steps that lead to it; 1 where
anything is, or where states were left out (`--most`, `--seconds`).
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from tests.reconciler.model.explore import explore
from tests.reconciler.model.history import begun, halved


def main() -> int:
    """Explore, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--faults", type=int, default=1, help="how many may happen on one way")
    parser.add_argument(
        "--policies", type=int, default=1, choices=[1, 2], help="two: every other node is in a second pool"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="of processor, at most")
    parser.add_argument("--most", type=int, default=10**9, help="states to look at, at most")
    options = parser.parse_args()
    history, began = begun(options.nodes), time.process_time()
    if options.policies > 1:
        halved(history)
    history.driver(0)
    found = explore(history, options.faults, most=options.most, seconds=options.seconds)
    for kind, trace in found.wrong.items():
        steps = [step for step in trace if step[0]]
        print(f"{kind}: after {len(trace) - len(steps)} rests: {steps}")
    left = "" if found.whole else f", {found.left} more were seen and left out with all that follows"
    print(
        f"{options.nodes} nodes, {options.policies} policies, at most {options.faults} faults: {found.states} states"
        f"{left}, {found.ways} ways, {found.rests} of them at rest; {len(found.wrong)} kinds are wrong; "
        f"{time.process_time() - began:.0f} s"
    )
    return 1 if found.wrong or not found.whole else 0


if __name__ == "__main__":
    sys.exit(main())
