"""gpustack preflight: nodes before the stack is there, against what the policy would bring. Changes nothing."""

import argparse
from pathlib import Path

from ..compiler.judge import due
from . import verify


def run(options: argparse.Namespace) -> int:
    from ..live import preflight
    from .live import files

    brought: dict[str, str] = {}
    for each in options.host:
        brought[Path(each).stem] = brought.get(Path(each).stem, "") + files.text(each, "write it on the node: NODE.txt")
    name, expected, state, located = verify.looked(options, lambda _: preflight.KINDS, alone=True)
    findings = preflight.preflight(expected, state, brought, lambda each: due(each, options.today))
    return verify.tell(options, {name: [located(each) for each in findings]}, "preflight")
