"""Measures gpustack on this machine: `make bench`, or `python -m tests.bench [--only one,shapes] [--runs 3]`.

Prints a line per figure: the median time, the target where there is one, processor seconds, the ratio to a baseline of
the same run, and for fleets the peak memory of all processes. It needs some gigabytes below the system's folder for
temporary files (TMPDIR); `--clusters 100` needs a tenth.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from gpustack.compiler.executor import available_cpus
from tests.bench.measure import FailedError, adopt_orphans
from tests.bench.scenarios import Bench, Figure

FILES_BYTES = 4_000_000
"""What a cluster's runs take on a disk with blocks of 4 KB: some 60 files, a dozen times."""


def main() -> int:
    """Measure what the arguments name; 1 when a program to be measured fails."""
    names = list(Bench(Path()).groups())
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="GROUP,...", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--runs", type=int, default=3, help="runs per fleet figure (default: 3)")
    parser.add_argument("--clusters", type=int, default=1000, help="size of a fleet (default: 1000)")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if not set(wanted) <= set(names) or options.runs < 1 or options.clusters < 20:
        parser.error(f"groups are {', '.join(names)}; at least 1 run and 20 clusters")
    adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="gpustack-bench-"))
    try:
        if shutil.disk_usage(folder).free < FILES_BYTES * options.clusters:
            print("little space is left in the temporary folder: set TMPDIR, or use --clusters", file=sys.stderr)
        bench = Bench(folder, options.runs, options.clusters)
        print_machine()
        bench.warm_up()
        for name in wanted:
            for figure in bench.groups()[name]():
                print(line(figure), flush=True)
    except FailedError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"load at the end: {os.getloadavg()[0]:.1f}")
    return 0


def print_machine() -> None:
    """What the figures depend on, and the heads of the columns."""
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {platform.system()}, {available_cpus()} processors, load {load:.1f}")
    if load > available_cpus() / 2:
        print("Other programs are running: wall times are too long by what these take; processor seconds are less so.")
    print(f"{'':48} {'median':>8} {'target':>7} {'':7} {'cpu s':>6}  beside")


def line(figure: Figure) -> str:
    """A figure as one line of text, and one more for memory."""
    if not figure.costs:
        return figure.what
    target = f"{figure.target:5.1f} s" if figure.target else ""
    verdict = "" if not figure.target else "ok" if figure.wall <= figure.target else "MISSED"
    text = f"{figure.what:48} {figure.wall:6.3f} s {target:>7} {verdict:7} {figure.cpu:6.2f}"
    if figure.baseline:
        text += f"  {figure.wall / figure.baseline:.1f} x {figure.beside} ({figure.baseline:.3f} s)"
    if figure.memory and figure.memory.pss:
        limit, peak = figure.limit, figure.memory.pss
        verdict = "" if not limit else "ok" if peak <= limit else "MISSED"
        wanted = f"{limit / 1e6:4.0f} MB" if limit else ""
        text += f"\n{'  peak memory of all its processes (PSS)':48} {peak / 1e6:5.0f} MB {wanted:>7} {verdict:14}"
        text += f"  {figure.memory.rss / 1e6:.0f} MB if shared pages count for each (RSS)"
    return text.rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
