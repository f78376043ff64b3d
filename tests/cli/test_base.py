"""What diff reads of the base again, and what the cache knows of it."""

from __future__ import annotations

import shutil

import pytest

from gpustack.cli.trees import against_git
from gpustack.compiler import sources
from tests.cli.test_foreign import ENGINE, git, merged
from tests.project import REFUSED, Project

__all__ = ["merged"]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The policies of the base that were read, in all runs, where one cluster is worth compiling it."""
    names: list[str] = []
    reading = sources.read_sources

    def spied(*given: object) -> object:
        names.extend(path.stem for path in given[1] if "gpustack-diff-" in str(path))  # type: ignore[attr-defined]
        return reading(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sources, "read_sources", spied)
    monkeypatch.setattr(against_git, "MANY", 1)
    return names


def test_the_base_is_read_once(merged: Project, read: list[str]) -> None:
    """Policies of the base that many clusters share and the cache doesn't know are known the next time, as they were
    merged: what is said stays the same, and a base that says something else is read."""
    merged.policy("one", gitops=ENGINE, gfd={"enabled": True})
    shutil.rmtree(merged.cache)
    first = merged.run("diff")
    assert first.code == 1
    assert merged.run("diff") == first
    assert read == ["one"]
    git(merged.folder, "commit", "-qam", "gfd")
    merged.policy("one", gitops=ENGINE)
    shutil.rmtree(merged.cache)
    assert merged.run("diff").out != first.out
    assert read == ["one", "one"]


def test_a_base_that_a_rule_refuses_is_not_kept(merged: Project, read: list[str]) -> None:
    """A policy of the base that is refused now is read each time, and refused when it is proposed again."""
    good = (merged.folder / "policies/one.yaml").read_text()
    bad = merged.policy("one", gitops=ENGINE, **REFUSED).read_text()
    git(merged.folder, "commit", "-qam", "refused")
    merged.write("policies/one.yaml", good)
    assert [merged.run("diff").code for _ in range(2)] == [1, 1]
    assert read == ["one", "one"]
    merged.write("policies/one.yaml", bad)
    assert "GPU102" in merged.run("render").err
