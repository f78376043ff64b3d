"""What is never pruned without asking: the rows of the table in docs/gitops.md that test_life.py has not.

Drivers (test_driver_removed), NodePolicies (test_pool_removed), ConfigMaps that drivers read, Namespaces and CRDs are
events of a life.
"""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.control_plane.cluster import wait_for
from tests.engines.argocd import APPLICATION
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.engine import SECONDS
from tests.engines.fleet import Spec
from tests.engines.flux import KUSTOMIZATION
from tests.engines.test_life import config_map, extra
from tests.engines.world import World

IMAGE = "registry.example.com/gpu/gpustack-reconciler:1"
RULES = "nfd.k8s-sigs.io/v1alpha1/NodeFeatureRule"


@pytest.mark.of("lab-a100")
def test_discovery_removed(life: World) -> None:
    """Node feature discovery that the policy turns off stays until somebody says otherwise; its kinds stay then, too,
    and the labels of nodes by which drivers run."""
    before = [one for one in life.rendered() if "node-feature-discovery" in one.name or "nfd." in one.name]
    kinds = [one for one in before if one.body["kind"] == "CustomResourceDefinition"]
    assert len(before) > len(kinds) > 0
    life.change(lambda spec: spec.update(nfd={"enabled": False}), "no discovery")
    life.kept(*(f"{one.kind}/{one.name}" for one in before if one not in kinds))
    assert all(life.find(one) for one in kinds)
    assert life.driver_versions()
    life.change(lambda spec: spec.pop("nfd"), "discovery again")
    life.synced()


@pytest.mark.of("prod-gke")
@pytest.mark.parametrize("engine", ENGINES)
def test_label_rules_removed(new_world: NewWorld, engine: str) -> None:
    """Rules by which nodes get the labels of the stack stay until somebody says otherwise, while the program that is to
    label nodes in their place begins."""
    world = new_world(engine)
    world.cluster = "prod-gke"

    def rules(spec: Spec) -> None:
        spec.update(migManager={"enabled": False}, reconciler={"labelling": "nodeFeatureRule"})

    world.begin(rules)
    (rule,) = world.api.list(RULES)
    world.change(lambda spec: spec.update(reconciler={"image": IMAGE}), "the program labels nodes")
    world.prepare()  # the kind of its alerts
    world.kept(f"{RULES}/{rule['metadata']['name']}")
    world.synced()


@pytest.mark.of("lab-a100")
def test_pruning_off(life: World) -> None:
    """With `prune: false` what is no longer rendered stays, and the next commit is synced all the same. Turned on
    again, Argo CD deletes it; Flux has forgotten it, and deletes what goes from then on."""

    def prune(word: bool | None) -> None:
        def change(spec: Spec) -> None:
            section = spec["gitops"].setdefault(life.engine.name, {})
            section["prune"] = word

        life.fleet.change(life.cluster, change)

    prune(False)
    life.change(extra(config_map("a"), config_map("b")), "two ConfigMaps, no pruning")
    life.synced()
    life.change(extra(config_map("b"), config_map("c")), "another one")
    life.engine.refresh()
    wait_for(lambda: life.api.find("ConfigMap", "c", "gpu-operator"), "the commit is synced", SECONDS)
    life.engine.round(life.cluster)
    assert life.api.find("ConfigMap", "a", "gpu-operator")
    prune(True)
    life.change(extra(config_map("c")), "with pruning")
    life.synced()
    wait_for(lambda: not life.api.find("ConfigMap", "b", "gpu-operator"), "what goes now is deleted", SECONDS)
    left = life.api.find("ConfigMap", "a", "gpu-operator")
    assert bool(left) == (life.engine.name == "flux")
    if left:
        life.api.delete("ConfigMap", "a", "gpu-operator")
    prune(None)
    life.change(extra(), "as before")
    life.synced()


@pytest.mark.of("train-dgx")
@pytest.mark.parametrize("engine", ENGINES)
def test_deleted_along(new_world: NewWorld, engine: str) -> None:
    """Where somebody deletes the engine's objects and wants along what they synced, what is guarded stays: Argo CD
    waits for somebody who confirms it, and deletes nothing before; Flux leaves it and deletes the rest."""
    world = new_world(engine)
    world.cluster = "train-dgx"
    world.begin()
    rendered = world.rendered()
    guarded = [one for one in rendered if _guarded(world, one.body["metadata"].get("annotations") or {})]
    assert {"DaemonSet", "Namespace", "CustomResourceDefinition", "NodePolicy"} <= {one.body["kind"] for one in guarded}
    free = [one for one in rendered if one not in guarded]
    assert free
    if engine == "argocd":
        world.kubectl("delete", "applications", f"root-gpustack-{world.cluster}", "-n", "argocd")
        finalizer = {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}
        world.api.patch(APPLICATION, f"gpustack-{world.cluster}", finalizer, "argocd")
        world.kubectl("delete", "applications", f"gpustack-{world.cluster}", "-n", "argocd", "--wait=false")
        time.sleep(30)
        assert all(world.find(one) for one in (*guarded, *free))
        assert world.api.find(APPLICATION, f"gpustack-{world.cluster}", "argocd")
    else:
        world.kubectl("delete", "kustomizations", "--all", "-n", "flux-system", "--wait=false")
        wait_for(lambda: not world.api.list(KUSTOMIZATION), "they go", SECONDS)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not any(world.find(one) for one in free), "what is free goes", SECONDS)
        assert [str(one) for one in free if world.find(one)] == []
        assert all(world.find(one) for one in guarded)


def _guarded(world: World, annotations: dict[str, str]) -> bool:
    """Whether the annotations of an object say that it must not be deleted."""
    if world.engine.name == "flux":
        return annotations.get("kustomize.toolkit.fluxcd.io/prune") == "disabled"
    return "Delete=confirm" in annotations.get("argocd.argoproj.io/sync-options", "")
