"""gpustack lock against registries on this machine: what it writes, what --check finds, and what a lock renders to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gpustack.registry.client import Client
from gpustack.registry.credentials import Credentials
from gpustack.registry.reference import Reference, parse
from tests.loopback_registry import INDEX, MANIFEST, Registry, digest_of, strict
from tests.project import Project

VALIDATOR = "nvidia/gpu-operator"


@pytest.fixture
def registry() -> Iterator[Registry]:
    """The strict registry."""
    with strict() as found:
        yield found


def mirrored(host: str, **spec: Any) -> dict[str, Any]:
    """A spec whose images all come from HOST."""
    return {"cluster": {"kubernetesVersion": "1.34", "registryMap": {"nvcr.io": host}}, **spec}


def quiet(project: Project, *words: str) -> Any:
    """Run a verb without the logins of whoever runs the tests."""
    gone = dict.fromkeys(("DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "DOCKER_CONFIG"))
    return project.run(*words, env={**gone, "HOME": str(project.folder)})


def test_what_is_written(project: Project, registry: Registry) -> None:
    """Images in order with the digest of the index and of each platform; a second run changes no byte."""
    project.policy("one", **mirrored(registry.host))
    digest, platforms = registry.index(VALIDATOR, "v26.7.0")
    ran = quiet(project, "lock")
    name = f"{registry.host}/{VALIDATOR}:v26.7.0"
    assert (ran.code, ran.out) == (0, f"new: {name}\n1 image locked\n")
    text = (project.folder / "images.lock").read_bytes()
    assert yaml.safe_load(text) == {"version": 1, "images": {name: {"digest": digest, "platforms": platforms}}}
    assert quiet(project, "lock").out == "1 image locked, nothing changed\n"
    assert (project.folder / "images.lock").read_bytes() == text
    assert quiet(project, "lock", "--check").code == 0


def test_a_registry_out_of_reach_is_told_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many images are to come from it, one error says so, and no image stands in it."""
    monkeypatch.setattr("gpustack.registry.client.ATTEMPTS", 1)
    spec = mirrored(
        "127.0.0.1:1", devicePlugin={"enabled": True}, gfd={"enabled": True}, dcgmExporter={"enabled": True}
    )
    project.policy("one", **spec)
    ran = quiet(project, "lock", "--format", "json")
    assert ran.code == 4, ran.err
    assert len(quiet(project, "images", "--format", "list").out.splitlines()) > 2
    assert (ran.out + ran.err).count("GPU960") == 1, ran.err
    assert "the registry 127.0.0.1:1 can't be asked" in ran.out + ran.err


def test_a_tag_that_was_moved(project: Project, registry: Registry) -> None:
    """--check says which, writes nothing and ends with 3; --offline can't know it; lock takes the new digest."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    quiet(project, "lock")
    before = project.tree(project.folder)
    registry.index(VALIDATOR, "v26.7.0", b"another")
    ran = quiet(project, "lock", "--check")
    assert (ran.code, ran.out) == (3, f"moved: {registry.host}/{VALIDATOR}:v26.7.0\n")
    assert "run `gpustack lock`" in ran.err
    assert project.tree(project.folder) == before
    assert quiet(project, "lock", "--check", "--offline").code == 0
    assert quiet(project, "lock").code == 0
    assert quiet(project, "lock", "--check").code == 0


def test_images_that_come_and_go(project: Project, registry: Registry) -> None:
    """Offline too, --check tells images that aren't locked from those that nobody uses any more."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    registry.index(VALIDATOR, "v1")
    quiet(project, "lock")
    asked = len(registry.asked)
    project.policy("one", **mirrored(registry.host, validator={"version": "v1"}))
    ran = quiet(project, "lock", "--check", "--offline", "--format", "json")
    name = f"{registry.host}/{VALIDATOR}"
    assert (ran.code, len(registry.asked)) == (3, asked)
    assert {key: ran.json[key] for key in ("exit", "missing", "unused", "moved")} == {
        "exit": 3,
        "missing": [f"{name}:v1"],
        "unused": [f"{name}:v26.7.0"],
        "moved": [],
    }


def test_all_that_is_missing_is_said(project: Project, registry: Registry) -> None:
    """Every image that a registry hasn't is named, and nothing is written."""
    sections = {"nodeStatusExporter": {"enabled": True, "version": "v9"}}
    project.policy("one", **mirrored(registry.host, **sections))
    ran = quiet(project, "lock")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.count("GPU962") == 2
    assert not (project.folder / "images.lock").exists()


def test_no_lock_yet(project: Project, registry: Registry) -> None:
    """--check without a file says so."""
    project.policy("one", **mirrored(registry.host))
    ran = quiet(project, "lock", "--check", "--offline")
    assert ran.code == 4
    assert "GPU965: there is no images.lock" in ran.err


@pytest.mark.parametrize("text", ["version: 2\nimages: {}\n", "version: 1\nimages: {a: b}\n", "images: [\n"])
def test_a_broken_lock(project: Project, registry: Registry, text: str) -> None:
    """--check refuses a lock that can't be read, and lock writes it anew."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    project.write("images.lock", text)
    assert quiet(project, "lock", "--check", "--offline").code == 4
    assert quiet(project, "lock").code == 0
    assert quiet(project, "lock", "--check").code == 0


def test_manifests_with_digests(project: Project, registry: Registry) -> None:
    """With the layer, images of components are name:tag@digest, also in variables; the lock still looks at the tag."""
    project.policy("one", **mirrored(registry.host))
    digest, _ = registry.index(VALIDATOR, "v26.7.0")
    assert quiet(project, "lock", "--layer").code == 0
    project.policy("one", **mirrored(registry.host, extends=["locked-images"]))
    pinned = f"{registry.host}/{VALIDATOR}:v26.7.0@{digest}"
    (image,) = quiet(project, "images", "--format", "json").json["images"]
    assert (image["reference"], image["digest"]) == (pinned, digest)
    assert image["source"].startswith("nvcr.io/nvidia/gpu-operator:v26.7.0@")
    assert any(not use["pulled"] for use in image["uses"])
    copied = quiet(project, "images", "--format", "list").out
    assert copied == f"nvcr.io/{VALIDATOR}@{digest} {registry.host}/{VALIDATOR}:v26.7.0\n"
    assert quiet(project, "lock", "--check").code == 0
    moved, _ = registry.index(VALIDATOR, "v26.7.0", b"another")
    assert quiet(project, "lock", "--check").code == 3
    assert quiet(project, "lock").code == 0
    assert quiet(project, "lock", "--check").code == 0
    (image,) = quiet(project, "images", "--format", "json").json["images"]
    assert image["digest"] == moved


ARM = {"name": "a", "gpuProduct": "NVIDIA-GB200", "gpusPerNode": 4, "nodeSelector": {"pool": "a"}}


@pytest.mark.parametrize("pool", [ARM, {"name": "a", "arch": "arm64", "nodeSelector": {"pool": "a"}}])
def test_nodes_with_another_cpu(project: Project, registry: Registry, pool: dict[str, Any]) -> None:
    """An image without the platform of nodes that need it is told by lock, which writes all the same, by --check, and
    by what is locked offline: with the clusters, and exit code 2. Grace is the CPU of every GB200 (products.yaml).
    """
    project.policy("one", **mirrored(registry.host, nodePools=[pool]))
    project.policy("two", **mirrored(registry.host))
    registry.image(VALIDATOR, "v26.7.0", "amd64", b"layer")
    for words in (["lock"], ["lock", "--check"], ["lock", "--check", "--offline"]):
        ran = quiet(project, *words)
        assert ran.code == 2, ran.err
        assert (
            f"GPU969: {registry.host}/{VALIDATOR}:v26.7.0 has no image for linux/arm64, which nodes of one" in ran.err
        )
    found = quiet(project, "lock", "--check", "--offline", "--format", "json").json
    assert [one["rule"] for one in found["findings"]] == ["GPU969"]
    registry.index(VALIDATOR, "v26.7.0")
    assert quiet(project, "lock").code == 0
    assert quiet(project, "lock", "--check", "--offline").code == 0


def test_nodes_whose_cpu_is_not_known(project: Project, registry: Registry) -> None:
    """Nothing is said of pools that say neither their architecture nor a GPU that comes with its CPU."""
    pool = {**ARM, "gpuProduct": "NVIDIA-H100-80GB-HBM3"}
    project.policy("one", **mirrored(registry.host, nodePools=[pool]))
    registry.image(VALIDATOR, "v26.7.0", "arm64", b"layer")
    assert quiet(project, "lock").code == 0


def test_images_of_other_nodes(project: Project, registry: Registry) -> None:
    """Only nodes that have pods with it need an image: those with vGPUs alone have no node status exporter."""
    host = {"name": "b", "arch": "arm64", "workload": "vm-vgpu", "nodeSelector": {"pool": "b"}}
    container = {"name": "a", "arch": "amd64", "workload": "container", "nodeSelector": {"pool": "a"}}
    exporter = {"enabled": True, "repository": f"{registry.host}/nvidia", "image": "exporter", "version": "1"}
    more = {"sandboxWorkloads": {"enabled": True}, "nodeStatusExporter": exporter, "nodePools": [container, host]}
    project.policy("one", **mirrored(registry.host, **more))
    (image,) = [
        each
        for each in quiet(project, "images", "--format", "json").json["images"]
        if each["repository"].endswith("nvidia/exporter")
    ]
    assert image["platforms"] == [{"platform": "linux/amd64", "clusters": ["one"]}]


def test_digests_of_platforms_are_shown(project: Project, registry: Registry) -> None:
    """Where there is a lock, `images` has the digest of the index and those of platforms: for people, as JSON and in
    the bill of materials; an image that is not in the lock is told.
    """
    project.policy("one", **mirrored(registry.host))
    digest, platforms = registry.index(VALIDATOR, "v26.7.0")
    assert quiet(project, "images", "--format", "json").json["images"][0]["locked"] is None
    assert "locked" not in quiet(project, "images").out
    quiet(project, "lock")
    (image,) = quiet(project, "images", "--format", "json").json["images"]
    assert image["locked"] == {"digest": digest, "platforms": platforms}
    assert f"  locked: {digest}, for linux/amd64, linux/arm64\n" in quiet(project, "images").out
    bill = quiet(project, "images", "--format", "cyclonedx").json
    (found,) = [each for each in bill["components"] if each["type"] == "container"]
    assert found["hashes"] == [{"alg": "SHA-256", "content": digest.partition(":")[2]}]
    told = {one["name"]: one["value"] for one in found["properties"]}
    assert {name: told[f"gpustack:digest:{name}"] for name in platforms} == platforms
    project.policy("one", **mirrored(registry.host, validator={"version": "v1"}))
    assert "  not locked\n" in quiet(project, "images").out
    project.write("images.lock", "version: 2\n")
    ran = quiet(project, "images")
    assert (ran.code, "GPU965" in ran.err) == (4, True)


def test_clusters_without_the_layer(project: Project, registry: Registry) -> None:
    """Once there is the layer, clusters that render tags alone are named; that alone is no failure."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    assert "by tag alone" not in quiet(project, "lock").out
    assert "by tag alone: one; " in quiet(project, "lock", "--layer").out
    project.policy("two", **mirrored(registry.host, extends=["locked-images"]))
    ran = quiet(project, "lock", "--check", "--format", "json")
    assert (ran.code, ran.json["unpinned"]) == (0, ["one"])


def test_a_layer_that_was_edited(project: Project, registry: Registry) -> None:
    """The layer is what the lock says, or --check ends with 3."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    quiet(project, "lock", "--layer")
    layer = project.folder / "policies" / "layers" / "locked-images.yaml"
    layer.write_text(layer.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    ran = quiet(project, "lock", "--check", "--offline")
    assert ran.code == 3
    assert "locked-images.yaml" in ran.err


@pytest.mark.parametrize("name", ["images.lock", "policies/layers/locked-images.yaml"])
def test_a_folder_in_its_place(project: Project, registry: Registry, name: str) -> None:
    """What stands where a file is to be written is said, with exit code 4."""
    project.policy("one", **mirrored(registry.host))
    registry.index(VALIDATOR, "v26.7.0")
    (project.folder / name).mkdir(parents=True)
    for words in (["lock", "--layer"], ["lock", "--check", "--offline"]):
        ran = quiet(project, *words)
        assert (ran.code, name in ran.err) == (4, True), ran.err


def test_offline_alone(project: Project) -> None:
    """Nothing can be locked without registries."""
    assert quiet(project, "lock", "--offline").code == 4


def test_real_registries(project: Project, host: str) -> None:
    """The same against what people run: an index for two platforms, looked up by tag."""
    project.policy("one", **mirrored(host))
    image = parse(f"{host}/{VALIDATOR}:v26.7.0")
    assert image
    with Client(Credentials({})) as client:
        platforms = {f"linux/{name}": pushed(client, image, name) for name in ("amd64", "arm64")}
        entries = [
            {
                "mediaType": MANIFEST,
                "digest": digest,
                "size": size,
                "platform": dict(zip(KEYS, name.split("/"), strict=True)),
            }
            for name, (digest, size) in platforms.items()
        ]
        body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        digest = client.put_manifest(image, json.dumps(body).encode(), INDEX)
    assert quiet(project, "lock").code == 0
    locked = yaml.safe_load((project.folder / "images.lock").read_bytes())["images"]
    assert locked == {
        str(image): {"digest": digest, "platforms": {name: each for name, (each, _) in platforms.items()}}
    }


KEYS = ("os", "architecture")


def pushed(client: Client, image: Reference, architecture: str) -> tuple[str, int]:
    """Push an image without layers for ARCHITECTURE: its digest and size."""
    config = json.dumps({"os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": []}})
    described = {
        "mediaType": "application/vnd.oci.image.config.v1+json",
        "digest": client.put_blob(image, config.encode()),
        "size": len(config),
    }
    content = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": []}).encode()
    by_digest = Reference(image.host, image.repository, digest=digest_of(content))
    return client.put_manifest(by_digest, content, MANIFEST), len(content)
