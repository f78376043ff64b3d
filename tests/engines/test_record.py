"""The record of what was tried is about what is here, and goes on piece by piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines import record
from tests.engines.conftest import CASES
from tools.engines_table import promises

CASE = record.Case("hand edit", "flux", "train-dgx", ("train-dgx",))
OTHER = record.Case("artifact", "argocd", "own", ("lab-a100",))


@pytest.mark.ci
def test_record_is_current(request: pytest.FixtureRequest) -> None:
    """What is recorded was tried with this dist/, these objects of engines and this reconciler.

    Where it was not, that is told case by case and is no failure: to record everything takes an hour, and a change ends
    with it.
    """
    old = record.stale(request.config.stash[CASES].values())
    if old:
        told = "; ".join(f"{', '.join(key)}: {word}" for key, word in sorted(old.items()))
        pytest.xfail(f"`make test-engines ARGS='--all --stale'` brings {len(old)} up to date: {told}")


@pytest.mark.ci
def test_cases_have_names_of_their_own(request: pytest.FixtureRequest) -> None:
    """Every case is another line of the record, about clusters that are known; no line is of a test that is gone."""
    cases = [*request.config.stash[CASES].values()]
    keys = [case.key for case in cases]
    assert len(keys) == len({*keys})
    assert all(case.clusters for case in cases)
    assert {event for event, _, _ in record.read()} <= {*promises()}


@pytest.mark.ci
def test_it_is_written_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is tried again takes the place of what stood there, all else stays; a case is stale when it never passed,
    and when its cluster, an engine or code that runs is another."""
    monkeypatch.setattr(record, "RECORD", tmp_path / "record.yaml")
    assert record.stale([CASE]) == {CASE.key: "was never tried"}
    record.write({CASE: "failed", OTHER: "passed"}, "1.34")
    assert record.stale([CASE, OTHER]) == {CASE.key: "failed"}
    record.write({CASE: "passed"}, "1.37")
    assert record.stale([CASE, OTHER]) == {}
    assert [told["kubernetes"] for told in record.read().values()] == ["1.34", "1.37"]
    monkeypatch.setattr(
        record, "rendered", lambda cluster: "another" if cluster == "train-dgx" else record.code("gitops")
    )
    assert record.stale([CASE])[CASE.key] == "is of another dist"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            '"""Other words."""\n\nfrom b import (\n    x,\n)\n\n\ndef f():\n    """Says."""\n    return 1  # why\n',
            True,
        ),
        ("# a comment\ndef f():\n    return 1  # why\n", True),
        ("def f():\n    return 2  # why\n", False),
        ("def f():\n        return 1  # why\n", False),
    ],
    ids=["other words and imports", "a comment", "another number", "another indentation"],
)
@pytest.mark.ci
def test_what_runs(text: str, same: bool) -> None:
    """Docstrings, imports and comments on lines of their own are no part of what is tried; all else is."""
    wanted = ["def f():", "    return 1  # why"]
    assert (list(record.lines(text)) == wanted) is same
