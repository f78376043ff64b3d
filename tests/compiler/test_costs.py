"""What a render must not do twice, nor keep: each promise here is seconds or megabytes of a fleet (`make bench`)."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gpustack.cluster import resolve
from gpustack.compiler import fleet, node, sources
from gpustack.compiler.dist import Rendering
from gpustack.policy.language.spec import ClusterPolicySpec
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


POOL = {
    "name": "training",
    "os": "ubuntu24.04",
    "gpuProduct": "Tesla-T4",
    "gpusPerNode": 4,
    "count": 3,
    "nodeSelector": {"example.com/pool": "training"},
    "sharing": {"timeSlicing": {"replicas": 2}},
}
ONE = """
import sys
from gpustack.cli import main
code = main(["render", *sys.argv[1:]])
print(code, sorted({"jsii", "pydantic"} & sys.modules.keys()))
"""


def test_one_of_many_is_compiled_beside_the_look_at_the_others(project: Project) -> None:
    """A policy that was changed in a fleet is compiled by another process while this one reads on, which needs neither
    Node nor the models; what is said and written is what one process alone says and writes."""
    for number in range(2 * sources.SEEN):
        project.policy(f"c{number:02}")
    assert project.spawn("render").code == 0
    for spec, code in (({"labels": {"new": "yes"}}, 0), ({"labels": {"new": "no way!"}}, 4), ({"label": {}}, 4)):
        path = project.policy("c50", daemonsets=spec)
        beside = project.python(ONE, "--jobs", "2")
        assert beside.out.splitlines()[-1] == f"{code} []"
        held = {file: file.read_bytes() for file in project.dist.rglob("*.yaml")}
        path.write_text(f"{path.read_text()}# another\n")
        alone = project.spawn("render", "--jobs", "1", "--no-cache")
        assert (alone.code, alone.err) == (code, beside.err)
        assert held == {file: file.read_bytes() for file in project.dist.rglob("*.yaml")}


def test_specs_are_let_go_of(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that compiles many specs holds few of them, though a cluster and its pools refer to each other, and
    Python looks for such garbage by the hundred thousand objects."""
    made: list[weakref.ref[ClusterPolicySpec]] = []
    read = sources.unpacked

    def seen(*given: Any) -> ClusterPolicySpec:
        spec = read(*given)
        made.append(weakref.ref(spec))
        return spec

    monkeypatch.setattr(sources, "unpacked", seen)
    monkeypatch.setattr(fleet, "_turns", itertools.count(1))
    monkeypatch.setattr(resolve, "KEPT", 2)
    monkeypatch.setattr(resolve, "_kept", OrderedDict())
    for number in range(fleet.STACKS_PER_SWEEP):
        project.policy(f"c{number}", daemonsets={"labels": {"n": str(number)}}, nodePools=[POOL])
    gc.disable()
    try:
        assert project.run("render", "--jobs", "1").code == 0
    finally:
        gc.enable()
        gc.unfreeze()
    held = [each for each in made if each() is not None]
    assert (len(made), len(held) < 5) == (fleet.STACKS_PER_SWEEP, True)


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
