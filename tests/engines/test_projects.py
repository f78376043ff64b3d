"""AppProjects: what GPU839 says of one is what Argo CD says of it; and the longest names that clusters may have."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.model import Body
from tests.control_plane.cluster import wait_for
from tests.control_plane.manifests import prepare
from tests.engines.argocd import HERE, PROJECT
from tests.engines.conftest import ENGINES, NewWorld
from tests.engines.engine import SECONDS
from tests.engines.fleet import Spec
from tests.engines.test_fleet import NewCluster, flux_beside, new_cluster, register, synced, there
from tests.engines.test_life import config_map, extra
from tests.engines.world import World

__all__ = ["new_cluster"]

CLUSTER = "edge-rke2"
OWN = "platform"
ANY = [{"group": "*", "kind": "*"}]
PERMITS: dict[str, Any] = {
    "sourceRepos": ["*"],
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": ANY,
}
RIGHTS = "rbac.authorization.k8s.io"


def to(*destinations: tuple[str, str]) -> dict[str, Any]:
    """These destinations, as servers with namespaces."""
    return {"destinations": [{"server": server, "namespace": namespace} for server, namespace in destinations]}


TRIED: dict[str, tuple[dict[str, Any], bool]] = {
    "all": ({}, True),
    "another repository": ({"sourceRepos": ["https://git.example.com/other.git"]}, False),
    "repositories of a server": ({"sourceRepos": ["http://127.0.0.1*/*"]}, True),
    "those of any port, which is not an address": ({"sourceRepos": ["http://127.0.0.1:*/*"]}, False),
    "but none of any port, which is not an address": ({"sourceRepos": ["!http://127.0.0.1:*/*"]}, True),
    "repositories by a class": ({"sourceRepos": ["http://127.0.0.1*/[a-f]leet"]}, True),
    "repositories by braces, which are escaped": ({"sourceRepos": ["http://127.0.0.1*/{fleet,a}"]}, False),
    "hosts by a class": ({"sourceRepos": ["http://127.0.0.[1]*/*"]}, False),
    "but not this repository": ({"sourceRepos": ["*", "!http://127.0.0.1*/**"]}, False),
    "namespaces by a pattern": (to((HERE, "gpu-*"), (HERE, "argo*")), True),
    "another namespace": (to((HERE, "other")), False),
    "another cluster": (to(("https://other.example.com", "*")), False),
    "but not this namespace": (to(("*", "*"), (HERE, "!gpu-operator")), False),
    "but not this cluster": (to(("*", "*"), (f"!{HERE}", "*")), False),
    "no ConfigMaps": ({"namespaceResourceBlacklist": [{"group": "", "kind": "Config*"}]}, False),
    "some kinds in namespaces": ({"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}, False),
    "kinds by a pattern": ({"namespaceResourceWhitelist": [{"group": "*", "kind": "[A-Z]*"}]}, True),
    "no kinds of the cluster": ({"clusterResourceWhitelist": []}, False),
    "kinds but these": ({"namespaceResourceWhitelist": [{"group": "*", "kind": "[^CDS]*"}]}, False),
    "no rights of the cluster": ({"clusterResourceBlacklist": [{"group": RIGHTS, "kind": "ClusterRole"}]}, False),
}


def project(spec: dict[str, Any]) -> Body:
    """The project that somebody keeps."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": OWN, "namespace": "argocd"},
        "spec": {**PERMITS, **spec},
    }


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ["argocd"])
def test_project_of_ones_own(new_world: NewWorld, engine: str) -> None:
    """An Application of a project that isn't there is refused, and one of a project that permits it is synced; what a
    project doesn't permit is refused by Argo CD where GPU839 says so, and nowhere else."""
    world = new_world(engine)
    world.cluster = CLUSTER
    world.example(project=OWN)
    world.publish("first")
    world.prepare()
    world.bootstrap(CLUSTER)
    wait_for(lambda: any("does not exist" in word for word in world.said()), "Argo CD says what lacks", SECONDS)
    world.api.create(project({}))
    verdicts = {name: (permitted(world, spec, name), told(world, spec)) for name, (spec, _) in TRIED.items()}
    assert verdicts == {name: (wanted, not wanted) for name, (_, wanted) in TRIED.items()}


def permitted(world: World, spec: dict[str, Any], name: str) -> bool:
    """Whether Argo CD syncs the next commit, in which two objects say NAME, by a project with SPEC; what it said before
    is over by then, for the project permits all first.
    """
    permit(world, {})
    world.engine.refresh()
    wait_for(lambda: synced(world, CLUSTER) and not world.said(), "all that is pushed is synced", SECONDS)
    permit(world, spec)
    role: Body = {
        "apiVersion": f"{RIGHTS}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "tried", "annotations": {"tried": name}},
        "rules": [],
    }
    commit = world.change(extra(config_map("tried", tried=name), role), name)
    world.engine.refresh()
    words = ("not permitted", "not match any of the allowed")

    def verdict() -> str:
        said = " ".join(world.said())
        return "no" if any(word in said for word in words) else "yes" if synced(world, CLUSTER) else ""

    found = wait_for(verdict, f"Argo CD syncs {commit} or says why not", SECONDS)
    return found == "yes"


def permit(world: World, spec: dict[str, Any]) -> None:
    """Let the project have SPEC."""
    former = world.api.get(PROJECT, OWN, "argocd")
    world.api.update({**former, "spec": project(spec)["spec"]})


def told(world: World, spec: dict[str, Any]) -> bool:
    """Whether a render of the policy with such a project among its objects is refused by GPU839."""
    path = world.fleet.folder / f"policies/{CLUSTER}.yaml"
    before = path.read_bytes()

    def add(policy: Spec) -> None:
        policy["extraObjects"] = [*policy.get("extraObjects", []), project(spec)]

    world.fleet.change(CLUSTER, add)
    try:
        world.fleet.gpustack("render", "--out", str(world.fleet.folder.parent / "not-pushed"))
    except AssertionError as error:
        if "GPU839" not in str(error):
            raise
        return True
    finally:
        path.write_bytes(before)
    return False


@pytest.mark.of(CLUSTER)
@pytest.mark.parametrize("engine", ENGINES)
def test_longest_name(new_world: NewWorld, new_cluster: NewCluster, engine: str) -> None:
    """A cluster with the longest name, dots in it, is synced like any other, its next commit too."""
    name = f"a.{'b' * 30}.{'c' * 30}"
    world = new_world(engine)
    plane = new_cluster("other")
    section = world.engine.gitops(world.fleet.url)
    if engine == "argocd":
        register(world, name, plane)
        section["argocd"] = {"destination": {"name": name}}
    else:
        section["flux"] = flux_beside(world, "other", plane)
    world.fleet.example(CLUSTER, section)
    path = world.fleet.folder / f"policies/{CLUSTER}.yaml"
    policy = yaml.safe_load(path.read_text("utf-8"))
    policy["metadata"]["name"] = name
    world.fleet.write(name, policy)
    path.unlink()
    world.publish("first")
    prepare(plane.admin, world.fleet.stages(name))
    world.bootstrap(name)
    wait_for(lambda: there(world, {name: plane}), "all is there", SECONDS)
    world.fleet.change(name, extra(config_map("next")))
    world.publish("next")
    world.engine.refresh()
    wait_for(lambda: plane.admin.find("ConfigMap", "next", "gpu-operator"), "the next commit is synced", SECONDS)
