"""gpustack rollout: what the reconciler would do and what it waits for, and the few things that people tell it.

The work is in live/; here are the words of the command line.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .refusals import refusal
from .text import Code, answer

if TYPE_CHECKING:
    from .live.steer import Deed, Done


def run(options: argparse.Namespace) -> int:
    if options.action in {"plan", "status"}:
        return look(options)
    return steer(options)


def look(options: argparse.Namespace) -> int:
    from .live import budget_report, plan, reading, status

    report = options.action == "plan" and options.budget_report
    what = budget_report if report else plan if options.action == "plan" else status
    told = what.data(reading.look(options, everybody=report))
    return answer(options.format, 0, told, what.lines(told))


def steer(options: argparse.Namespace) -> int:
    from .live import connect, steer

    if options.action in {"hold", "unhold"} and options.policy and options.nodes:
        raise refusal("GPU026", "both")
    if options.action in {"hold", "unhold"} and not options.policy:
        steer.nodes(options)  # refused before a cluster is asked for
    deed: Deed = getattr(steer, options.action.replace("-", "_"))
    done = connect.run(options, lambda cluster: deed(cluster, options))
    return answer(options.format, 0, {"results": [dataclasses.asdict(each) for each in done]}, lines(done))


def lines(done: Iterable[Done]) -> Iterator[str]:
    """What was DONE, for people."""
    for each in done:
        yield f"{each.object}: {each.what}"
        yield from (Code(f"  {key} was {text}") for key, text in each.before.items())
