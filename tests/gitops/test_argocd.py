"""Argo CD's objects: what they permit, what they sync, and that nothing they say is gated by a pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.catalog.kubernetes import CLUSTER_SCOPED
from gpustack.catalog.object_kinds import rendered_kinds
from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.validate import validate
from gpustack.components.registry import REGISTRY
from gpustack.gitops.engines.argocd import ENGINE
from gpustack.gitops.plan import Plan, objects, roots
from gpustack.model import Body
from gpustack.policy.language.gitops import GitOps
from tests.gitops.common import ARGOCD, URL, compiled, named, plan, policy
from tests.project import ROOT

HERE = "https://kubernetes.default.svc"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all stacks."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def planned(store: Store, *, repository: dict[str, Any] | None = None, **argocd: Any) -> Plan:
    """The plan of a policy with REPOSITORY and ARGOCD over the usual."""
    gitops = {
        **ARGOCD,
        "repository": {**ARGOCD["repository"], **(repository or {})},
        "argocd": {**ARGOCD["argocd"], **argocd},
    }
    return plan(compiled(policy(gitops), store))


def application(made: Plan) -> Body:
    """The Application of the cluster prod."""
    spec: Body = named(objects(made, "prod"))["Application/gpustack-prod"]["spec"]
    return spec


def test_application(store: Store) -> None:
    """It syncs the cluster's folder, server-side, by itself, and has no finalizer: deleting it leaves the cluster. No
    option adds a wave behind the last one."""
    found = named(objects(planned(store), "prod"))
    assert found.keys() == {"AppProject/gpustack-prod", "Application/gpustack-prod"}
    whole = found["Application/gpustack-prod"]
    assert whole["metadata"]["namespace"] == "argocd"
    assert "finalizers" not in whole["metadata"]
    assert whole["metadata"]["annotations"]["argocd.argoproj.io/compare-options"] == "ServerSideDiff=true"
    spec = whole["spec"]
    assert spec["source"] == {
        "repoURL": URL,
        "targetRevision": "main",
        "path": "dist/prod",
        "directory": {"recurse": True},
    }
    assert spec["destination"] == {"name": "prod-eu-1", "namespace": "gpu-operator"}
    assert spec["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}
    assert "ServerSideApply=true" in spec["syncPolicy"]["syncOptions"]
    assert not any(option.startswith("PruneLast") for option in spec["syncPolicy"]["syncOptions"])


def test_every_field_has_an_effect(store: Store) -> None:
    """Namespace, project, destination, revision, path and the switches of syncing."""
    assert "automated" not in application(planned(store, autoSync=False))["syncPolicy"]
    automated = application(planned(store, prune=False, selfHeal=False))["syncPolicy"]["automated"]
    assert automated == {"prune": False, "selfHeal": False}
    own = planned(store, project="platform", namespace="gitops", destination={"server": HERE})
    (body,) = objects(own, "prod")
    assert (body["metadata"]["namespace"], body["spec"]["project"]) == ("gitops", "platform")
    assert body["spec"]["destination"] == {"server": HERE, "namespace": "gpu-operator"}
    source = application(planned(store, repository={"revision": "refs/tags/v1", "path": "."}))["source"]
    assert (source["targetRevision"], source["path"]) == ("refs/tags/v1", "prod")
    oci = {"url": "oci://registry.example.com/gpu", "revision": "v1"}
    artifact = application(planned(store, repository=oci))["source"]
    assert (artifact["targetRevision"], artifact["path"]) == ("v1", "."), "its root is the cluster's folder"


def test_the_project_permits_what_is_rendered(store: Store) -> None:
    """This repository, this cluster with all its namespaces; every rendered kind with the right scope, those of
    extraObjects too, and none of the kinds by which a repository could take over a cluster's tenants."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a", "namespace": "data"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    stack = compiled(policy(ARGOCD, extraObjects=[claim]), store)
    spec = named(objects(plan(stack), "prod"))["AppProject/gpustack-prod"]["spec"]
    assert spec["sourceRepos"] == [URL]
    assert spec["destinations"] == [{"name": "prod-eu-1", "namespace": "*"}]
    for file in stack.files:
        body = yaml.safe_load(file.text)
        item = {"group": body["apiVersion"].rpartition("/")[0], "kind": body["kind"]}
        scope = "namespace" if "namespace" in body["metadata"] else "cluster"
        assert item in spec[f"{scope}ResourceWhitelist"], file.path
    permitted = {item["kind"] for scope in ("cluster", "namespace") for item in spec[f"{scope}ResourceWhitelist"]}
    assert "PersistentVolumeClaim" in permitted
    assert not permitted & {"Secret", "Pod", "Node", "*", "ValidatingWebhookConfiguration"}


@pytest.mark.parametrize(
    ("cluster", "pattern"),
    [
        ({"server": "https://[2001:db8::7]:6443"}, {"server": r"https://\[2001:db8::7\]:6443"}),
        ({"name": "prod*"}, {"name": r"prod\*"}),
        ({"name": "!prod"}, {"name": r"\!prod"}),
        ({"name": "prod-1!"}, {"name": "prod-1!"}),
    ],
)
def test_the_project_permits_this_cluster_alone(store: Store, cluster: dict[str, str], pattern: dict[str, str]) -> None:
    """A project reads patterns: what is one in an address or a name is written so that it means itself."""
    made = planned(store, destination=cluster)
    assert application(made)["destination"] == {**cluster, "namespace": "gpu-operator"}
    project = named(objects(made, "prod"))["AppProject/gpustack-prod"]["spec"]
    assert project["destinations"] == [{**pattern, "namespace": "*"}]


def test_known_kinds_are_all_that_is_rendered() -> None:
    """The catalogue's list has every kind of the example clusters, with the scope that the API gives it."""
    known = {(each.group, each.kind): each.namespaced for each in rendered_kinds()}
    assert all(namespaced != (kind in CLUSTER_SCOPED) for (_, kind), namespaced in known.items())
    for path in (ROOT / "dist").glob("*/*/*.yaml"):
        head = dict(line.split(": ", 1) for line in path.read_text("utf-8").splitlines()[1:3])
        assert (head["apiVersion"].rpartition("/")[0], head["kind"]) in known, path


def test_nothing_is_rendered_that_the_list_lacks() -> None:
    """Each kind that a component writes down is in the list, also where no example renders it."""
    known = {each.kind for each in rendered_kinds()}
    folder = ROOT / "gpustack" / "components"
    texts = {entry.module: (folder / entry.subject / f"{entry.module}.py").read_text("utf-8") for entry in REGISTRY}
    said = {part.split('"')[0] for text in texts.values() for part in text.split('"kind": "')[1:]}
    assert said <= known


@pytest.mark.parametrize("cluster", ["", "prod"])
def test_roots(store: Store, cluster: str) -> None:
    """The root syncs the folder of a cluster's objects, or of all; its project permits Applications and projects in
    Argo CD's namespace, and nothing of the cluster."""
    found = named(roots(planned(store), cluster))
    name = f"root-gpustack-{cluster}" if cluster else "root-gpustack"
    spec = found[f"Application/{name}"]["spec"]
    assert spec["source"]["path"] == f"dist/.gitops/argocd/{cluster}".rstrip("/")
    assert spec["destination"] == {"server": HERE, "namespace": "argocd"}
    project = found[f"AppProject/{name}"]["spec"]
    assert [item["kind"] for item in project["namespaceResourceWhitelist"]] == ["AppProject", "Application"]
    assert "clusterResourceWhitelist" not in project
    health = found["ConfigMap/argocd-cm"]["data"]
    assert health.keys() == {"resource.customizations.health.gpustack.dev_NodePolicy"}


def test_root_of_an_artifact(store: Store) -> None:
    """An artifact holds the cluster's objects alone, so the person applies Application and project themselves."""
    made = planned(store, repository={"url": "oci://registry.example.com/gpu"})
    found = named(roots(made, "prod"))
    assert found.keys() == {"AppProject/gpustack-prod", "Application/gpustack-prod", "ConfigMap/argocd-cm"}


def test_names_never_meet(store: Store) -> None:
    """Whatever clusters are called, the root and a cluster's Application are different objects."""
    made = planned(store)
    clusters = ["root", "root-prod", "prod", "gpustack-prod", "root-gpustack"]
    names = [body["metadata"]["name"] for each in clusters for body in objects(made, each)]
    names += [body["metadata"]["name"] for each in ("", *clusters) for body in roots(made, each)[:1]]
    assert len(set(names)) == len(clusters) + len(clusters) + 1, "an Application and its project share a name"


def test_all_of_them_are_valid(store: Store) -> None:
    """Argo CD's schema takes what is rendered and what bootstrap prints; it refuses what it doesn't know."""
    made = planned(store)
    for body in (*objects(made, "prod"), *roots(made, "prod")):
        assert validate(body, "1.34") == [], json.dumps(body)
    wrong = {**objects(made, "prod")[1]}
    wrong["spec"] = {**wrong["spec"], "syncPolice": {}}
    assert [finding.rule for finding in validate(wrong, "1.34")] == ["GPU901"]


def test_dist_has_one() -> None:
    """The example fleet shows an Application."""
    assert Path(ROOT / "dist/.gitops/argocd/lab-a100/application-gpustack-lab-a100.yaml").is_file()


@pytest.mark.parametrize(
    ("destination", "inside"),
    [
        ({"server": HERE}, True),
        ({"server": "https://kubernetes.default/"}, True),
        ({"name": "in-cluster"}, True),
        ({"server": "https://kubernetes.default.svc.example.com"}, False),
        ({"name": "prod-eu-1"}, False),
    ],
)
def test_its_own_cluster(destination: dict[str, str], inside: bool) -> None:
    """Whatever Argo CD calls the cluster that it runs in, it serves that one alone, as an account of its namespace."""
    given = GitOps.model_validate({"engine": "argocd", "argocd": {"destination": destination}})
    assert (ENGINE.destination(given) == ()) == inside
    assert (ENGINE.accounts(given) is not None) == inside
