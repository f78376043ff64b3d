"""The cases: a policy and the facts of what the operator of that release created for it, measured.

A case is a small file, because it holds only how it differs from the first case of its release: `policy` is a JSON
merge patch (RFC 7396) over that case's policy, `facts` one over its facts. The first case is whole.

`python -m tests.fidelity.cases FOLDER RELEASE` writes them anew from a folder of measured cases (policy.yaml,
cluster.yaml, expected.json, expected-nodes.json in a folder per case). The suite itself reads nothing outside this
folder.
"""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """`cluster` is the nodes as they were before, with their labels, and `nodes` what the operator put on them: labels
    and annotations by node name."""

    name: str
    policy: dict[str, Any]
    facts: dict[str, dict[str, Any]]
    cluster: list[dict[str, Any]]
    nodes: list[dict[str, Any]]


def names(release: str) -> list[str]:
    """The cases of RELEASE, by name."""
    return sorted(path.stem for path in (FOLDER / release).glob("*.json"))


@cache
def _file(release: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / release / f"{name}.json").read_text(encoding="utf-8"))
    return found


def case(release: str, name: str) -> Case:
    """One case, whole."""
    base = names(release)[0]
    whole = copy.deepcopy(_file(release, base))
    if name != base:
        whole = merge_patch(whole, _file(release, name))
    return Case(name, whole["policy"], whole["facts"], whole["cluster"], whole["nodes"])


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: maps merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def diff_patch(source: Any, target: Any) -> Any:
    """The merge patch that makes TARGET of SOURCE."""
    if not isinstance(source, dict) or not isinstance(target, dict):
        return target
    gone = dict.fromkeys(key for key in source if key not in target)
    changed = {
        key: diff_patch(source.get(key), value)
        for key, value in target.items()
        if key not in source or source[key] != value
    }
    return {**gone, **changed}


def measured(folder: Path) -> dict[str, Any]:
    """A measured case as one document."""
    nodes = folder / "expected-nodes.json"
    return {
        "policy": without_nulls(yaml.safe_load((folder / "policy.yaml").read_text(encoding="utf-8"))),
        "facts": json.loads((folder / "expected.json").read_text(encoding="utf-8")),
        "cluster": yaml.safe_load((folder / "cluster.yaml").read_text(encoding="utf-8"))["nodes"],
        "nodes": json.loads(nodes.read_text(encoding="utf-8")) if nodes.exists() else [],
    }


def without_nulls(value: Any) -> Any:
    """A merge patch can't say null; a policy means absence by it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def write(source: Path, release: str) -> None:
    """Write all cases of SOURCE as the suite of RELEASE, and prove that each comes back as it was."""
    folders = sorted(path for path in source.iterdir() if (path / "expected.json").exists())
    base = measured(folders[0])
    target = FOLDER / release
    target.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        whole = measured(folder)
        patch = whole if folder is folders[0] else diff_patch(base, whole)
        if folder is not folders[0] and merge_patch(base, patch) != whole:
            raise SystemExit(f"{folder.name} does not come back from its patch")
        text = json.dumps(patch, indent=0, sort_keys=True, ensure_ascii=False)
        (target / f"{folder.name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
