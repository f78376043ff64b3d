"""How images are named: with a tag, by digest where others are, and pins that pin something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from gpustack.policy.help.schema import export
from gpustack.policy.language.forms import form
from tests.checks.snippets import said

DIGEST = "sha256:" + "a" * 64
RULES = {rule.id: rule for rule in all_rules()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all: what they share is rendered once."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def pods(image: str, **more: Any) -> str:
    """Part of a policy with a pod that runs IMAGE."""
    meta = {"name": "probe", "namespace": "gpu-operator"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    return json.dumps({"extraObjects": [{**body, "spec": {"containers": [{"name": "main", "image": image}]}}], **more})


def pinned(*names: str) -> dict[str, Any]:
    """A cluster whose images NAMES have digests."""
    return {"cluster": {"kubernetesVersion": "1.34", "imageDigests": dict.fromkeys(names, DIGEST)}}


@pytest.mark.parametrize("image", ["probe", "r.example/a/probe", "localhost:5000/probe"])
def test_no_tag(store: Store, image: str) -> None:
    """A port is not a tag; the place is that of the container."""
    (finding,) = said(RULES["GPU114"], pods(image), store)
    assert finding.path == "spec.extraObjects[0].spec.containers[0].image"


@pytest.mark.parametrize("image", ["probe:1", f"r.example/probe@{DIGEST}", f"localhost:5000/probe:1@{DIGEST}"])
def test_tag_or_digest(store: Store, image: str) -> None:
    """Either will do."""
    assert said(RULES["GPU114"], pods(image), store) == []


def test_tags_beside_digests(store: Store) -> None:
    """Each image of the cluster that has no digest is told once all that are pinned are by digest; of extraObjects at
    their place, and no word about those that have one.
    """
    found = {
        finding.path: finding.what
        for finding in said(RULES["GPU115"], pods("r.example/probe:1", **pinned("nvcr.io/nvidia/driver:1")), store)
    }
    assert set(found) == {"spec.cluster.imageDigests", "spec.extraObjects[0].spec.containers[0].image"}
    validator = "nvcr.io/nvidia/gpu-operator:v26.7.0"
    assert validator in found["spec.cluster.imageDigests"]
    (finding,) = said(RULES["GPU115"], pods(f"r.example/probe:1@{DIGEST}", **pinned(validator)), store)
    assert validator not in finding.what


def test_no_digests_at_all(store: Store) -> None:
    """A cluster that renders tags on purpose hears nothing."""
    assert said(RULES["GPU115"], pods("r.example/probe:1"), store) == []


@pytest.mark.parametrize(
    ("name", "mirrors", "near"),
    [
        ("nvcr.io/nvidia/gpu-operator:v1", {}, "nvcr.io/nvidia/gpu-operator:v26.7.0"),
        ("nvcr.io/nvidia/gpu-operator:v26.7.0", {"nvcr.io": "m.example"}, "m.example/nvidia/gpu-operator:v26.7.0"),
        ("r.example/probe:1", {}, ""),
    ],
)
def test_pins_of_nothing(store: Store, name: str, mirrors: dict[str, str], near: str) -> None:
    """Another tag, the source of what has a mirror, and an image of extraObjects, which are not rewritten."""
    cluster = {**pinned(name)["cluster"], "registryMap": mirrors}
    (finding,) = said(RULES["GPU116"], pods("r.example/probe:1", cluster=cluster), store)
    assert name in finding.what
    assert near in finding.remedy


@pytest.mark.parametrize("name", ["nvcr.io/nvidia/gpu-operator:v26.7.0", "nvcr.io/nvidia/driver:595.91.07-ubuntu22.04"])
def test_pins_of_images(store: Store, name: str) -> None:
    """Images of sections, on or off, and drivers with the system behind their tag."""
    assert said(RULES["GPU116"], json.dumps(pinned(name)), store) == []


URL = {"kataManager": {"config": {"runtimeClasses": [{"name": "a", "artifacts": {"url": "r.example/x:1"}}]}}}
TOOLKIT = {"cluster": {"openshift": {"driverToolkitImages": {"418.94.202507221927-0": "r.example/x:1"}}}}


@pytest.mark.parametrize("said_so", [URL, TOOLKIT], ids=["url", "toolkit"])
def test_whole_references(said_so: dict[str, Any], store: Store) -> None:
    """Guest artifacts of Kata and images of OpenShift's driver toolkit count among the images: they may have a mirror
    and a digest.
    """
    cluster = pinned("m.example/x:1")["cluster"] | {"registryMap": {"r.example": "m.example"}}
    snippet = json.dumps({**said_so, "cluster": {**cluster, **said_so.get("cluster", {})}})
    assert said(RULES["GPU116"], snippet, store) == []
    assert said(RULES["GPU111"], snippet, store) == []


def test_no_whole_reference_is_forgotten() -> None:
    """These are all fields of the language that hold a whole reference; the entries of imageDigests are no images."""
    pattern = form("image_reference").schema()["pattern"]

    def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        if isinstance(value, dict):
            if value.get("pattern") == pattern:
                yield path
            for key, item in value.items():
                yield from places(item, (*path, key))

    assert {(path[1], path[3]) for path in places(export())} == {
        ("Acceptance", "image"),
        ("ClusterFacts", "imageDigests"),
        ("KataArtifacts", "url"),
        ("OpenShift", "driverToolkitImages"),
    }


@pytest.mark.parametrize("text", ["r.example/x", "localhost:5000/x", "x", "r.example/x:", "r.example/x@sha256:1"])
def test_whole_references_have_a_tag(text: str) -> None:
    """One without tag or digest is refused where it is read, with the remedy."""
    with pytest.raises(PydanticCustomError) as caught:
        form("image_reference").check(text)
    if text[-1] == "x":
        assert ":latest" in str(caught.value.context)
    assert form("image_reference").check(f"r.example:5000/x:1@{DIGEST}")


def mirrored_by(*registries: str, mirror: str = "m.example") -> dict[str, Any]:
    """A cluster whose REGISTRIES have a MIRROR."""
    return {"cluster": {"kubernetesVersion": "1.34", "registryMap": {each: f"{mirror}/{each}" for each in registries}}}


OWN = {"reconciler": {"image": "r.example/gpu/gpustack-reconciler:1"}}


@pytest.mark.parametrize(
    ("snippet", "hosts"),
    [
        (mirrored_by("nvcr.io"), ["registry.k8s.io"]),
        (mirrored_by("registry.k8s.io"), ["nvcr.io"]),
        (mirrored_by("nvcr.io", "registry.k8s.io"), []),
        (mirrored_by("nvcr.io/nvidia", "registry.k8s.io/nfd", mirror="m.example:5000"), []),
        ({**mirrored_by("nvcr.io", "registry.k8s.io"), **OWN}, ["r.example"]),
        ({**mirrored_by("nvcr.io", "registry.k8s.io", mirror="r.example"), **OWN}, []),
        ({**mirrored_by("nvcr.io"), "nfd": {"enabled": False}}, []),
        ({"cluster": {"kubernetesVersion": "1.34"}}, []),
    ],
    ids=["nfd", "nvidia", "both", "paths", "reconciler", "own-registry", "off", "no-map"],
)
def test_registries_without_a_mirror(snippet: dict[str, Any], hosts: list[str], store: Store) -> None:
    """Where a mirror is set, each registry that something still comes from is told, whatever component it is; what is
    off, and a registry that the mirror lies in, are not.
    """
    found = said(RULES["GPU117"], json.dumps(snippet), store)
    assert [finding.remedy.partition(":")[0] for finding in found] == [f"add {host}" for host in hosts]
    assert all(finding.path == "spec.cluster.registryMap" for finding in found)


def test_extra_objects_without_a_mirror(store: Store) -> None:
    """An image in extraObjects is never rewritten, so the remedy is another one, at its place."""
    both = mirrored_by("nvcr.io", "registry.k8s.io", "docker.io")
    found = said(RULES["GPU117"], pods("busybox:1", **both), store)
    assert [(finding.path, "docker.io" in finding.what) for finding in found] == [("spec.extraObjects[0]", True)]
    assert said(RULES["GPU117"], pods("m.example/docker.io/busybox:1", **both), store) == []
