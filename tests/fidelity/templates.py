"""The pod templates of the example clusters' DaemonSets, as the last release of gpustack rendered them.

Whoever upgrades gpustack renders anew and expects that nothing restarts. `python -m tests.fidelity.templates` records
the templates of now; what that restarts is written into the changelog first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from gpustack.components.parts.carried import template_hash

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_suffix(".json")
Hashes = dict[str, dict[str, str]]


def rendered() -> Hashes:
    """The hash of each DaemonSet's template in dist/, by cluster and name."""
    found: Hashes = {}
    for path in sorted((ROOT / "dist").glob("*/*/daemonset-*.yaml")):
        body: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        hashes = found.setdefault(path.parts[-3], {})
        hashes[body["metadata"]["name"]] = template_hash(body["spec"]["template"])
    return found


def recorded() -> Hashes:
    """The hashes as they were."""
    found: Hashes = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    RECORD.write_text(json.dumps(rendered(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
