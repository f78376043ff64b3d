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
import time
from pathlib import Path

from gpustack.compiler.executor import available_cpus
from tests.bench.measure import FailedError, adopt_orphans
from tests.bench.scenarios import MEMORY, Bench, Figure

FILES_BYTES = 5_000_000
"""What a cluster's runs take on a disk with blocks of 4 KB: some 70 files, fifteen times."""

PROBES, SLOW_FILE = 1000, 0.0001
"""Files that are made to see how fast that goes, and the seconds for one from which on it is slow."""


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
    print_machine()
    folder = make_folder(FILES_BYTES * options.clusters)
    try:
        bench = Bench(folder, options.runs, options.clusters)
        print(f"{'':48} {'median':>8} {'runs':>4} {'target':>7} {'':6} {'cpu s':>6}  beside")
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


def make_folder(size: int) -> Path:
    """A new folder for SIZE bytes: in memory where the disk is slow now, unless TMPDIR says where it is to be."""
    folder = Path(tempfile.mkdtemp(prefix="gpustack-bench-"))
    start = time.perf_counter()
    for number in range(PROBES):
        (folder / f"{number}").write_bytes(b"x" * 1000)
    took = time.perf_counter() - start
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > size
    if took > PROBES * SLOW_FILE and roomy and not os.environ.get("TMPDIR"):
        each = f"{took / PROBES * 1000:.2f} ms to make a file"
        print(f"The disk takes {each} (ext4 does, for minutes after many were deleted), so files go to {MEMORY}.")
        shutil.rmtree(folder)
        return Path(tempfile.mkdtemp(prefix="gpustack-bench-", dir=MEMORY))
    if shutil.disk_usage(folder).free < size:
        print("Little space is left in the folder for temporary files: set TMPDIR, or use --clusters.")
    return folder


def print_machine() -> None:
    """What the figures depend on."""
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {platform.system()}, {available_cpus()} processors, load {load:.1f}")
    if load > available_cpus() / 2:
        print("Other programs are running: wall times are too long by what these take; processor seconds are less so.")


def line(figure: Figure) -> str:
    """A figure as one line of text, and one more for memory."""
    if not figure.costs:
        return figure.what
    target = f"{figure.target:5.1f} s" if figure.target else ""
    verdict = "" if not figure.target else "ok" if figure.wall <= figure.target else "MISSED"
    text = f"{figure.what:48} {figure.wall:6.3f} s {len(figure.costs):4} {target:>7} {verdict:6} {figure.cpu:6.2f}"
    if figure.baseline:
        text += f"  {figure.wall / figure.baseline:.1f} x {figure.beside} ({figure.baseline:.3f} s)"
    if figure.memory and figure.memory.pss:
        limit, peak = figure.limit, figure.memory.pss
        verdict = "" if not limit else "ok" if peak <= limit else "MISSED"
        wanted = f"{limit / 1e6:4.0f} MB" if limit else ""
        text += f"\n{'  peak memory of all its processes (PSS)':48} {peak / 1e6:5.0f} MB {1:4} {wanted:>7} {verdict:13}"
        text += f"  {figure.memory.rss / 1e6:.0f} MB if shared pages count for each (RSS)"
    return text.rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
