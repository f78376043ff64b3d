"""What conditions of nodes mean that others set about GPUs, and who else repairs nodes for them (data/health.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpustack.catalog import _data


def rules(detector: str) -> list[dict[str, Any]]:
    """What the conditions of DETECTOR mean, as a policy would say it."""
    found: list[dict[str, Any]] = _data.load("health")["detectors"][detector]
    return found


def rivals(platform: str | None, detectors: Iterable[str]) -> Iterator[str]:
    """Who repairs nodes by himself on PLATFORM, or where DETECTORS are: a sentence for each."""
    known = _data.load("health")["rivals"]
    yield from (text for name, text in known["platforms"].items() if name == platform)
    yield from (text for name, text in known["detectors"].items() if name in set(detectors))
