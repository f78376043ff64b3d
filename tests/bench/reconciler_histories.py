"""Random histories of the reconciler's model: `python -m tests.bench.reconciler_histories 20000 1`.

Runs N histories from SEED on, on all processors, and prints a line for each that breaks an invariant: its seed, what
broke, and the shortest list of steps found that still breaks it.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
import traceback
from collections import Counter
from multiprocessing import Pool

from tests.reconciler.model.history import STEPS, WEIGHTS, begun
from tests.reconciler.model.watcher import ViolationError

LENGTH = 40
Steps = list[tuple[str, int]]


def steps_of(seed: int) -> Steps:
    """The steps of history SEED."""
    draw = random.Random(seed)
    names, weights = list(STEPS), [WEIGHTS.get(name, 1) for name in STEPS]
    count = draw.randrange(5, LENGTH)
    return [(name, draw.randrange(12)) for name in draw.choices(names, weights, k=count)]


def play(seed: int, steps: Steps) -> str:
    """What breaks; "" for nothing."""
    try:
        history = begun(2 + seed % 3, installed=seed % 4 != 0, limits=seed % 5, kept=seed % 7 > 2)
        for name, number in steps:
            STEPS[name](history, number)
        history.settle()
    except ViolationError as violation:
        return str(violation)
    except ExceptionGroup as group:  # of requests that were made at once
        return _violation(group) or traceback.format_exc(limit=-3)
    except Exception:  # noqa: BLE001 - a crash of the program is a finding like any other
        return traceback.format_exc(limit=-3)
    return ""


def _violation(error: BaseException) -> str:
    """The violation in ERROR; "" for none."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_violation, error.exceptions)), "")
    return str(error) if isinstance(error, ViolationError) else ""


def shrink(seed: int, steps: Steps, wrong: str) -> Steps:
    """A shorter list that breaks in the same way."""
    kind, size = wrong.partition(":")[0], max(len(steps) // 2, 1)
    while True:
        for start in range(0, len(steps), size):
            shorter = steps[:start] + steps[start + size :]
            if play(seed, shorter).partition(":")[0] == kind:
                steps = shorter
                break
        else:
            if size == 1:
                return steps
            size = max(size // 2, 1)


def judge(seed: int) -> tuple[int, str]:
    """Play history SEED."""
    return seed, play(seed, steps_of(seed))


def main() -> int:
    """Play them all; 1 where any breaks something."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began, broken = time.monotonic(), Counter[str]()
    cores = os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()
    with Pool(cores, gc.set_threshold, (50_000, 20, 50)) as pool:  # what is made here is hardly ever a circle
        for done, (seed, wrong) in enumerate(pool.imap_unordered(judge, range(first, first + count), 4), 1):
            if wrong:
                kind = wrong.partition(":")[0]
                broken[kind] += 1
                if broken[kind] <= 2:
                    print(f"seed {seed}: {wrong[:900]}\n  {shrink(seed, steps_of(seed), wrong)}", flush=True)
            if done % 1000 == 0:
                print(f"{done} histories, {sum(broken.values())} broken, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{count} histories from seed {first}: {sum(broken.values())} broken {dict(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
