"""gpustack preflight: nodes before the stack is there, against what the policy would bring. Changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from .live import connect

    connect.add_look(parser)
    verify.add_format(parser)
    for option, what in (
        ("--host", "what commands printed on a node, in a file named after it; the note PRE309 has the commands"),
        ("--nvidia-smi", "what `nvidia-smi -q -x` printed on a node, in a file named after it or not"),
    ):
        parser.add_argument(option, metavar="FILE", action="append", default=[], help=what)


def run(options: argparse.Namespace) -> int:
    from ..compiler.judge import due
    from ..live import preflight
    from .live import files

    hosts, smi = (
        {Path(each).stem: files.text(each, remedy) for each in given}
        for given, remedy in (
            (options.host, "write it on the node, named NODE.txt"),
            (options.nvidia_smi, "nvidia-smi -q -x > NODE.xml"),
        )
    )
    name, expected, state, located = verify.looked(options, preflight.KINDS, alone=True)
    found = preflight.preflight(expected, state, hosts, smi, lambda each: due(each, options.today))
    return verify.tell(options, {name: [located(each) for each in found]}, "preflight")
