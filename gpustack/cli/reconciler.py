"""gpustack reconciler: uninstall, which gives every node back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..model import InputError
from . import common
from .refusals import said
from .text import answer, printable

if TYPE_CHECKING:
    from ..reconciler.shell.cluster import Cluster
    from .live.release import Released


def run(options: argparse.Namespace) -> int:
    from .live import connect, release

    if not options.yes and not (options.format == "text" and sys.stdin is not None and sys.stdin.isatty()):
        raise InputError(said("GPU938"))  # nobody can be asked

    async def work(cluster: Cluster) -> Released | None:
        prepared = await release.prepare(cluster, options.namespace, keep_labels=options.keep_labels)
        if not options.yes:
            print(f"{prepared.question} [y/N] ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
                return None
        return await prepared.carry_out(lambda text: print(printable(text), file=sys.stderr, flush=True))

    done = connect.run(options, work)
    if done is None:
        print("nothing was changed")
        return 0
    return answer(options.format, 2 if done.made.left else 0, done.data, lines(done))


def lines(done: Released) -> Iterator[str]:
    """What was done, what is left with the reason, and what remains for the person to do."""
    yield f"{common.counted(len(done.made.released), 'node')} given back"
    yield from (f"{name}: labels of the GPU stack stay: {why}" for name, why in sorted(done.made.labelled.items()))
    yield from (f"{name}: left as it was: {why}" for name, why in sorted(done.made.left.items()))
    yield from done.remains
