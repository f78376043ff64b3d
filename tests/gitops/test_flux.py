"""Flux's objects: order, what is waited for, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.compiler.cache import Store, own_digest
from gpustack.compiler.validate import validate
from gpustack.gitops.plan import Plan, objects, roots
from gpustack.model import Body
from tests.gitops.common import FLUX, URL, compiled, named, plan, policy

ORDER = ["crds", "base", "discovery", "driver", "operands", "reconciler", "monitoring"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all stacks."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def planned(
    store: Store, *, repository: dict[str, Any] | None = None, sections: dict[str, Any] | None = None, **flux: Any
) -> Plan:
    """The plan of a policy with REPOSITORY and FLUX over the usual, and SECTIONS besides."""
    gitops = {**FLUX, "repository": {**FLUX["repository"], **(repository or {})}, "flux": flux}
    return plan(compiled(policy(gitops, **{"driver": {"enabled": True}, **(sections or {})}), store))


def specs(made: Plan) -> dict[str, Body]:
    """The spec of each Kustomization, by stage."""
    found = named(objects(made, "prod"))
    start = "Kustomization/gpustack-"
    return {name.removeprefix(start): body["spec"] for name, body in found.items() if name.startswith(start)}


def test_a_kustomization_for_each_stage(store: Store) -> None:
    """Each stage with objects has one, of its own folder, after the one before; monitoring does not wait for
    NodePolicies, or nobody would be told that the reconciler fails."""
    found = specs(planned(store))
    assert sorted(found) == sorted(ORDER)
    for stage, before in zip(ORDER[1:], ORDER, strict=False):
        wanted = "operands" if stage == "monitoring" else before
        assert found[stage]["dependsOn"] == [{"name": f"gpustack-{wanted}"}], stage
    assert "dependsOn" not in found["crds"]
    assert {stage: spec["path"] for stage, spec in found.items()} == {stage: f"./dist/prod/{stage}" for stage in ORDER}


def test_stages_that_are_empty_are_skipped(store: Store) -> None:
    """A stage without a folder has no Kustomization, and the next one follows the one before it."""
    found = specs(planned(store, sections={"driver": {"enabled": False}, "cluster": {"monitoring": False}}))
    assert "driver" not in found
    assert "monitoring" not in found
    assert found["operands"]["dependsOn"] == [{"name": "gpustack-discovery"}]


def test_node_policies_alone_are_waited_for(store: Store) -> None:
    """`wait` would go by DaemonSets, so it is off everywhere; the stage with NodePolicies has a check for each, by
    Ready and Stalled, and no other stage has any."""
    found = specs(planned(store))
    assert not any(spec["wait"] for spec in found.values())
    checked = {stage for stage, spec in found.items() if "healthChecks" in spec or "healthCheckExprs" in spec}
    assert checked == {"reconciler"}
    spec = found["reconciler"]
    assert spec["healthChecks"] == [{"apiVersion": "gpustack.dev/v1alpha1", "kind": "NodePolicy", "name": "training"}]
    (expression,) = spec["healthCheckExprs"]
    assert expression["kind"] == "NodePolicy"
    assert "'Ready'" in expression["current"]
    assert "'Stalled'" in expression["failed"]
    assert "RolledOut" not in str(expression), "a roll-out that waits on purpose holds up nothing (A7)"


def test_nothing_is_substituted(store: Store) -> None:
    """No Kustomization has postBuild, and none is forced: that would delete and create again what can't be changed."""
    for spec in specs(planned(store)).values():
        assert "postBuild" not in spec
        assert spec["force"] is False


def test_every_field_has_an_effect(store: Store) -> None:
    """Namespace, interval, account, pruning, revision, Secret and path."""
    repository = {"revision": "refs/tags/v1", "path": "clusters/dist"}
    more: dict[str, Any] = {
        "namespace": "gitops",
        "interval": "1h",
        "serviceAccountName": "gpu",
        "prune": False,
        "secretName": "key",
    }
    made = planned(store, repository=repository, **more)
    found = named(objects(made, "prod"))
    assert {body["metadata"]["namespace"] for body in found.values()} == {"gitops"}
    source = found["GitRepository/gpustack"]["spec"]
    assert source == {"url": URL, "interval": "1h", "ref": {"tag": "v1"}, "secretRef": {"name": "key"}}
    spec = specs(made)["base"]
    assert (spec["interval"], spec["serviceAccountName"], spec["prune"]) == ("1h", "gpu", False)
    assert spec["path"] == "./clusters/dist/prod/base"


@pytest.mark.parametrize(
    ("revision", "ref"),
    [
        (None, {"branch": "main"}),
        ("release/1.2", {"branch": "release/1.2"}),
        ("refs/heads/next", {"branch": "next"}),
        ("refs/tags/v1.0", {"tag": "v1.0"}),
        ("0123456789abcdef0123456789abcdef01234567", {"commit": "0123456789abcdef0123456789abcdef01234567"}),
    ],
)
def test_revisions(store: Store, revision: str | None, ref: dict[str, str]) -> None:
    """A branch, a tag and a commit are told apart, as Flux wants it."""
    found = named(objects(planned(store, repository={"revision": revision} if revision else {}), "prod"))
    assert found["GitRepository/gpustack"]["spec"]["ref"] == ref


def test_oci(store: Store) -> None:
    """An artifact has an OCIRepository with its tag, and every Kustomization names that."""
    made = planned(store, repository={"url": "oci://registry.example.com/gpu", "revision": "v7"})
    found = named(objects(made, "prod"))
    assert found["OCIRepository/gpustack"]["spec"]["ref"] == {"tag": "v7"}
    assert {spec["sourceRef"]["kind"] for spec in specs(made).values()} == {"OCIRepository"}
    assert specs(made)["base"]["path"] == "./base", "the artifact's root is the cluster's folder"
    assert roots(made, "prod") == objects(made, "prod"), "the artifact has no objects of the engine"
    latest = named(objects(planned(store, repository={"url": "oci://registry.example.com/gpu"}), "prod"))
    assert latest["OCIRepository/gpustack"]["spec"]["ref"] == {"tag": "latest"}


def test_a_source_that_is_there(store: Store) -> None:
    """With `source` no source is rendered, and every Kustomization names that one."""
    gitops = {"engine": "flux", "flux": {"source": {"kind": "GitRepository", "name": "flux-system"}}}
    made = plan(compiled(policy(gitops), store))
    assert {body["kind"] for body in (*objects(made, "prod"), *roots(made, "prod"))} == {"Kustomization"}
    reference = {"kind": "GitRepository", "name": "flux-system"}
    assert all(spec["sourceRef"] == reference for spec in specs(made).values())


def test_root(store: Store) -> None:
    """The root syncs the folder of the cluster's objects; deleting it deletes nothing, and it never prunes the source
    that it is synced from."""
    made = planned(store)
    found = named(roots(made, "prod"))
    spec = found["Kustomization/gpustack"]["spec"]
    assert (spec["path"], spec["deletionPolicy"]) == ("./dist/.gitops/flux/prod", "Orphan")
    guard = {"kustomize.toolkit.fluxcd.io/prune": "disabled"}
    assert found["GitRepository/gpustack"]["metadata"]["annotations"] == guard
    assert found["GitRepository/gpustack"] in objects(made, "prod"), "what the person applies is what Git holds"


REMOTE = {"kubeConfig": {"secretName": "prod-kubeconfig"}}


def test_flux_in_another_cluster(store: Store) -> None:
    """With kubeConfig every stage goes to the cluster by that Secret, by the rights of an account there; the root and
    the sources stay where Flux runs, and so have neither.
    """
    made = planned(store, serviceAccountName="gpu", **REMOTE)
    stages = [body["spec"] for body in objects(made, "prod") if body["kind"] == "Kustomization"]
    assert len(stages) == len(ORDER)
    for spec in stages:
        assert spec["kubeConfig"] == {"secretRef": {"name": "prod-kubeconfig"}}
        assert spec["serviceAccountName"] == "gpu"
    root = named(roots(made, "prod"))["Kustomization/root-gpustack-prod"]["spec"]
    assert not {"kubeConfig", "serviceAccountName"} & root.keys()
    assert all("kubeConfig" not in spec for spec in specs(planned(store)).values())


@pytest.mark.parametrize("repository", [{}, {"url": "oci://registry.example.com/gpu"}])
def test_clusters_side_by_side(store: Store, repository: dict[str, Any]) -> None:
    """Objects of several clusters have different names, names of stages and long names included, and Kustomizations
    depend on those of their own cluster and read its source. Flux writes a Kustomization's name into a label, which
    has 63 characters at most.
    """
    made = planned(store, repository=repository, **REMOTE)
    clusters = ["a", "a-base", "crds", "root", *(f"{'x' * 60}-{number}" for number in range(2))]
    found: set[str] = set()
    for cluster in clusters:
        bodies = {**named(objects(made, cluster)), **named(roots(made, cluster))}
        assert not found & set(bodies)
        found |= set(bodies)
        for name, body in bodies.items():
            assert len(body["metadata"]["name"]) <= 63
            wanted = [f"Kustomization/{one['name']}" for one in body["spec"].get("dependsOn", [])]
            wanted += [f"{one['kind']}/{one['name']}" for one in [body["spec"].get("sourceRef")] if one]
            assert set(wanted) <= set(bodies), name
    assert not found & set(named(objects(planned(store), "prod"))), "nor those of a Flux that serves its own cluster"


def test_all_of_them_are_valid(store: Store) -> None:
    """Flux's own schemas take what is rendered and what bootstrap prints."""
    repository = {"url": "oci://registry.example.com/gpu"}
    remote = planned(store, serviceAccountName="gpu", **REMOTE)
    for made in (planned(store, secretName="key"), planned(store, repository=repository), remote):
        for body in (*objects(made, "prod"), *roots(made, "prod")):
            assert validate(body, "1.34") == []
