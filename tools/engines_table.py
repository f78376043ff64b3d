"""The table of docs/gitops.md of what was tried with whole engines, from tests/engines/record.yaml."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from gpustack.policy.loading.load import policy_files
from tests.control_plane.cluster import ROOT
from tests.engines import record

MARKS = re.compile(r"(<!-- tried:begin -->).*?(<!-- tried:end -->)", re.DOTALL)


def with_table(text: str) -> str:
    """The page TEXT with its table as it should be."""
    return MARKS.sub(lambda marks: f"{marks[1]}\n\n{table()}\n\n{marks[2]}", text)


def table() -> str:
    """What was tried: a line for each event, a column for each engine, with the clusters."""
    told = record.read()
    if not told:
        return "Nothing is recorded yet."
    releases, first, *later = _all(told, "kubernetes"), *_all(told, "date")
    when = f"between {first} and {later[-1]}" if later else f"on {first}"
    names = {"argocd": "Argo CD", "flux": "Flux (controllers"}
    heads = {name: f"{word} {', '.join(_all(told, 'engine', name))}" for name, word in names.items()}
    lines = [
        f"Recorded {when}, on API servers that behave as Kubernetes {', '.join(releases)}:",
        "",
        f"| what | {heads['argocd']} | {heads['flux']}) |",
        "|---|---|---|",
    ]
    said_by = promises()
    for event in sorted({event for event, _, _ in told}):
        cells = (
            _cell({key[2]: one["outcome"] for key, one in told.items() if key[:2] == (event, name)}) for name in names
        )
        said = said_by.get(event, event).replace("|", r"\|")
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _all(told: Mapping[tuple[str, str, str], Mapping[str, str]], field: str, engine: str = "") -> list[str]:
    """What the cases of ENGINE, or all, have in FIELD."""
    return sorted({one[field] for key, one in told.items() if engine in {"", key[1]}})


def _cell(clusters: Mapping[str, str]) -> str:
    """The clusters of which it holds, and those of which it doesn't."""
    every = [name for name, outcome in clusters.items() if outcome == "passed"]
    failed = [name for name, outcome in clusters.items() if outcome != "passed"]
    if {*clusters} == {"own"}:
        return "a cluster of its own" if every else "failed"
    said = ", ".join(sorted(every))
    if len(every) == len(policy_files(ROOT / "policies", "policies")):
        said = f"all {len(every)}"
    return "; ".join(filter(None, (said, f"not {', '.join(sorted(failed))}" if failed else ""))) or "not tried"


def promises() -> dict[str, str]:
    """The first sentence of each test, by the event's name."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "tests/engines").glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = " ".join((ast.get_docstring(node) or "").split())
                found[node.name.removeprefix("test_").replace("_", " ")] = text
    return found
