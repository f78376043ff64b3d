"""gpustack explain: what a field's value is, and who wrote it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..model import dotted
from . import common
from .text import as_json, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER|FILE", help="a cluster's name or a policy file")
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        default="",
        help="a field or a section: driver.version, nodePools[training].sharing (default: everything)",
    )
    parser.add_argument("--format", choices=["text", "json"], default="text", help="how to print the result")


def run(options: argparse.Namespace) -> int:
    from ..policy.help.explain import NotSetError, explain
    from ..policy.loading.load import load

    loaded = load(common.select_one(options.cluster), root=Path.cwd())
    try:
        told = explain(loaded, options.path)
    except NotSetError as error:
        print("[]" if options.format == "json" else printable(error.findings[0].what))
        return 0
    rows = [(dotted(row.path), row.value, row.origin, str(row.location)) for row in told]
    if options.format == "json":
        found = [
            {"path": path, "value": value, "origin": origin.kind, "where": where} for path, value, origin, where in rows
        ]
        print(as_json(found))
        return 0
    width = max((len(path) + len(json.dumps(value)) for path, value, _, _ in rows), default=0)
    for path, value, origin, where in rows:
        left = f"{path}: {json.dumps(value, ensure_ascii=False)}"
        print(printable(f"{left:<{min(width, 90) + 2}}  {origin.kind}: {where}" if where else left))
    return 0
