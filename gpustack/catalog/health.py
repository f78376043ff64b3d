"""What conditions of nodes mean that others set about GPUs, and who else repairs nodes for them (data/health.yaml)."""

import json
from collections.abc import Iterable, Iterator
from string import Template
from typing import Any

from gpustack.catalog import _data


def rules(detector: str) -> list[dict[str, Any]]:
    """What the conditions of DETECTOR mean, as a policy would say it."""
    return [*_data.at("health", "detectors", detector)]


def rivals(platform: str | None, detectors: Iterable[str]) -> Iterator[str]:
    """Who repairs nodes by himself on PLATFORM, or where DETECTORS are: a sentence for each."""
    told = set(detectors)
    for name, text in _data.load("health")["rivals"].items():
        if name in told or (platform or "").startswith(name):
            yield text


def monitor() -> str:
    """The file of node-problem-detector's system log monitor with the conditions of GPUs, as JSON."""
    known = _data.load("health")["monitor"]
    conditions, rules = [], []
    for name, each in known["conditions"].items():
        reason, message = each["well"]
        pattern = Template(known["pattern"]).substitute(xids="|".join(map(str, each["xids"])))
        conditions.append({"type": name, "reason": reason, "message": message})
        rules.append({"type": "permanent", "condition": name, "reason": each["reason"], "pattern": pattern})
    return json.dumps({**known["head"], "conditions": conditions, "rules": rules}, indent=2) + "\n"
