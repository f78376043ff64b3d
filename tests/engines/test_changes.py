"""What happens once in a cluster's life, each in one of its own: what is missing at first, another engine, the end."""

from __future__ import annotations

import pytest

from tests.control_plane.cluster import wait_for
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.engine import SECONDS
from tests.engines.world import World

CLUSTER = "train-dgx"


def uids(world: World) -> dict[str, tuple[str, int]]:
    """The uid and generation of each object."""
    return {
        name: (body["metadata"]["uid"], body["metadata"].get("generation", 0)) for name, body in world.live().items()
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_kinds(new_world: NewWorld, engine: str) -> None:
    """Where kinds of the Prometheus operator are missing the engine names one; when they are there all is synced."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.example()
    world.publish("first")
    world.add_nodes()
    world.bootstrap(CLUSTER)
    wait_for(lambda: any("monitoring.coreos.com" in word for word in world.said()), "it says what lacks", SECONDS)
    world.prepare()
    world.synced()


@pytest.mark.parametrize("engine", ENGINES)
def test_policy_removed(new_world: NewWorld, engine: str) -> None:
    """A cluster whose policy goes keeps what it has, and the engine tells that there is nothing to sync any more."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.fleet.example("prod-gke", None)
    world.begin()
    before, was = uids(world), world.rendered()
    world.fleet.remove(CLUSTER)
    world.publish("no policy")
    world.engine.refresh()
    wait_for(world.said, "the engine says so", SECONDS)
    after = {str(one): world.find(one) for one in was}
    assert {name for name, body in after.items() if body is None} == set()
    assert before.keys() == after.keys()


def test_another_engine(new_world: NewWorld) -> None:
    """From Argo CD to Flux and back, as the docs say: no object is made anew, and no pod template changes."""
    world = new_world("argocd")
    world.cluster = CLUSTER
    world.begin()
    before = uids(world)
    for name in ("flux", "argocd"):
        leave(world)
        world.engine.stop()
        with ENGINES[name](world.plane, world.plane.folder.parent / f"then-{name}") as engine:
            world.engine = engine
            world.fleet.change(CLUSTER, lambda spec: spec.update(gitops=world.engine.gitops(world.fleet.url)))
            world.publish(f"by {name}")
            world.bootstrap(CLUSTER)
            world.synced()
            assert {name: uid for name, (uid, _) in uids(world).items()} == {
                name: uid for name, (uid, _) in before.items()
            }
            world.settled_but_for_owners()


def leave(world: World) -> None:
    """Stop the engine for this cluster, without deleting what it synced."""
    if world.engine.name == "argocd":
        world.kubectl("delete", "applications", "--all", "-n", "argocd")
    else:
        world.kubectl("delete", "kustomizations", "gpustack", "-n", "flux-system")
        for body in world.engine.objects(CLUSTER):
            patch = {"spec": {"deletionPolicy": "Orphan"}}
            world.api.patch(
                "kustomize.toolkit.fluxcd.io/v1/Kustomization", body["metadata"]["name"], patch, "flux-system"
            )
        world.kubectl("delete", "kustomizations", "--all", "-n", "flux-system")
