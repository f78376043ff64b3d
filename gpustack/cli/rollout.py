"""gpustack rollout: what the reconciler would do and what it waits for, and the few things that people tell it.

The work is in live/; here are the words of the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .refusals import refusal
from .text import Code, answer

if TYPE_CHECKING:
    from .live.steer import Deed, Done

ACTIONS = {
    "plan": "print the order of what is due, the pods that move, what blocks it and the budgets; do nothing",
    "status": "print how far each NodePolicy is, and why each node waits that does",
    "pause": "begin nothing more, in the fleet or under one NodePolicy",
    "resume": "take a pause away",
    "hold": "leave nodes alone, or all nodes of a NodePolicy",
    "unhold": "take a hold away",
    "retry": "try what failed on nodes again now",
    "reset-breaker": "let a rollout go on that failures have stopped",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in ACTIONS.items():
        below = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name in {"plan", "status"}:
            connect.add_sources(below)
        else:
            connect.add_connection(below)
        if name == "plan":
            below.add_argument(
                "--budget-report",
                action="store_true",
                help="look at all nodes instead: which pods could not be evicted, or take long to end",
            )
        if name in {"pause", "resume"}:
            below.add_argument(
                "policy",
                nargs="?",
                metavar="POLICY",
                type=connect.given,
                help="a NodePolicy or pool (default: the fleet)",
            )
        if name in {"hold", "unhold"}:
            below.add_argument("nodes", nargs="*", metavar="NODE", type=connect.given)
            below.add_argument(
                "--policy", metavar="NAME", type=connect.given, help="all nodes of this NodePolicy instead"
            )
        if name in {"pause", "hold"}:
            below.add_argument("--reason", metavar="TEXT", default="", help="said wherever it is why something waits")
        if name == "retry":
            below.add_argument("nodes", nargs="+", metavar="NODE", type=connect.given)
            below.add_argument(
                "--discard-record", action="store_true", help="throw away records that can't be read, and print them"
            )
        if name == "reset-breaker":
            below.add_argument("policy", metavar="POLICY", type=connect.given, help="a NodePolicy or pool")
        below.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


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
    deeds: dict[str, Deed] = {
        "pause": steer.pause,
        "resume": steer.resume,
        "hold": steer.hold,
        "unhold": steer.unhold,
        "retry": steer.retry,
        "reset-breaker": steer.reset_breaker,
    }
    done = connect.run(options, lambda cluster: deeds[options.action](cluster, options))
    return answer(options.format, 0, {"results": [each.data for each in done]}, lines(done))


def lines(done: Iterable[Done]) -> Iterator[str]:
    """What was DONE, for people."""
    for each in done:
        yield f"{each.object}: {each.what}"
        yield from (Code(f"  {key} was {text}") for key, text in each.before.items())
