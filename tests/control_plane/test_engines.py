"""What the engines themselves say of the rendered clusters once they are applied: that nothing differs.

Each engine's own library runs, in a small Go program below go/, against an API server: Flux's applies, applies again
and compares; Argo CD's compares with the server's word on what an apply would change, as rendered Applications ask for.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpustack.model import STAGES
from tests.control_plane.api import Answer, Body
from tests.control_plane.cluster import EMULATED, ControlPlane
from tests.control_plane.manifests import DIST, Manifest, clusters, manifests, prepare
from tests.control_plane.test_apply import delete
from tests.project import ROOT
from tests.readers.go_reader import built

PROGRAMS = Path(__file__).parent / "go"
TOOLS = ROOT / ".tools/bin"
RELEASES = (EMULATED[0], EMULATED[-1])
Verdicts = list[dict[str, Any]]
NewServer = Callable[[str, str], ControlPlane]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewServer]:
    """API servers by engine and release, each started once: engines leave their names on what stays (CRDs)."""
    planes: dict[tuple[str, str], ControlPlane] = {}

    def get(engine: str, release: str) -> ControlPlane:
        if (engine, release) not in planes:
            plane = ControlPlane(tmp_path_factory.mktemp("api-server"), emulated=release, controllers=False)
            planes[engine, release] = plane.__enter__()
        return planes[engine, release]

    yield get
    for plane in planes.values():
        plane.stop()


def judged(engine: str, plane: ControlPlane, cluster: str) -> Verdicts:
    """What the library of ENGINE says of CLUSTER, which is gone from the server afterwards."""
    stages = list(manifests(DIST / cluster))
    prepare(plane.admin, stages)
    try:
        return verdicts_of(engine, plane, cluster)
    finally:
        remove(plane, [one for stage in stages for one in stage])


def verdicts_of(engine: str, plane: ControlPlane, cluster: str) -> Verdicts:
    """What the library of ENGINE says of CLUSTER when it has applied it, which it stays."""
    program = built(PROGRAMS / engine, TOOLS / f"{engine}-engine")
    folders = [str(DIST / cluster / stage) for stage in STAGES if (DIST / cluster / stage).is_dir()]
    command = [str(program), str(plane.kubeconfig("admin", plane.token)), cluster, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def remove(plane: ControlPlane, applied: list[Manifest]) -> None:
    """Make room for the next cluster."""
    for one in reversed(applied):
        if one.body["kind"] != "CustomResourceDefinition" and plane.admin.find(one.kind, one.name, one.namespace):
            delete(plane.admin, one, Answer(200, one.body))


def told(verdict: dict[str, Any], side: str) -> str:
    """A difference between what is there and SIDE, for whoever reads that the test failed."""
    return f"{verdict['subject']}: {differences(verdict.get('live') or {}, verdict.get(side) or {})}"


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where ONE and OTHER differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [found for key in keys for found in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for index, (a, b) in pairs for found in differences(a, b, f"{path}[{index}]")]
    return [] if one == other else [f"{path}: {one!r} -> {other!r}"]


def objects(cluster: str) -> int:
    """How many objects CLUSTER has."""
    return sum(len(stage) for stage in manifests(DIST / cluster))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("cluster", clusters())
def test_flux_finds_no_drift(server: NewServer, cluster: str, release: str) -> None:
    """Flux applies every object, a second apply changes none, and the dry-run difference of each is empty."""
    verdicts = judged("flux", server("flux", release), cluster)
    passes = {name: [each for each in verdicts if each["pass"] == name] for name in ("apply", "again", "diff")}
    assert {name: len(found) for name, found in passes.items()} == dict.fromkeys(passes, objects(cluster))
    assert [each["subject"] for each in passes["again"] if each["action"] != "unchanged"] == []
    assert [told(each, "merged") for each in passes["diff"] if each["action"] != "unchanged"] == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("cluster", clusters())
def test_argo_cd_finds_no_drift(server: NewServer, cluster: str, release: str) -> None:
    """Argo CD's diff engine takes every object, rendered and live, for equal."""
    verdicts = judged("argocd", server("argocd", release), cluster)
    assert len(verdicts) == objects(cluster)
    assert [told(each, "predicted") for each in verdicts if each["modified"]] == []


def test_a_difference_is_found(server: NewServer, tmp_path: Path) -> None:
    """The programs do find what differs: an object that somebody changed after it was applied."""
    plane = server("argocd", RELEASES[-1])
    body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    (tmp_path / "a.yaml").write_text(json.dumps({**body, "data": {"a": "1"}}), encoding="utf-8")
    (tmp_path / "b.yaml").write_text(json.dumps({**body, "data": {"a": "2"}}), encoding="utf-8")
    if not plane.admin.find("Namespace", "default"):
        plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    found = {}
    for engine in ("argocd", "flux"):
        program = built(PROGRAMS / engine, TOOLS / f"{engine}-engine")
        command = [str(program), str(plane.kubeconfig("admin", plane.token)), "x", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found[engine] = {str(each.get("modified", each.get("action"))) for each in lines}
    assert "True" in found["argocd"], "the first of two files for one object is not what is there"
    assert "configured" in found["flux"]
