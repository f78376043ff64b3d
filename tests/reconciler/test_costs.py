"""What a pass costs: with ten times the nodes about ten times as much, and not a hundred times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpustack.reconciler.core import images
from gpustack.reconciler.core.engine import decide, survey
from gpustack.reconciler.core.record import Entry
from gpustack.reconciler.core.view import kept_views, views
from tests.bench import reconciler as bench


def test_driver_pods_are_looked_through_once_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes are due or under way, whether the new driver's image is there is looked for once for each
    revision."""
    monkeypatch.setattr(bench, "NODES", 40)
    calls: list[str] = []
    real = images._waiting  # what is behind the answer

    def counted(*words: Any) -> str:
        calls.append(str(words[1]))
        return real(*words)

    monkeypatch.setattr(images, "_waiting", counted)
    for under_way in (0, 20):
        calls.clear()
        known = bench.begun(bench.snapshot("2"), under_way)
        survey(known)
        decide(known)
        assert calls
        assert len(calls) <= 3 * len(set(calls))


def test_a_view_is_made_once_for_as_long_as_all_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the next pass the views of nodes that nobody changed are those of this one; another node, policy, driver or
    entry in the ledger makes them anew."""
    monkeypatch.setattr(bench, "NODES", 20)
    known = bench.snapshot("1")
    known = replace(known, kept=kept_views(known))
    first = views(known)

    def anew(**changes: Any) -> int:
        """How many views are new where the snapshot has CHANGES."""
        before = views(known)
        return sum(new is not old for new, old in zip(views(replace(known, **changes)), before, strict=True))

    assert all(new is old for new, old in zip(views(replace(known, pods={"gpu-0001": ()})), first, strict=True))
    policies = [msgspec.structs.replace(known.policies[0]), *known.policies[1:]]
    drivers = [replace(known.driver_sets[0], newest="another")]
    other = [msgspec.structs.replace(known.nodes[0]), *known.nodes[1:]]
    assert anew(nodes=other) == 1
    assert anew(policies=policies) == len(first)
    assert anew(driver_sets=drivers) == len(first)
    assert anew(ledger={"gpu-0003": Entry("abc", 1)}) == len(first)  # without a ledger, records are believed
    ledger = {"gpu-0003": Entry("abc", 1)}
    listed = replace(known, ledger=ledger)
    listed = replace(listed, kept=kept_views(listed))
    before = views(listed)
    after = views(replace(listed, ledger={"gpu-0003": Entry("def", 1)}))
    assert [new.name for new, old in zip(after, before, strict=True) if new is not old] == ["gpu-0003"]
