"""One engine for several clusters: Argo CD with a Secret for each and one root, Flux with a kubeconfig for each."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import prepare
from tests.engines.argocd import APPLICATION
from tests.engines.conftest import NewWorld
from tests.engines.engine import SECONDS
from tests.engines.flux import KUSTOMIZATION
from tests.engines.world import World

THREE = ("edge-rke2", "mixed-campus", "prod-gke")
NewCluster = Callable[[str], ControlPlane]


@pytest.fixture
def new_cluster(tmp_path: Path, release: str) -> Iterator[NewCluster]:
    """Makes API servers without controllers: what is applied is seen, and nothing runs."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(ControlPlane(tmp_path / name, emulated=release, controllers=False))


def server(plane: ControlPlane) -> str:
    """The address of an API server."""
    return f"https://127.0.0.1:{plane.port}"


def register(world: World, name: str, plane: ControlPlane) -> None:
    """What `argocd cluster add` leaves: a Secret with the address and a token."""
    ca = base64.b64encode(plane.ca.read_bytes()).decode()
    config = {"bearerToken": plane.token, "tlsClientConfig": {"caData": ca}}
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    meta = {"name": f"cluster-{name}", "namespace": "argocd", "labels": labels}
    data = {"name": name, "server": server(plane), "config": json.dumps(config)}
    world.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})


def there(world: World, planes: dict[str, ControlPlane]) -> bool:
    """Whether each cluster has all of its own objects, and no cluster those of another."""
    return all(
        plane.admin.find(one.kind, one.name, one.namespace)
        for name, plane in planes.items()
        for one in world.fleet.rendered(name)
    )


@pytest.mark.of(*THREE)
@pytest.mark.parametrize("engine", ["argocd"])
def test_one_argo_cd_for_three_clusters(new_world: NewWorld, new_cluster: NewCluster, engine: str) -> None:
    """One Argo CD syncs three clusters by their names, from one root; a cluster that goes keeps what it has."""
    world = new_world(engine)
    planes = {name: new_cluster(name) for name in THREE}
    for name, plane in planes.items():
        register(world, name, plane)
        section = {**world.engine.gitops(world.fleet.url), "argocd": {"destination": {"name": name}}}
        world.fleet.example(name, section)
    world.publish("three clusters")
    for name, plane in planes.items():
        prepare(plane.admin, world.fleet.stages(name))
    world.bootstrap()
    wait_for(lambda: all(synced(world, name) for name in THREE), "all are synced", SECONDS)
    assert there(world, planes)
    assert not world.api.find("Namespace", "gpu-operator"), "nothing of it where Argo CD runs"
    gone = world.fleet.rendered(THREE[0])
    world.fleet.remove(THREE[0])
    world.publish("one less")
    world.engine.refresh()
    wait_for(lambda: not world.api.find(APPLICATION, f"gpustack-{THREE[0]}", "argocd"), "its Application goes", SECONDS)
    assert all(planes[THREE[0]].admin.find(one.kind, one.name, one.namespace) for one in gone)
    wait_for(lambda: all(synced(world, name) for name in THREE[1:]), "the others go on", SECONDS)


def synced(world: World, name: str) -> bool:
    """Whether the Application of a cluster in which nothing runs is synced at the last commit."""
    body = world.api.find(APPLICATION, f"gpustack-{name}", "argocd") or {}
    status: dict[str, Any] = body.get("status", {})
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    at_head = sync.get("revision") == world.fleet.head
    return bool(at_head and sync.get("status") == "Synced" and operation.get("phase") == "Succeeded")


@pytest.mark.of(*THREE[:2])
@pytest.mark.parametrize("engine", ["flux"])
def test_one_flux_for_two_clusters(new_world: NewWorld, new_cluster: NewCluster, engine: str) -> None:
    """One Flux syncs two clusters by their kubeconfigs, side by side."""
    world = new_world(engine)
    planes = {name: new_cluster(name) for name in THREE[:2]}
    for name, plane in planes.items():
        section = {**world.engine.gitops(world.fleet.url), "flux": flux_beside(world, name, plane)}
        world.fleet.example(name, section)
    world.publish("two clusters")
    for name, plane in planes.items():
        prepare(plane.admin, world.fleet.stages(name))
    world.bootstrap()
    for name in planes:
        world.engine.synced(name, world.fleet.head)
    assert there(world, planes)
    assert not world.api.find("Namespace", "gpu-operator"), "nothing of it where Flux runs"
    assert (
        len(world.api.list(KUSTOMIZATION)) == sum(len(world.fleet.stages(name)) for name in planes) - empty(world) + 2
    )


def flux_beside(world: World, name: str, plane: ControlPlane) -> dict[str, Any]:
    """The section `flux` of a cluster in PLANE that a Flux in another one reaches by a Secret with its NAME."""
    meta = {"name": f"{name}-kubeconfig", "namespace": "flux-system"}
    data = {"value": kubeconfig(plane)}
    world.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})
    return {"kubeConfig": {"secretName": meta["name"]}}


def empty(world: World) -> int:
    """How many stages have no objects."""
    return sum(not stage for name in THREE[:2] for stage in world.fleet.stages(name))


def kubeconfig(plane: ControlPlane) -> str:
    """A kubeconfig that needs no file beside it."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "a",
                "cluster": {
                    "server": server(plane),
                    "certificate-authority-data": base64.b64encode(plane.ca.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": "a", "user": {"token": plane.token}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    return json.dumps(config)
