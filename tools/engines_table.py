"""The table of docs/gitops.md of what was tried with whole engines, from tests/engines/record.yaml."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.control_plane.cluster import ROOT
from tests.engines.record import RECORD

MARKS = re.compile(r"(<!-- tried:begin -->).*?(<!-- tried:end -->)", re.DOTALL)


def with_table(text: str) -> str:
    """The page TEXT with its table as it should be."""
    return MARKS.sub(lambda marks: f"{marks[1]}\n\n{table()}\n\n{marks[2]}", text)


def table() -> str:
    """What was tried: a line for each event, a column for each engine, with the clusters."""
    if not RECORD.is_file():
        return "Nothing is recorded yet."
    record = yaml.safe_load(RECORD.read_text("utf-8"))
    versions = record["versions"]
    flux = versions["Flux's controllers"]
    lines = [
        f"Recorded on {record['date']}, on API servers that behave as Kubernetes {versions['Kubernetes']}:",
        "",
        f"| what | Argo CD {versions['Argo CD']} | Flux (controllers {flux}) |",
        "|---|---|---|",
    ]
    promises = _promises()
    for event, engines in record["tried"].items():
        cells = (_cell(engines.get(name, {})) for name in ("argocd", "flux"))
        said = promises.get(event, event).replace("|", r"\|")
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(clusters: Mapping[str, str]) -> str:
    """The clusters of which it holds, and those of which it doesn't."""
    every = [name for name, outcome in clusters.items() if outcome == "passed"]
    failed = [name for name, outcome in clusters.items() if outcome != "passed"]
    said = "a cluster of its own" if every == ["own"] else ", ".join(sorted(every))
    if len(every) == len(list((ROOT / "policies").glob("*.yaml"))):
        said = f"all {len(every)}"
    return "; ".join(filter(None, (said, f"not {', '.join(sorted(failed))}" if failed else ""))) or "not tried"


def _promises() -> dict[str, str]:
    """The first sentence of each test, by the event's name."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "tests/engines").glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = " ".join((ast.get_docstring(node) or "").split())
                found[node.name.removeprefix("test_").replace("_", " ")] = text
    return found
