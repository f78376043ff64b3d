"""The same policies give the same bytes: however many workers, whatever the cache, the process and the machine are
like."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpustack.compiler.cache import Store
from gpustack.compiler.fleet import STACKS_PER_NODE
from gpustack.compiler.stack import compile_stack
from gpustack.policy.loading.load import load, spec_key
from tests.project import Project, document

RICH: dict[str, Any] = {
    "release": "v26.7.0",
    "cluster": {
        "kubernetesVersion": "1.34",
        "monitoring": True,
        "registryMap": {
            "nvcr.io": "m.example.com/a",
            "nvcr.io/nvidia": "m.example.com/b",
            "ghcr.io": "m.example.com/c",
        },
    },
    "daemonsets": {
        "labels": {"z": "1", "a": "2", "m": "3"},
        "annotations": {"y/b": "1", "y/a": "2"},
        "tolerations": [{"operator": "Exists", "key": "nvidia.com/gpu"}],
    },
    "driver": {"env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}], "rdma": {"enabled": True}},
    "devicePlugin": {"resources": {"limits": {"memory": "1Gi", "cpu": "1"}, "requests": {"cpu": "500m"}}},
    "gds": {"enabled": True},
    "dcgmExporter": {"serviceMonitor": {"enabled": True, "additionalLabels": {"b": "1", "a": "2"}}},
    "nodePools": [
        {
            "name": "cut",
            "os": "ubuntu22.04",
            "gpuProduct": "NVIDIA-A100-SXM4-80GB",
            "nodeSelector": {"pool": "cut", "a": "b"},
            "sharing": {"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 2}}, "timeSlicing": {"replicas": 2}},
        },
        {"name": "plain", "os": "ubuntu24.04", "gpuProduct": "NVIDIA-L4"},
    ],
    "extraObjects": [
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"b": "1\n2\n", "a": "on"}}
    ],
    "references": [{"kind": "Secret", "name": "s", "keys": ["b", "a"]}],
}


def shuffled(value: Any, chance: random.Random) -> Any:
    """VALUE with the keys of every mapping in it in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


def compiled(folder: Path, spec: Any, store: Store) -> tuple[str, dict[str, str]]:
    """The key of a spec and the text of its files."""
    file = folder / "a.yaml"
    file.write_text(document("ClusterPolicy", "a", spec))
    loaded = load(file, root=folder)
    key = spec_key(loaded.merged)
    return key, {found.path: found.text for found in compile_stack(loaded.spec, key, store).files}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, dict[str, str]]]:
    """A folder to work in, and what RICH compiles to."""
    folder = tmp_path_factory.mktemp("reference")
    return folder, compiled(folder, RICH, Store(folder / "cache", "s" * 64))


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_order_of_keys(reference: tuple[Path, tuple[str, dict[str, str]]], seed: int) -> None:
    """The order of keys in a policy changes neither the key of its stack nor a byte of it, with nothing in the
    store."""
    folder, expected = reference
    chance = random.Random(seed)
    spec = shuffled(copy.deepcopy(RICH), chance)
    assert compiled(folder, spec, Store(folder / f"cache-{seed}", "s" * 64)) == expected


def fleet(project: Project) -> None:
    """Enough different policies for several processes, in folders, layers and styles of all sorts."""
    project.layer("base", daemonsets={"labels": {"layer": "base"}})
    for number in range(2 * STACKS_PER_NODE):
        name = f"c{number:02}"
        project.policy(name, extends=["base"], daemonsets={"labels": {"number": name, "a": "b", "z": "y"}})
    project.write("policies/rich.yaml", document("ClusterPolicy", "rich", RICH))


def test_workers_caches_and_machines(project: Project, tmp_path: Path) -> None:
    """Every number of workers, every state of the cache, every hash seed, locale, time zone and home gives one tree."""
    fleet(project)
    cold = project.spawn("render", "--jobs", "1", env={"GPUSTACK_CACHE": str(tmp_path / "one"), "PYTHONHASHSEED": "0"})
    assert cold.code == 0, cold.err
    expected = project.tree()
    assert len(expected) > 100
    ways: list[tuple[list[str], dict[str, str | None]]] = [
        (
            ["--jobs", "2"],
            {"GPUSTACK_CACHE": str(tmp_path / "two"), "PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
        ),
        (
            ["--jobs", "4", "--no-cache"],
            {"PYTHONHASHSEED": "2", "LANG": "de_DE.UTF-8", "LC_ALL": None, "HOME": "/no/such", "PYTHONUTF8": "0"},
        ),
        (
            ["--jobs", "4"],
            {"GPUSTACK_CACHE": str(tmp_path / "one"), "PYTHONHASHSEED": "3", "LC_ALL": "tr_TR.UTF-8", "COLUMNS": "20"},
        ),
    ]
    for number, (words, env) in enumerate(ways):
        out = project.folder / f"out-{number}"
        done = project.spawn("render", *words, "--out", out, env=env)
        assert done.code == 0, done.err
        assert project.tree(out) == expected, words
    half_warm = project.folder / "half"
    names = ["c03", "rich", "c00"]
    env = {"GPUSTACK_CACHE": str(tmp_path / "half-cache")}
    assert project.spawn("render", *names, "--out", half_warm, env=env).code == 0
    assert project.spawn("render", "--out", half_warm, env=env).code == 0
    assert project.tree(half_warm) == expected


def test_one_at_a_time(project: Project) -> None:
    """Clusters that are rendered one by one, in any order, are those of a render of all; what was in dist/ before
    doesn't matter."""
    for name in "abc":
        project.policy(name, daemonsets={"labels": {"name": name}})
    project.run("render")
    for name in "cab":
        (project.folder / "out" / name / "base").mkdir(parents=True)
        (project.folder / "out" / name / "base/namespace-gpu-operator.yaml").write_text("something else")
        assert project.run("render", name, "--out", project.folder / "out").code == 0
    assert project.tree(project.folder / "out") == project.tree()


def test_style_of_the_file(project: Project) -> None:
    """Comments, quotes, flow and block style, BOM, CRLF and anchors are the author's business."""
    text = document("ClusterPolicy", "a", RICH)
    project.write("policies/a.yaml", text)
    project.run("render")
    expected = project.tree()
    flow = yaml.safe_dump(yaml.safe_load(text), default_flow_style=True, sort_keys=False, width=40)
    comments = "# first\n" + text.replace("spec:\n", "spec: # here\n\n") + "# last"
    anchor = text.replace("name: plain", "name: &plain plain").replace("name: a\n", "name: &a a\n")
    for other in ("\ufeff" + text, text.replace("\n", "\r\n"), flow, comments, anchor):
        project.write("policies/a.yaml", other.encode())
        assert project.run("render").code == 0
        assert project.tree() == expected
