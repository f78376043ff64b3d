"""What holds for every GitOps engine, by its record: those here, and any that somebody adds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpustack
from gpustack.gitops import FOLDER
from gpustack.gitops.engines import engine, engines, names, unasked
from gpustack.gitops.marks import Marks, marked
from gpustack.gitops.plan import Kind, Plan, file_of, objects, roots
from gpustack.gitops.reads import reads
from gpustack.model import Resource
from gpustack.policy.help.schema import export
from gpustack.policy.language.gitops import GitOps

ROOT = Path(gpustack.__file__).parent
URL = "https://git.example.com/gpu.git"


def plan(name: str, **settings: Any) -> Plan:
    """A plan for the engine NAME."""
    return Plan(
        settings=GitOps.model_validate({"engine": name, "repository": {"url": URL}, name: settings}),
        stages=("base", "driver"),
        namespace="gpu-operator",
        kinds=(Kind(group="apps", kind="DaemonSet", namespaced=True),),
        namespaces=("gpu-operator",),
        policies=(),
    )


@pytest.mark.parametrize("name", names())
def test_the_language_has_it(name: str) -> None:
    """A policy may name it, and has a section of that name, which the schema describes."""
    assert engine(name).name == name
    assert GitOps.model_validate({"engine": name, name: {}}).engine == name
    section = export()["$defs"]["GitOps"]["properties"]
    assert name in section["engine"]["enum"]
    assert engine(name).title in section[name]["description"]


@pytest.mark.parametrize("name", names())
def test_objects(name: str) -> None:
    """There are some, each of a kind that the record knows, in the engine's namespace, and a file each below its
    folder; there is something that a person applies once.
    """
    made = plan(name)
    bodies = objects(made, "prod")
    assert bodies
    assert made.folder("prod") == f"{FOLDER}/{name}/prod"
    assert len({file_of(body) for body in bodies}) == len(bodies)
    for body in (*bodies, *roots(made, "prod")):
        assert engine(name).kinds[body["kind"]].says
        assert body["metadata"]["namespace"] == engine(name).namespace(made.settings)


@pytest.mark.parametrize("name", names())
def test_what_is_read(name: str) -> None:
    """What the objects say that they read is what the policy names."""
    found = reads(objects(plan(name), "prod"))
    assert found is not None
    assert (found.engine, found.url) == (name, URL)
    assert found.folder.endswith("prod")


@pytest.mark.parametrize("name", names())
def test_marks(name: str) -> None:
    """What must not be pruned is marked so, in annotations that this engine reads, and the mark is understood again."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "b"}}
    kept = marked(Resource(body, "driver", "x"), Marks(name), guarded=True).body
    notes = kept["metadata"]["annotations"]
    assert all(key.startswith(engine(name).annotations) for key in notes)
    assert engine(name).guarded(notes)
    assert not engine(name).guarded({})
    assert "annotations" not in body["metadata"]


def test_one_is_meant_where_none_is_named() -> None:
    """An artifact that nobody is known to read is for one engine."""
    assert [each for each in engines() if each.unasked] == [unasked()]


def test_prefixes_tell_engines_apart() -> None:
    """An annotation is read by one engine."""
    prefixes = [prefix for each in engines() for prefix in each.annotations]
    assert len(set(prefixes)) == len(prefixes)


def compared(tree: ast.AST) -> Iterator[int]:
    """The lines on which something is compared with an engine's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                words = [leaf.value for leaf in ast.walk(part) if isinstance(leaf, ast.Constant)]
                if any(isinstance(word, str) and word in names() for word in words):
                    yield node.lineno


def test_nobody_compares_names() -> None:
    """Whoever wants to know something about an engine asks its record: else a further one is code in every place."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        for line in compared(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
