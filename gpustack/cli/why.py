"""gpustack why: from what one sees of a pod or a node to the cause. Looks, and changes nothing."""

from __future__ import annotations

import argparse

from ..model import InputError
from . import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    connect.add_look(parser)
    parser.add_argument(
        "target", metavar="OBJECT", help="pod/NAMESPACE/NAME, node/NAME, daemonset/NAME, nodepolicy/NAME"
    )
    parser.add_argument("--log", metavar="FILE", help="what a container of it printed, as kubectl logs has it")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


def run(options: argparse.Namespace) -> int:
    from ..live import why
    from ..live.state import Kind
    from .live import files

    asked = options.target.split("/")
    if asked[0] not in why.KINDS or len(asked) != (3 if asked[0] == "pod" else 2) or not all(asked):
        what = f"{options.target} names no pod, node, DaemonSet or NodePolicy"
        remedy = "write pod/NAMESPACE/NAME, node/NAME, daemonset/NAME or nodepolicy/NAME"
        raise InputError.of("GPU026", what, remedy=remedy)
    log = ""
    if options.log and asked[0] in {"node", "nodepolicy"}:
        what = f"--log is what a container printed, and {options.target} has none"
        raise InputError.of("GPU026", what, remedy="ask for the pod: pod/NAMESPACE/NAME")
    if options.log:
        log = files.text(options.log, "kubectl logs POD > FILE")
    space = asked[1] if asked[0] == "pod" else ""
    pods = [Kind("v1", "Pod"), Kind("v1", "ResourceQuota", space)] if space else []
    source, expected, state, located = verify.looked(
        options, lambda stack: [*pods, Kind("v1", "Event", space or stack)]
    )
    space = space or (expected.namespace if asked[0] == "daemonset" else "")
    found = why.why(expected, state, why.Target(why.KINDS[asked[0]], asked[-1], space), log)
    return verify.tell(options, {source: [located(each) for each in found]}, "why")
