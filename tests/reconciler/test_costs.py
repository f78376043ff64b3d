"""What a pass costs: with ten times the nodes about ten times as much, and not a hundred times."""

from __future__ import annotations

import pytest

from gpustack.reconciler.core import images
from gpustack.reconciler.core.engine import decide, survey
from tests.bench import reconciler as bench


def test_driver_pods_are_looked_through_once_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes are due, whether the new driver's image is there is asked once for each revision."""
    monkeypatch.setattr(bench, "NODES", 40)
    calls: list[str] = []
    real = images.had_by_another

    def counted(*words: object) -> bool:
        calls.append(str(words[1]))
        return real(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(images, "had_by_another", counted)
    known = bench.snapshot("2")
    survey(known)
    decide(known)
    assert calls
    assert len(calls) <= 3 * len(set(calls))
