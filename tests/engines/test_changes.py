"""What happens once in a cluster's life, each in one of its own: what is missing at first, another engine, the end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.control_plane.cluster import wait_for
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.engine import SECONDS, condition
from tests.engines.flux import KUSTOMIZATION, SOURCES
from tests.engines.test_fleet import flux_beside
from tests.engines.world import World

CLUSTER = "train-dgx"
FORMER = "gpu-operator"


def templates(world: World) -> dict[str, tuple[str, Any]]:
    """The uid of each object, and its pod template where it has one."""
    return {
        name: (body["metadata"]["uid"], body.get("spec", {}).get("template")) for name, body in world.live().items()
    }


@pytest.mark.of(CLUSTER)
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


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_policy_removed(new_world: NewWorld, engine: str) -> None:
    """A cluster whose policy goes keeps what it has, and the engine tells that there is nothing to sync any more."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.fleet.example("prod-gke", None)
    world.begin()
    before, was = templates(world), world.rendered()
    world.fleet.remove(CLUSTER)
    world.publish("no policy")
    world.engine.refresh()
    wait_for(world.said, "the engine says so", SECONDS)
    after = {str(one): world.find(one) for one in was}
    assert {name for name, body in after.items() if body is None} == set()
    assert before.keys() == after.keys()


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_another_engine(new_world: NewWorld, engine: str) -> None:
    """To the other engine and back, as this page says: no object is made anew, and no pod template changes."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.begin()
    before = templates(world)
    with ExitStack() as stack:
        for name in (*(other for other in ENGINES if other != engine), engine):
            leave(world)
            world.engine.stop()
            world.engine = stack.enter_context(ENGINES[name](world.plane, world.plane.folder.parent / f"then-{name}"))
            world.fleet.change(CLUSTER, lambda spec: spec.update(gitops=world.engine.gitops(world.fleet.url)))
            world.publish(f"by {name}")
            world.bootstrap(CLUSTER)
            world.synced()
            assert templates(world) == before
            world.settled_but_for_owners()


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_namespace_renamed(new_world: NewWorld, engine: str) -> None:
    """The stack comes in the other namespace. Argo CD asks, and deletes what is in the former one when somebody
    confirms it; Flux prunes what isn't guarded, and drivers run there until somebody deletes that namespace."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.begin()
    former = [one for one in world.rendered() if one.namespace == FORMER]
    assert world.reconciler
    world.reconciler.stop()
    world.reconciler = None
    world.change(lambda spec: spec.setdefault("cluster", {}).update(namespace="gpu-two"), "another namespace")
    world.engine.refresh()
    if engine == "argocd":
        wait_for(lambda: world.engine.asks(CLUSTER), "Argo CD asks whether to prune", SECONDS)
        assert all(world.find(one) for one in former), "it is gone, and nobody said so"
        world.engine.confirm(CLUSTER)
        wait_for(lambda: not any(world.find(one) for one in former), "what is in the former one goes", SECONDS)
    wait_for(lambda: all(world.find(one) for one in world.rendered()), "all is in the other namespace", SECONDS)
    world.engine.round(CLUSTER)
    there = {one.body["kind"] for one in former if world.find(one)}
    assert engine == "argocd" or {"DaemonSet", "ServiceAccount", "ConfigMap"} <= there
    assert "Service" not in there, "a Service is not guarded"
    world.kubectl("delete", "namespace", FORMER)
    world.synced()
    world.settled()


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ["flux"])
def test_kubeconfig_comes_and_goes(new_world: NewWorld, engine: str) -> None:
    """A Flux that is to reach the cluster by a kubeconfig takes it over from the Kustomizations that had it, as this
    page says, and gives it back the same way: no object is made anew, and no pod template changes."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.begin()
    before = templates(world)
    beside = {"flux": flux_beside(world, CLUSTER, world.plane)}
    for words, more in (("by a kubeconfig", beside), ("from inside again", {})):
        hand_over(world, words, {**world.engine.gitops(world.fleet.url), **more})
        assert templates(world) == before


def hand_over(world: World, words: str, section: dict[str, Any]) -> None:
    """Let other Kustomizations sync the cluster, those of SECTION; the former ones go, and leave what they applied.

    Their source goes, too: one that comes back would begin with what it read last, and prune that at the next commit.
    """
    former = [str(one["metadata"]["name"]) for one in world.api.list(KUSTOMIZATION)]
    (source,) = (str(one["metadata"]["name"]) for one in world.api.list(SOURCES[0]))
    (root,) = (name for name in former if name == "gpustack" or name.startswith("root-"))
    world.api.patch(KUSTOMIZATION, root, {"spec": {"suspend": True}}, "flux-system")
    world.change(lambda spec: spec.update(gitops=section), words)
    world.bootstrap(CLUSTER)

    def ready() -> bool:
        those = [one for one in world.api.list(KUSTOMIZATION) if one["metadata"]["name"] not in former]
        return len(those) > 1 and all(
            condition(one, "Ready").get("status") == "True"
            and world.fleet.head in str(one["status"].get("lastAppliedRevision"))
            for one in those
        )

    wait_for(ready, "the new ones are ready", SECONDS)
    for name in former:
        world.api.patch(KUSTOMIZATION, name, {"spec": {"deletionPolicy": "Orphan"}}, "flux-system")
        world.kubectl("delete", "kustomizations", name, "-n", "flux-system")
    world.kubectl("delete", "gitrepositories", source, "-n", "flux-system")
    world.synced()
    world.engine.round(CLUSTER)
    world.synced()


def leave(world: World) -> None:
    """Stop the engine for this cluster, without deleting what it synced."""
    if world.engine.name == "argocd":
        world.kubectl("delete", "applications", "--all", "-n", "argocd")
    else:
        world.kubectl("delete", "kustomizations", "gpustack", "-n", "flux-system")
        for body in world.engine.objects(CLUSTER):
            patch = {"spec": {"deletionPolicy": "Orphan"}}
            world.api.patch(KUSTOMIZATION, body["metadata"]["name"], patch, "flux-system")
        world.kubectl("delete", "kustomizations", "--all", "-n", "flux-system")
