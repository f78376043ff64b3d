"""What was tried with which engine, kept in the repository: record.yaml, which docs/gitops.md shows as a table.

It says of what it holds: the digests of dist/, of gpustack/gitops/ and of gpustack/reconciler/, and the versions of the
programs. `--all` and `--record` write it; what was recorded of the same digests stays, so that it may be done in parts.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.control_plane.cluster import ROOT

RECORD = Path(__file__).with_name("record.yaml")
PARTS = {"dist": "dist", "gitops": "gpustack/gitops", "reconciler": "gpustack/reconciler"}
HEAD = "# What tests/engines has tried: `make test-engines ARGS=--all` writes this, and nobody else.\n"
Record = dict[str, Any]


def digest(folder: Path) -> str:
    """Names the content of FOLDER."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        found.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def digests() -> dict[str, str]:
    """Those of what is tried."""
    return {name: digest(ROOT / path) for name, path in PARTS.items()}


def versions() -> dict[str, str]:
    """The versions of the engines, as their modules are pinned."""
    go = ROOT / "tests/engines/go"
    pins = {"Argo CD": ("argocd", "argo-cd/v3"), "Flux's controllers": ("flux", "kustomize-controller")}
    texts = {name: ((go / engine / "go.mod").read_text("utf-8"), module) for name, (engine, module) in pins.items()}
    found = {name: re.search(rf"/{module} v([0-9.]+)", text) for name, (text, module) in texts.items()}
    return {name: match[1] for name, match in found.items() if match}


def read() -> Record:
    """The record, empty where there is none."""
    return yaml.safe_load(RECORD.read_text("utf-8")) if RECORD.is_file() else {}


def stale() -> list[str]:
    """What has changed since it was recorded, by the folders' names."""
    then, now = read().get("digests", {}), digests()
    return [PARTS[name] for name in PARTS if then.get(name) != now[name]]


def write(reports: Iterable[pytest.TestReport], kubernetes: str) -> None:
    """Keep the outcomes of REPORTS, which are of KUBERNETES."""
    known = {"digests": digests(), "versions": {**versions(), "Kubernetes": kubernetes}}
    former = read()
    same = all(former.get(key) == value for key, value in known.items())
    tried: dict[str, dict[str, dict[str, str]]] = former.get("tried", {}) if same else {}
    for report in reports:
        event, _, case = report.nodeid.rpartition("::")[2].partition("[")
        engine, _, cluster = case.rstrip("]").partition("-")
        clusters = tried.setdefault(event.removeprefix("test_").replace("_", " "), {}).setdefault(engine, {})
        if report.when == "call" or report.outcome != "passed":
            clusters[cluster or "own"] = report.outcome
    now = datetime.datetime.now(datetime.UTC).date()
    body = {"date": now, **known, "tried": {event: tried[event] for event in sorted(tried)}}
    RECORD.write_text(HEAD + yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
