"""A cluster as an OCI artifact: `gpustack push` to a registry on this machine, and what engines make of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.cluster import wait_for
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.engine import SECONDS
from tests.engines.fleet import Spec
from tests.engines.test_life import config_map, extra
from tests.loopback_registry import debian, docker_registry

CLUSTER = "lab-a100"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for the loopback interface, and its key: engines ask registries by HTTPS."""
    pem, key = tmp_path / "registry.pem", tmp_path / "registry.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=registry"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(pem), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return pem, key


@pytest.fixture
def registries(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[tuple[str, str]]:
    """Debian's registry, twice over the same folder: by HTTP, which `push` speaks on this machine, and by HTTPS."""
    program = debian()
    assert program, "there is no docker-registry: tools/docker_registry.sh brings it"
    folders = [tmp_path / name for name in ("http", "https")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "data").symlink_to(folders[0] / "data")
    with docker_registry(program, folders[0]) as plain, docker_registry(program, folders[1], certificate) as host:
        yield plain, host


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_artifact(
    new_world: NewWorld, registries: tuple[str, str], certificate: tuple[Path, Path], engine: str
) -> None:
    """The artifact of a tag is synced, a newer one of the same tag too, and what it no longer holds goes."""
    world = new_world(engine, certificate=certificate[0])
    world.cluster = CLUSTER
    path = f"gpu/{CLUSTER}"
    plain, host = registries
    url, target = f"oci://{host}/{path}", f"oci://{plain}/{path}:v1"
    section = {**world.engine.gitops(world.fleet.url), "repository": {"url": url, "revision": "v1"}}
    world.fleet.example(CLUSTER, section, extra(config_map("first")))
    world.publish("first")
    world.fleet.gpustack("push", target, CLUSTER)
    world.prepare()
    world.add_nodes()
    world.bootstrap(CLUSTER)
    world.reconcile()
    wait_for(lambda: world.well("sha256:"), "the artifact is synced", SECONDS)
    assert all(world.find(one) for one in world.rendered())
    world.change(extra(config_map("second")), "second")
    world.fleet.gpustack("push", target, CLUSTER)
    world.engine.refresh()
    wait_for(lambda: world.api.find("ConfigMap", "second", "gpu-operator"), "the next artifact is synced", SECONDS)
    wait_for(lambda: not world.api.find("ConfigMap", "first", "gpu-operator"), "what it lacks goes", SECONDS)
    wait_for(lambda: world.well("sha256:"), "all is well", SECONDS)


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_artifact_by_digest(
    new_world: NewWorld, registries: tuple[str, str], certificate: tuple[Path, Path], engine: str
) -> None:
    """The artifact of a digest is synced, and stays what is synced, whatever its tag becomes; another one comes when
    the policy names it."""
    world = new_world(engine, certificate=certificate[0])
    world.cluster = CLUSTER
    plain, host = registries
    url, target = f"oci://{host}/gpu/{CLUSTER}", f"oci://{plain}/gpu/{CLUSTER}:latest"

    def push() -> str:
        return str(json.loads(world.fleet.gpustack("push", target, CLUSTER, "--format", "json"))["digest"])

    def name(digest: str) -> None:
        def change(spec: Spec) -> None:
            spec["gitops"]["repository"]["revision"] = digest

        world.change(change, "by digest")
        assert push() == digest, "to name a digest changes it"
        world.bootstrap(CLUSTER)

    section = {**world.engine.gitops(world.fleet.url), "repository": {"url": url}}
    world.fleet.example(CLUSTER, section, extra(config_map("first")))
    world.publish("first")
    first = push()
    world.prepare()
    world.add_nodes()
    name(first)
    world.reconcile()
    wait_for(lambda: world.well(first), "the artifact is synced", SECONDS)
    world.change(extra(config_map("second")), "second")
    second = push()
    world.engine.round(CLUSTER)
    wait_for(lambda: world.well(first), "what is named is synced, after another round too", SECONDS)
    assert not world.api.find("ConfigMap", "second", "gpu-operator")
    name(second)
    wait_for(lambda: world.well(second), "the next artifact is synced", SECONDS)
    assert world.api.find("ConfigMap", "second", "gpu-operator")
    wait_for(lambda: not world.api.find("ConfigMap", "first", "gpu-operator"), "what it lacks goes", SECONDS)
