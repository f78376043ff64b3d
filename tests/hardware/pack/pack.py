"""Write cases.json for run.py: every case of cases.yaml as one text, environment and arguments, by name."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).resolve().parent.parent / "cases.yaml"
BLOCK = "version: v1\nsharing:\n  timeSlicing: {%s}\n"
ENTRY = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {%s}\n"
FLAG = "version: v1\nflags: {%s}\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"


@functools.cache
def cases() -> dict[str, dict[str, Any]]:
    """Each case by name: `text` (None for no file), `env` and `args`."""
    groups = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {name: {"text": text} for name, text in groups["plain"].items()}
    for group, form in (("entry", ENTRY), ("block", BLOCK), ("flag", FLAG)):
        found |= {name: {"text": form.replace("%s", text)} for name, text in groups[group].items()}
    found |= groups["further"]
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(cases(), indent=1), encoding="utf-8")
