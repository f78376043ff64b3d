"""gpustack schema: the policy language as a JSON schema, for editors."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .saving import save

TARGET = "schemas/clusterpolicy.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", default=TARGET, help=f"where to write it, - for standard output (default: {TARGET})"
    )


def run(options: argparse.Namespace) -> int:
    from ..policy.help.schema import export

    text = json.dumps(export(), indent=1, sort_keys=False) + "\n"
    if options.out == "-":
        sys.stdout.write(text)
        return 0
    save(Path(options.out), text, "the schema", "name another file after --out")
    return 0
