"""What a render must not do twice, nor keep: each promise here is seconds or megabytes of a fleet (`make bench`)."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest

from gpustack.compiler import node, sources
from gpustack.compiler.dist import Rendering
from tests.project import WARNED, Project

WORTH = """
import os
from gpustack.compiler.executor import Executor

def work(item):
    return item, os.getpid()

if __name__ == "__main__":
    with Executor(2) as executor:
        for count, most in ((39, 1), (80, 2)):
            results = list(executor.map(work, range(count), worth=20))
            assert [item for item, _ in results] == list(range(count))
            processes = {process for _, process in results}
            assert len(processes) <= most and os.getpid() not in processes
"""


@pytest.mark.parametrize("files", [{}, {'base/"ä\\\u2028.yaml': b"1", "base/a.yaml": b"2", "a/b.yaml": b""}])
def test_index(files: dict[str, bytes]) -> None:
    """An index is written by hand, and is to the byte what the JSON writer would write."""
    index = Rendering("ü", "policies/ü.yaml", "1.34", MappingProxyType(files)).index().decode()
    found = json.loads(index)
    assert index == json.dumps(found, indent=1) + "\n"
    assert list(found) == ["format", "cluster", "source", "kubernetes", "files"]
    assert list(found["files"]) == sorted(files)


def test_bodies_are_let_go_of() -> None:
    """jsii keeps every construct for ever; the objects that the compiler has taken are not kept with it."""
    cdk8s = pytest.importorskip("cdk8s")
    from gpustack.components import RuntimeClasses
    from gpustack.components.toolkit.toolkit_inputs import RuntimeClassesInputs

    made = RuntimeClasses(cdk8s.Chart(cdk8s.App(), "c"), "x", RuntimeClassesInputs())
    before = made.resources()
    taken = made.take()
    assert taken == before
    assert all(resource.body["kind"] == "RuntimeClass" for resource in taken)
    assert [resource.body for resource in made.resources()] == [{}] * len(taken)


def test_places_are_kept(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a warning's value was written is looked up once: told again, it needs no policy to be loaded."""
    path = project.policy("a", cdi={"enabled": True, "default": True}, **WARNED)
    first = project.run("render")
    assert (first.code, "warning" in first.err, f"{path.name}:" in first.err) == (0, True, True)
    monkeypatch.setattr(sources, "load_policy", None)
    again = project.run("render")
    assert (again.code, again.err) == (0, first.err)
    path.write_text("# a line more\n" + path.read_text())
    monkeypatch.undo()
    moved = project.run("render")
    assert moved.code == 0
    assert moved.err != first.err


def test_worth_of_a_process(project: Project) -> None:
    """Items that need something costly to start are not spread over more processes than they are worth."""
    done = project.python(WORTH)
    assert (done.code, done.err) == (0, "")


def test_node_starts_early_only_where_it_is_needed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache Node starts while policies are read; with anything in it, only when something is missing."""
    calls: list[Path] = []
    monkeypatch.setattr(node, "start_early", lambda: calls.append(project.folder))
    own = {"GPUSTACK_CACHE": str(tmp_path / "own")}
    project.policy("a")
    assert project.run("render", env=own).code == 0
    assert len(calls) == 1
    project.policy("b", daemonsets={"labels": {"new": "yes"}})
    assert project.run("render", env=own).code == 0
    assert len(calls) == 1


def test_a_small_heap_for_our_own_node_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node gets an option that halves a worker's memory; a Node or options that the user chose stay as they are."""
    monkeypatch.setattr(node, "on_path", lambda search: "/some/node")
    monkeypatch.setattr(node, "version", lambda program: 18)
    for given, options in (
        ({}, node.SMALL_HEAP),
        ({"NODE_OPTIONS": "--max-x=1"}, "--max-x=1"),
        ({"JSII_NODE": "/old/node"}, None),
    ):
        environment: dict[str, str] = dict(given)
        node.configure(environment)
        assert environment.get("NODE_OPTIONS") == options
