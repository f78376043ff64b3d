"""What the API server refuses to the stack's own accounts, and who reaches its pods. What the policies do is tried on
an API server: tests/control_plane/test_guards.py."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpustack.cluster.resolve import resolve
from gpustack.components import Guards, NetworkPolicies
from gpustack.components.guards import guards_inputs
from gpustack.components.parts.admission import quoted
from gpustack.components.parts.common_inputs import Common
from gpustack.components.registry import REGISTRY
from gpustack.model import Body
from tests.components.common import render, spec
from tests.project import ROOT

DIST = ROOT / "dist"
POOL = {"name": "a", "os": "ubuntu22.04", "nodeSelector": {"p": "a"}}
PROGRAM = {"image": "registry.example/reconciler:1"}
FLUX = {"engine": "flux", "repository": {"url": "https://git.example/r.git"}}
INSIDE = {"destination": {"server": "https://kubernetes.default.svc"}}
ARGOCD = {"engine": "argocd", "repository": {"url": "https://git.example/r.git"}}


def rendered(**fields: Any) -> dict[str, Body]:
    """The guards of a policy with FIELDS, by kind and name."""
    found = guards_inputs.guards(resolve(spec(**{"nodePools": [POOL], **fields})))
    return {} if found is None else render(Guards, found)


def expression(name: str, **fields: Any) -> str:
    """The first rule of a guard."""
    checks = rendered(**fields)[f"ValidatingAdmissionPolicy/{name}"]["spec"]["validations"]
    return str(checks[0]["expression"])


@pytest.mark.parametrize(("mode", "actions"), [(None, ["Deny"]), ("Deny", ["Deny"]), ("Audit", ["Audit", "Warn"])])
def test_modes(mode: str | None, actions: list[str]) -> None:
    """Refused unless the policy says that it is to be noted and warned of, all guards alike; they fail closed."""
    bodies = rendered(guards={"mode": mode})
    bindings = [body["spec"] for key, body in bodies.items() if key.startswith("ValidatingAdmissionPolicyBinding/")]
    assert len(bindings) >= 4
    assert all(each["validationActions"] == actions for each in bindings)
    policies = [body["spec"] for key, body in bodies.items() if key.startswith("ValidatingAdmissionPolicy/")]
    assert {each["failurePolicy"] for each in policies} == {"Fail"}


@pytest.mark.parametrize(
    "fields", [{"guards": {"mode": "Off"}}, {"cluster": {"kubernetesVersion": "1.29"}}], ids=["off", "old"]
)
def test_none(fields: dict[str, Any]) -> None:
    """Switched off, the first step of leaving, none is rendered; nor where the API server couldn't compare nodes."""
    assert rendered(**fields) == {}


def test_every_example_guards_every_account_that_changes_nodes_or_pods() -> None:
    """Whatever is rendered: an account with a right to change nodes, or to make, change or delete pods, is named by a
    guard over them."""
    seen = 0
    for cluster in (path for path in DIST.iterdir() if (path / "base").is_dir()):
        bodies = [yaml.safe_load(path.read_text("utf-8")) for path in cluster.glob("*/*.yaml")]
        conditions = [
            (rule["resources"], str(body["spec"]["matchConditions"]))
            for body in bodies
            if body["kind"] == "ValidatingAdmissionPolicy"
            for rule in body["spec"]["matchConstraints"]["resourceRules"]
        ]
        bound = {
            (one["kind"], one["metadata"]["name"]): one["subjects"][0]["name"]
            for one in bodies
            if one["kind"].endswith("RoleBinding")
        }
        for body in bodies:
            if body["kind"] not in {"Role", "ClusterRole"}:
                continue
            account = bound[f"{body['kind']}Binding", body["metadata"]["name"]]
            if account == "gpustack-reconciler":  # its pods: drivers and MIG managers of all nodes
                continue
            for rule in body["rules"]:
                for kind in {"nodes", "pods", "nodefeatures", "resourceslices"} & set(rule["resources"]):
                    if {"create", "update", "patch"} & set(rule["verbs"]) or (
                        kind == "pods" and "delete" in rule["verbs"]
                    ):
                        named = [text for kinds, text in conditions if kind in kinds and f":{account}" in text]
                        assert named, f"{cluster.name}: {account} {kind}"
                        seen += 1
    assert seen > 40


def test_nobody_of_the_stack_evicts_beside_the_reconciler() -> None:
    """An Eviction names no node: no account has the right where the reconciler evicts on all nodes."""
    for cluster in (path for path in DIST.iterdir() if (path / "reconciler").is_dir()):
        policies = [yaml.safe_load(path.read_text("utf-8")) for path in cluster.glob("reconciler/nodepolicy-*.yaml")]
        if not (policies and all(each["spec"].get("upgradeAnnotation") for each in policies)):
            continue
        for path in cluster.glob("*/*role-*.yaml"):
            if "pods/eviction" in path.read_text("utf-8"):
                assert "gpustack-reconciler" in path.name, path


@pytest.mark.parametrize(
    ("gitops", "section", "allowed"),
    [
        (FLUX, {}, ["system:masters", "system:serviceaccounts:flux-system"]),
        ({**FLUX, "flux": {"namespace": "gitops"}}, {}, ["system:masters", "system:serviceaccounts:gitops"]),
        ({**FLUX, "flux": {"serviceAccountName": "a"}}, {}, ["system:serviceaccount:flux-system:a", "system:masters"]),
        ({**ARGOCD, "argocd": INSIDE}, {}, ["system:masters", "system:serviceaccounts:argocd"]),
        (None, {"users": ["ci"], "groups": ["admins"]}, ["ci", "system:masters", "admins"]),
    ],
)
def test_who_writes_is_known(gitops: Any, section: dict[str, Any], allowed: list[str]) -> None:
    """The engine in the cluster, by its namespace or the account that it acts as, and whom the policy names."""
    found = expression("gpustack-configmaps", gitops=gitops, guards={"writers": section})
    assert not found.startswith("!")
    places = [found.index(f"'{name}'") for name in allowed]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "gitops",
    [
        None,
        {**ARGOCD, "argocd": {"destination": {"name": "prod"}}},
        {**FLUX, "flux": {"kubeConfig": {"secretName": "prod"}}},
    ],
)
def test_who_writes_is_not_known(gitops: Any) -> None:
    """Without an engine, or with one elsewhere, the stack's own accounts and nodes are refused, and nobody else."""
    found = expression("gpustack-configmaps", gitops=gitops)
    assert found.startswith("!request.userInfo")
    assert "'system:serviceaccounts:gpu-operator', 'system:nodes'" in found


def test_the_reconciler_writes_the_layouts_that_it_keeps() -> None:
    """One ConfigMap by name, and no mark of it; where it keeps none, it has no such way."""
    cut = {"name": "a", "nodeSelector": {"x": "y"}, "gpuProduct": "NVIDIA-A100-SXM4-80GB", "gpusPerNode": 8}
    cut |= {"sharing": {"mig": {"layout": {"3g.40gb": 2}}}}
    section = {"image": "registry.example.com/r:1"}
    found = expression("gpustack-configmaps", reconciler=section, nodePools=[cut], mig={"strategy": "mixed"})
    assert "gpustack-reconciler' && object.metadata.name == 'gpustack-mig-layouts'" in found
    assert "object.metadata.?labels == oldObject.metadata.?labels" in found
    assert "gpustack-reconciler" not in expression("gpustack-configmaps", reconciler=section)


def test_every_script_is_marked() -> None:
    """Each ConfigMap that is rendered into the stack's namespace has the mark that its guard goes by; that which
    OpenShift fills has not."""
    seen = 0
    for path in DIST.glob("*/*/configmap-*.yaml"):
        body = yaml.safe_load(path.read_text("utf-8"))
        full = "data" in body or "binaryData" in body
        mark = body["metadata"].get("labels", {}).get("gpustack.dev/guarded")
        assert mark == ("true" if full else None), path
        seen += full
    assert seen > 40


def test_a_label_of_the_policy_may_be_paused() -> None:
    """The label that the policy tells the driver manager to change is its own too, whatever is written there."""
    text = "it's \\ me"
    env = [{"name": "NODE_LABEL_FOR_GPU_POD_EVICTION", "value": text}]
    found = rendered(driver={"manager": {"env": env}})["ValidatingAdmissionPolicy/gpustack-nodes-of-own-pods"]["spec"]
    own = next(each["expression"] for each in found["variables"] if each["name"] == "own")
    assert r"['nvidia.com/gpu.deploy.', 'it\'s \\ me']" in own


def test_rules_of_the_policy_may_steer() -> None:
    """A label that steers the stack is discovery's to set where a rule in extraObjects says so, and no other."""
    rule = {"name": "r", "labels": {"nvidia.com/gpu.deploy.operands": "false"}}
    extra = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "r"}}
    named = "gpustack-labels-by-discovery"
    assert "key in ['nvidia.com/gpu.deploy.operands']" in expression(
        named, extraObjects=[{**extra, "spec": {"rules": [rule]}}]
    )
    assert "deploy.operands" not in expression(named)


def test_literals() -> None:
    """No text of a policy ends its literal."""
    assert quoted("a' || true || '") == "'a\\' || true || \\''"
    assert quoted('say "\\"') == "'say \"\\\\\"'"
    assert quoted("a\nb") == "'a\\nb'"


def test_inputs_are_made_once_for_a_cluster() -> None:
    """Guards ask for what a dozen other components are given, and each operand for what steers all: neither is made
    again, and another cluster has its own."""
    some, other = spec(), spec(cluster={"namespace": "gpus"})
    made = {entry.id: entry.inputs(some) for entry in REGISTRY}
    assert len([each for each in made.values() if each]) > 10
    assert [entry.id for entry in REGISTRY if entry.inputs(some) is not made[entry.id]] == []
    steering = Common.from_cluster(resolve(some))
    assert Common.from_cluster(resolve(some)) is steering
    assert Common.from_cluster(resolve(other)) == steering.model_copy(update={"namespace": "gpus"})


def listeners(**fields: Any) -> dict[str, Body]:
    """The NetworkPolicies of a policy with FIELDS, by name."""
    found = guards_inputs.network_policies(resolve(spec(**{"nodePools": [POOL], **fields})))
    bodies = {} if found is None else render(NetworkPolicies, found)
    return {body["metadata"]["name"]: body["spec"] for body in bodies.values()}


def test_the_reconciler_is_closed() -> None:
    """By default the reconciler alone has one: closed, open to all where the Prometheus operator reads metrics, or to
    the namespaces that the policy names."""
    assert listeners() == listeners(reconciler=PROGRAM, guards={"networkPolicies": "none"}) == {}
    (found,) = listeners(reconciler=PROGRAM).values()
    assert found == {"podSelector": {"matchLabels": {"app": "gpustack-reconciler"}}, "policyTypes": ["Ingress"]}
    port = {"ports": [{"port": 8080, "protocol": "TCP"}]}
    (found,) = listeners(reconciler=PROGRAM, cluster={"monitoring": True}).values()
    assert found["ingress"] == [port]
    (found,) = listeners(reconciler=PROGRAM, guards={"scrapers": ["monitoring"]}).values()
    term = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["monitoring"]}
    assert found["ingress"] == [{"from": [{"namespaceSelector": {"matchExpressions": [term]}}], **port}]


def test_all_that_listens() -> None:
    """With `all` each kind of pod that listens has one; the engine is open to the stack's own namespace, an exporter on
    the port that it was told, and pods in their node's network have none, as it would do nothing."""
    env = [{"name": "DCGM_EXPORTER_LISTEN", "value": ":9500"}]
    fields: dict[str, Any] = {"dcgm": {"enabled": True}, "nodeStatusExporter": {"enabled": True}}
    found = listeners(guards={"networkPolicies": "all"}, dcgmExporter={"env": env}, **fields)
    assert set(found) == {
        "nvidia-dcgm",
        "nvidia-dcgm-exporter",
        "nvidia-node-status-exporter",
        "gpu-operator-node-feature-discovery",
    }
    assert found["nvidia-dcgm"]["ingress"][0]["from"] == [{"podSelector": {}}]
    assert found["nvidia-dcgm-exporter"]["ingress"] == [{"ports": [{"port": 9500, "protocol": "TCP"}]}]
    hosted = {**fields, "dcgm": {"enabled": True, "hostNetwork": True}}
    assert "nvidia-dcgm" not in listeners(guards={"networkPolicies": "all"}, **hosted)
