"""What rendered objects tell the engine that syncs them (reconciler.md A2, L38)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.checks.objects.references import needed
from gpustack.compiler.cache import Store, own_digest
from gpustack.gitops.engines.argocd import IGNORE_HEALTH, LAST_WAVE, OPTIONS, WAVE
from gpustack.gitops.engines.flux import PRUNE
from gpustack.gitops.marks import Marks, marked
from gpustack.model import STAGES, Body, Resource
from tests.gitops.common import ARGOCD, FLUX, compiled, policy

Annotations = dict[str, str]
WAITING = {"DaemonSet", "Deployment", "NodePolicy", "Service", "PodDisruptionBudget", "FlowSchema", "ServiceMonitor"}
"""Kinds that Argo CD has a health of, or that somebody else must act on first."""
READ_BY_DRIVERS = {
    "driver": {
        "enabled": True,
        "repoConfig": {"configMapName": "repos"},
        "certConfig": {"name": "certs"},
        "licensingConfig": {"configMapName": "licence"},
    }
}
KEYS = ("a.list", "gridd.conf", "client_configuration_token.tok")
BROUGHT = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict.fromkeys(KEYS, "x")}
    for name in ("repos", "certs", "licence", "other")
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all stacks: components without an engine are rendered once."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def bodies(store: Store, gitops: dict[str, Any] | None, **sections: Any) -> dict[str, Body]:
    """The objects of a policy with GITOPS by their paths."""
    return {file.path: yaml.safe_load(file.text) for file in compiled(policy(gitops, **sections), store).files}


def notes(body: Body) -> Annotations:
    """The annotations of BODY itself."""
    return body["metadata"].get("annotations") or {}


def without(body: Body, *prefixes: str) -> Body:
    """BODY without the annotations that begin with PREFIXES."""
    kept = {key: value for key, value in notes(body).items() if not key.startswith(prefixes)}
    meta = {key: value for key, value in body["metadata"].items() if key != "annotations"}
    return {**body, "metadata": {**meta, **({"annotations": kept} if kept else {})}}


@pytest.mark.parametrize("gitops", [ARGOCD, FLUX], ids=["argocd", "flux"])
def test_nothing_else_changes(store: Store, gitops: dict[str, Any]) -> None:
    """An engine adds annotations of objects and nothing else: pod templates, names and stages are as without one."""
    plain, marked_ = bodies(store, None), bodies(store, gitops)
    assert plain.keys() == marked_.keys()
    for path, body in marked_.items():
        if path.endswith("policy-gpustack-configmaps.yaml"):
            continue  # who may write ConfigMaps is the engine
        bare = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/prune")
        assert without(body, *bare) == without(plain[path], *bare), path


def test_waves_are_the_stages(store: Store) -> None:
    """What is there as soon as it is applied has the wave of its stage; what may wait for nodes has the last one, since
    Argo CD takes the next wave only when all of the one before is healthy."""
    for path, body in bodies(store, ARGOCD).items():
        stage, kind = path.partition("/")[0], body["kind"]
        wave = int(notes(body)[WAVE])
        if kind in WAITING:
            assert wave == LAST_WAVE, path
        elif kind in {"ConfigMap", "ServiceAccount", "ClusterRole", "CustomResourceDefinition", "Namespace"}:
            assert wave == list(STAGES).index(stage), path  # type: ignore[arg-type]


def test_daemonsets_are_no_part_of_the_health(store: Store) -> None:
    """One node that is down makes no Application unhealthy: DaemonSets are left out, and nothing else is."""
    for path, body in bodies(store, ARGOCD).items():
        assert (notes(body).get(IGNORE_HEALTH) == "true") == (body["kind"] == "DaemonSet"), path


KEEPING = ("nvidia-driver", "node-feature-discovery", "gpustack-nodefeatures-of-own-node")


def kept(body: Body) -> bool:
    """Whether pruning BODY stops drivers, or deletes more than itself (A2). Guards go freely: who leaves removes them
    first."""
    name = body["metadata"]["name"]
    if body["kind"].startswith("ValidatingAdmissionPolicy"):
        return False
    return body["kind"] in {"Namespace", "CustomResourceDefinition", "NodePolicy"} or any(
        part in name for part in KEEPING
    )


def test_guards_of_argo_cd(store: Store) -> None:
    """Namespace and CRDs are never pruned, what drivers need is only when somebody confirms it, all else is. Deleting
    the Application asks for all of them."""
    for path, body in bodies(store, ARGOCD, driver={"enabled": True}).items():
        never = body["kind"] in {"Namespace", "CustomResourceDefinition"}
        options = notes(body).get(OPTIONS, "").split(",")
        guards = {option for option in options if option.startswith(("Prune", "Delete"))}
        assert guards == ({f"Prune={'false' if never else 'confirm'}", "Delete=confirm"} if kept(body) else set()), path


def test_guards_of_flux(store: Store) -> None:
    """Flux prunes none of them, and all else."""
    for path, body in bodies(store, FLUX, driver={"enabled": True}).items():
        assert (notes(body).get(PRUNE) == "disabled") == kept(body), path


@pytest.mark.parametrize("gitops", [ARGOCD, FLUX], ids=["argocd", "flux"])
def test_what_drivers_mount_is_guarded(store: Store, gitops: dict[str, Any]) -> None:
    """Each ConfigMap and ServiceAccount that a driver pod names is guarded, also those of extraObjects; a ConfigMap
    that no driver reads is not."""
    found = bodies(store, gitops, **READ_BY_DRIVERS, extraObjects=BROUGHT)
    drivers = [body for path, body in found.items() if path.startswith("driver/daemonset-")]
    names = {(need.kind, need.name) for body in drivers for need in needed(body)}
    assert {("ConfigMap", "repos"), ("ConfigMap", "certs"), ("ConfigMap", "licence")} <= names
    guarded = {
        (body["kind"], body["metadata"]["name"])
        for body in found.values()
        if notes(body).get(PRUNE) == "disabled" or "Delete=confirm" in notes(body).get(OPTIONS, "")
    }
    assert {name for name in names if name[0] in {"ConfigMap", "ServiceAccount"}} <= guarded
    assert ("ConfigMap", "other") not in guarded


def test_annotations_of_ones_own_win() -> None:
    """Whoever says another wave gets it, and of sync options each option by itself."""
    given = {WAVE: "-5", OPTIONS: "ServerSideApply=true,Prune=false"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "annotations": given}}
    found = marked(Resource(body, "base", "x"), Marks("argocd"), guarded=False).body
    assert notes(found) == {WAVE: "-5", OPTIONS: "ServerSideApply=true,Prune=false,Delete=confirm"}
    assert notes(body) == given, "the body that came in is left alone"
