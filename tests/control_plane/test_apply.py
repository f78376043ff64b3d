"""Every manifest of dist/ is what a real API server of the cluster's release takes, as a GitOps engine applies it.

Only etcd and the API server run here: nothing acts on the objects, so that each cluster finds the server as it would
be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpustack.compiler.cache import Store, own_digest
from gpustack.model import Body
from tests.control_plane.api import Answer, Api, ApiError
from tests.control_plane.cluster import EMULATED, ControlPlane
from tests.control_plane.conftest import NewControlPlane
from tests.control_plane.manifests import (
    DIST,
    MANAGER,
    Manifest,
    apply_all,
    clusters,
    kubernetes,
    manifests,
    prepare,
)
from tests.fidelity.test_operator import CASES, render


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Api]]:
    """API servers by the release that they behave as, each started once."""
    planes: dict[str, ControlPlane] = {}

    def get(version: str) -> Api:
        if version not in planes:
            plane = ControlPlane(tmp_path_factory.mktemp("api-server"), emulated=version, controllers=False)
            planes[version] = plane.__enter__()
        return planes[version].admin

    yield get
    for plane in planes.values():
        plane.stop()


def emulated_for(release: str) -> str:
    """The release to behave as for a cluster: its own, or the oldest that can be had."""
    return max(EMULATED[0], release)


@pytest.mark.parametrize("cluster", clusters())
def test_cluster_is_accepted(api_server: Callable[[str], Api], cluster: str) -> None:
    """Nothing is refused or warned about by the cluster's own release; a second apply changes nothing."""
    api = api_server(emulated_for(kubernetes(cluster)))
    stages = list(manifests(DIST / cluster))
    prepare(api, stages)
    answers = apply_all(api, stages)
    try:
        assert [f"{one}: {answer}" for one, answer in answers.items() if isinstance(answer, ApiError)] == []
        warned = {str(one): answer.warnings for one, answer in answers.items() if isinstance(answer, Answer)}
        assert {name: warnings for name, warnings in warned.items() if warnings} == {}
        before = {one: answer.body for one, answer in answers.items() if isinstance(answer, Answer)}
        again = {one: api.apply(one.body, one.text, manager=MANAGER).body for one in answers}
        assert [str(one) for one in answers if content(before[one]) != content(again[one])] == []
        # An object of which nothing but the name was applied (a bare Namespace) has no owner in managedFields: the
        # server enters one with the second apply. From then on nothing at all is written.
        entered = [one for one in answers if version_of(before[one]) != version_of(again[one])]
        assert {one.body["kind"] for one in entered} <= {"Namespace"}
        third = {one: api.apply(one.body, one.text, manager=MANAGER).body for one in entered}
        assert [str(one) for one in entered if version_of(third[one]) != version_of(again[one])] == []
    finally:
        for one in reversed(answers):
            if one.body["kind"] != "CustomResourceDefinition":
                delete(api, one, answers[one])


def content(body: Body) -> Body:
    """An object without its status, and without what says who wrote it, and when."""
    meta = {key: value for key, value in body["metadata"].items() if key not in {"managedFields", "resourceVersion"}}
    return {key: value for key, value in {**body, "metadata": meta}.items() if key != "status"}


STATUS_BY_SERVER = ("CustomResourceDefinition", "FlowSchema")
"""Kinds whose status the API server itself writes, some time after they are applied."""


def version_of(body: Body) -> str:
    """What the API server raises with each change: the version, or where it is at work itself, that of the spec."""
    return str(body["metadata"]["generation" if body["kind"] in STATUS_BY_SERVER else "resourceVersion"])


def delete(api: Api, manifest: Manifest, answer: Answer | ApiError) -> None:
    """Make room for the next cluster, whose names are the same. No controller finishes a namespace here."""
    if isinstance(answer, ApiError):
        return
    api.delete(manifest.kind, manifest.name, manifest.namespace)
    if manifest.body["kind"] == "Namespace":
        rest = api.get("Namespace", manifest.name)
        rest["spec"]["finalizers"] = []
        api.update(rest, subresource="finalize")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[list[Manifest]]:
    """All clusters of dist/, and what the 86 policies that the operator was measured with render to, each object once.

    Namespaces stand in each, for they differ in their labels.
    """
    store = Store(tmp_path_factory.mktemp("store"), own_digest())
    rendered = [[one for stage in manifests(DIST / cluster) for one in stage] for cluster in clusters()]
    for release, case in CASES:
        bodies = render(release, case, tmp_path_factory.mktemp("case"), store)
        rendered.append(
            [Manifest(Path(release, case, one["kind"], one["metadata"]["name"]), b"", one) for one in bodies]
        )
    seen: set[str] = set()
    return [[one for one in objects if one.body["kind"] == "Namespace" or is_new(one, seen)] for objects in rendered]


def is_new(manifest: Manifest, seen: set[str]) -> bool:
    """Whether this is the first of its content."""
    text = json.dumps(manifest.body, sort_keys=True)
    if text in seen:
        return False
    seen.add(text)
    return True


@pytest.mark.parametrize("release", [EMULATED[0], EMULATED[-1]])
def test_everything_is_accepted(
    new_control_plane: NewControlPlane, everything: list[list[Manifest]], release: str
) -> None:
    """The oldest and the newest API server take every object without a warning (and keep none: a dry run)."""
    api = new_control_plane(emulated=release, controllers=False).admin
    found: list[str] = []
    for objects in everything:
        kept = [one for one in objects if one.body["kind"] in KEPT]
        rest = [one for one in objects if one.body["kind"] not in KEPT]
        prepare(api, [objects])
        answers = {**apply_all(api, [kept]), **apply_all(api, [rest], dry_run=True)}
        found += [f"{one.path}: {answer}" for one, answer in answers.items() if isinstance(answer, ApiError)]
        found += [f"{one.path}: {said}" for one, said in answers.items() if isinstance(said, Answer) and said.warnings]
    assert found == []


KEPT = ("CustomResourceDefinition", "Namespace")
"""What other objects need."""
