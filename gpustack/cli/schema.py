"""gpustack schema: the policy language as a JSON schema, for editors."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..compiler.output import refused

TARGET = "schemas/clusterpolicy.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", default=TARGET, help=f"where to write it, - for standard output (default: {TARGET})"
    )


def run(options: argparse.Namespace) -> int:
    from ..policy.schema import export

    text = json.dumps(export(), indent=1, sort_keys=False) + "\n"
    if options.out == "-":
        sys.stdout.write(text)
        return 0
    target = Path(options.out)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise refused(target, error) from error
    return 0
