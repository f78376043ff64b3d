"""Whatever a resource names exists in the render or in `references`: each way of naming, and each way of existing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpustack.compiler.cache import Store, digest
from gpustack.compiler.stack import compile_stack
from gpustack.model import Body, FindingsError
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import spec
from tests.project import SMALL

HERE = "gpu-operator"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """What the cases share."""
    return Store(tmp_path_factory.mktemp("store"), "s" * 64)


def policy(bodies: Sequence[Body], references: Sequence[dict[str, Any]] = ()) -> ClusterPolicySpec:
    """A small policy that brings BODIES along and says that REFERENCES exist."""
    sections = {**SMALL, "cluster": {**SMALL["cluster"], "monitoring": True}}
    return spec(**sections, extraObjects=list(bodies), references=list(references))


def findings(store: Store, *bodies: Body, references: Sequence[dict[str, Any]] = ()) -> list[str]:
    """What is said against a render with BODIES, as "rule sentence"."""
    wanted = policy(bodies, references)
    try:
        compile_stack(wanted, digest(wanted.model_dump_json()), store)
    except FindingsError as error:
        return [f"{finding.rule} {finding.what}" for finding in error.findings]
    return []


def named(kind: str, name: str, version: str = "v1", namespace: str = "", **rest: Any) -> Body:
    """An object with metadata and REST."""
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        **rest,
    }


def pod(**fields: Any) -> Body:
    """A pod whose spec has FIELDS."""
    return named("Pod", "p", spec={"containers": [{"name": "c", "image": "i"}], **fields})


def container(**fields: Any) -> Body:
    """A pod whose container has FIELDS."""
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def volume(**source: Any) -> Body:
    """A pod with a volume of SOURCE."""
    return pod(volumes=[{"name": "v", **source}])


def variable(kind: str, **rest: Any) -> Body:
    """A pod whose variable comes from key k of the ConfigMap or Secret x."""
    return container(env=[{"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": "x", "key": "k", **rest}}}])


def binding(kind: str, role: str, name: str, *accounts: tuple[str, str]) -> Body:
    """A binding of ACCOUNTS (namespace and name) to the ROLE NAME."""
    subjects = [
        {"kind": "ServiceAccount", "name": name, **({"namespace": space} if space else {})} for space, name in accounts
    ]
    role_ref = {"apiGroup": RBAC, "kind": role, "name": name}
    return named(kind, "b", f"{RBAC}/v1", roleRef=role_ref, subjects=subjects)


TEMPLATE = {"metadata": {"labels": {"app": "t"}}, "spec": pod(serviceAccountName="x")["spec"]}
ENDING = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
WORKLOADS = [
    pod(serviceAccountName="x"),
    named("Deployment", "w", "apps/v1", spec={"selector": {"matchLabels": {"app": "t"}}, "template": TEMPLATE}),
    named("DaemonSet", "w", "apps/v1", spec={"selector": {"matchLabels": {"app": "t"}}, "template": TEMPLATE}),
    named("Job", "w", "batch/v1", spec={"template": ENDING}),
    named("CronJob", "w", "batch/v1", spec={"schedule": "@daily", "jobTemplate": {"spec": {"template": ENDING}}}),
]
"""Everything that has a pod in it."""

CASES: list[tuple[Body, str]] = [
    *((workload, "ServiceAccount") for workload in WORKLOADS),
    (pod(runtimeClassName="x"), "RuntimeClass"),
    (pod(priorityClassName="x"), "PriorityClass"),
    (pod(imagePullSecrets=[{"name": "x"}]), "Secret"),
    (volume(configMap={"name": "x"}), "ConfigMap"),
    (volume(secret={"secretName": "x"}), "Secret"),
    (volume(projected={"sources": [{"configMap": {"name": "x"}}]}), "ConfigMap"),
    (volume(projected={"sources": [{"secret": {"name": "x"}}]}), "Secret"),
    (volume(persistentVolumeClaim={"claimName": "x"}), "PersistentVolumeClaim"),
    (container(envFrom=[{"configMapRef": {"name": "x"}}]), "ConfigMap"),
    (container(envFrom=[{"secretRef": {"name": "x"}}]), "Secret"),
    (variable("configMap"), "ConfigMap"),
    (variable("secret"), "Secret"),
    (pod(initContainers=[{"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]), "Secret"),
    (binding("RoleBinding", "Role", "x"), "Role"),
    (binding("RoleBinding", "ClusterRole", "x"), "ClusterRole"),
    (binding("ClusterRoleBinding", "ClusterRole", "x"), "ClusterRole"),
    (binding("RoleBinding", "ClusterRole", "view", ("", "x")), "ServiceAccount"),
    (binding("RoleBinding", "ClusterRole", "view", (HERE, "x")), "ServiceAccount"),
    (binding("ClusterRoleBinding", "ClusterRole", "view", (HERE, "x")), "ServiceAccount"),
]


@pytest.mark.parametrize(("body", "kind"), CASES, ids=[f"{number}-{kind}" for number, (_, kind) in enumerate(CASES)])
def test_each_way_of_naming(store: Store, body: Body, kind: str) -> None:
    """A name of what isn't there is an error, whatever names it; a reference makes it good; one of another kind,
    name or namespace doesn't."""
    assert findings(store, body) == [f"GPU201 {kind} 'x' does not exist"]
    assert findings(store, body, references=[{"kind": kind, "name": "x"}]) == []
    for other in ({"kind": "Other", "name": "x"}, {"kind": kind, "name": "y"}):
        assert findings(store, body, references=[other]) == [f"GPU201 {kind} 'x' does not exist"]
    elsewhere = findings(store, body, references=[{"kind": kind, "name": "x", "namespace": "elsewhere"}])
    cluster_wide = kind in {"RuntimeClass", "PriorityClass", "ClusterRole"}
    assert (elsewhere == []) is cluster_wide


OPTIONAL = [
    volume(configMap={"name": "x", "optional": True}),
    volume(secret={"secretName": "x", "optional": True, "items": [{"key": "k", "path": "p"}]}),
    volume(projected={"sources": [{"configMap": {"name": "x", "optional": True}}]}),
    container(
        envFrom=[{"configMapRef": {"name": "x", "optional": True}}, {"secretRef": {"name": "x", "optional": True}}]
    ),
    variable("configMap", optional=True),
    variable("secret", optional=True),
]


@pytest.mark.parametrize("body", OPTIONAL)
def test_optional_names(store: Store, body: Body) -> None:
    """What a pod can start without needn't be there."""
    assert findings(store, body) == []


BUILT_IN = [
    pod(serviceAccountName="default"),
    pod(priorityClassName="system-node-critical"),
    pod(priorityClassName="system-cluster-critical"),
    volume(configMap={"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca"}]}),
    *(binding("ClusterRoleBinding", "ClusterRole", name) for name in ("view", "edit", "admin", "cluster-admin")),
    binding("ClusterRoleBinding", "ClusterRole", "system:auth-delegator"),
    binding("ClusterRoleBinding", "ClusterRole", "view", ("kube-system", "x"), ("openshift-monitoring", "y")),
]


@pytest.mark.parametrize("body", BUILT_IN)
def test_what_every_cluster_has(store: Store, body: Body) -> None:
    """Kubernetes' own objects need no reference, nor do those in namespaces of the platform."""
    assert findings(store, body) == []


def test_a_role_is_never_built_in(store: Store) -> None:
    """Only ClusterRoles are called view or system:something by Kubernetes; a Role of that name must be there."""
    for name in ("view", "system:x"):
        assert findings(store, binding("RoleBinding", "Role", name)) == [f"GPU201 Role {name!r} does not exist"]


def test_accounts_of_other_namespaces(store: Store) -> None:
    """A binding may name an account of another namespace: a reference says so, with the namespace."""
    body = binding("ClusterRoleBinding", "ClusterRole", "view", ("monitoring", "x"))
    assert findings(store, body) == ["GPU201 ServiceAccount 'x' does not exist in monitoring"]
    here = {"kind": "ServiceAccount", "name": "x"}
    assert findings(store, body, references=[here]) != []
    assert findings(store, body, references=[{**here, "namespace": "monitoring"}]) == []


def test_subjects_that_are_no_accounts(store: Store) -> None:
    """Users and groups are not objects."""
    body = binding("RoleBinding", "ClusterRole", "view")
    body["subjects"] = [{"kind": kind, "name": "x", "apiGroup": RBAC} for kind in ("User", "Group")]
    assert findings(store, body) == []


def test_what_the_policy_brings_along(store: Store) -> None:
    """An object of extraObjects exists, in its own namespace; namespaces are not mixed up."""
    body = volume(configMap={"name": "x"})
    assert findings(store, body, named("ConfigMap", "x")) == []
    assert findings(store, body, named("ConfigMap", "x", namespace=HERE)) == []
    assert findings(store, body, named("ConfigMap", "x", namespace="elsewhere")) != []
    elsewhere = {**body, "metadata": {"name": "p", "namespace": "elsewhere"}}
    assert findings(store, elsewhere, named("ConfigMap", "x", namespace="elsewhere")) == []
    assert findings(store, elsewhere, named("ConfigMap", "x")) == ["GPU201 ConfigMap 'x' does not exist in elsewhere"]


def test_what_gpustack_renders(store: Store) -> None:
    """The stack's own objects exist for what the policy brings along."""
    assert findings(store, pod(serviceAccountName="nvidia-operator-validator", runtimeClassName="nvidia")) == []


KEYS = [
    variable("configMap"),
    volume(configMap={"name": "x", "items": [{"key": "k", "path": "p"}]}),
    volume(projected={"sources": [{"configMap": {"name": "x", "items": [{"key": "k", "path": "p"}]}}]}),
]


@pytest.mark.parametrize("body", KEYS)
@pytest.mark.parametrize("field", ["data", "binaryData"])
def test_keys(store: Store, body: Body, field: str) -> None:
    """A key that a rendered ConfigMap lacks is an error; binary keys count."""
    there = {**named("ConfigMap", "x"), field: {"k": "eA==", "other": "eA=="}}
    assert findings(store, body, there) == []
    del there[field]["k"]
    assert findings(store, body, there) == ["GPU202 ConfigMap 'x' has no key 'k'"]
    assert findings(store, body, named("ConfigMap", "x")) == ["GPU202 ConfigMap 'x' has no key 'k'"]


@pytest.mark.parametrize(
    "body", [variable("secret"), volume(secret={"secretName": "x", "items": [{"key": "k", "path": "p"}]})]
)
def test_keys_of_references(store: Store, body: Body) -> None:
    """A reference that lists keys must list what is used; one without a list may hold anything."""
    reference = {"kind": "Secret", "name": "x"}
    assert findings(store, body, references=[reference]) == []
    assert findings(store, body, references=[{**reference, "keys": ["a", "k"]}]) == []
    assert findings(store, body, references=[{**reference, "keys": ["a"]}]) == ["GPU202 Secret 'x' has no key 'k'"]


def test_a_reference_that_nothing_names(store: Store) -> None:
    """It is noted at its place: one that is named, if only as optional or in a namespace of its own, is not."""
    names = [{"secretRef": {"name": "a"}}, {"secretRef": {"name": "c", "optional": True}}]
    used = container(envFrom=[*names, {"configMapRef": {"name": "b", "optional": True}}])
    references = [
        {"kind": "Secret", "name": "a"},
        {"kind": "ConfigMap", "name": "b"},
        {"kind": "Secret", "name": "old"},
        {"kind": "Secret", "name": "c", "namespace": "elsewhere"},
        {"kind": "DaemonSet", "name": "whose-pods-a-service-may-select"},
    ]
    wanted = policy([used], references)
    stack = compile_stack(wanted, digest(wanted.model_dump_json()), store)
    told = [finding.path for finding in stack.findings if finding.rule == "GPU205"]
    assert told == ["spec.references[2]", "spec.references[3]"]


def test_one_finding_for_many(store: Store) -> None:
    """What many pods name is said once, with their number."""
    pods = [{**volume(secret={"secretName": "x"}), "metadata": {"name": f"p{number}"}} for number in range(4)]
    with pytest.raises(FindingsError) as caught:
        compile_stack(policy(pods), "m" * 64, store)
    (finding,) = caught.value.findings
    assert "Pod/p0: volume v (and 3 more)" in finding.why
    assert "{kind: Secret, name: x}" in finding.remedy


def service(selector: dict[str, str], name: str = "s", **labels: str) -> Body:
    """A Service with the port m."""
    ports = [{"name": "m", "port": 80}]
    body = named("Service", name, spec={"selector": selector, "ports": ports})
    body["metadata"]["labels"] = labels
    return body


def test_selectors_of_services(store: Store) -> None:
    """A Service must select pods of this render, by all of its labels and in its namespace; without a selector it
    selects nobody on purpose. Pods of somebody else's workload can't be known: a reference to one is enough."""
    ours = {"app": "nvidia-operator-validator"}
    assert findings(store, service(ours)) == []
    assert findings(store, service({})) == []
    missed = ["GPU203 Service/s: selector of app=nvidia-operator-validator, x=y selects no pods of this render"]
    assert findings(store, service({**ours, "x": "y"})) == missed
    elsewhere = service(ours)
    elsewhere["metadata"]["namespace"] = "elsewhere"
    assert len(findings(store, elsewhere)) == 1
    for kind in ("Deployment", "DaemonSet", "StatefulSet", "Pod"):
        assert findings(store, service({"a": "b"}), references=[{"kind": kind, "name": "w"}]) == []
    assert len(findings(store, service({"a": "b"}), references=[{"kind": "ConfigMap", "name": "w"}])) == 1


def test_labels_of_a_bare_pod(store: Store) -> None:
    """A Pod counts as well as the template of a workload."""
    labelled = pod()
    labelled["metadata"]["labels"] = {"a": "b", "c": "d"}
    assert findings(store, service({"a": "b"}), labelled) == []
    deployment = WORKLOADS[1]
    account = named("ServiceAccount", "x")
    assert findings(store, service({"app": "t"}), deployment, account) == []


def monitor(labels: dict[str, str], port: str | None = "m", **spaces: Any) -> Body:
    """A ServiceMonitor."""
    endpoint = {"port": port} if port else {"targetPort": 80}
    rest = {"namespaceSelector": spaces} if spaces else {}
    body = {"selector": {"matchLabels": labels}, "endpoints": [endpoint], **rest}
    return named("ServiceMonitor", "m", "monitoring.coreos.com/v1", spec=body)


def test_service_monitors(store: Store) -> None:
    """A ServiceMonitor must find a Service with its labels and its port, in the namespaces that it looks into."""
    ours = service({}, app="x")
    assert findings(store, ours, monitor({"app": "x"})) == []
    assert findings(store, ours, monitor({"app": "x"}, port=None)) == []
    wrong = ["GPU203 ServiceMonitor/m: selector and port of app=x, port:n selects no Service of this render"]
    assert findings(store, ours, monitor({"app": "x"}, port="n")) == wrong
    assert len(findings(store, ours, monitor({"app": "y"}))) == 1
    assert findings(store, ours, monitor({"app": "x"}, matchNames=[HERE])) == []
    assert len(findings(store, ours, monitor({"app": "x"}, matchNames=[HERE, "elsewhere"]))) == 1
    assert findings(store, ours, monitor({"app": "x"}, any=True)) == []
    away = service({}, app="x")
    away["metadata"]["namespace"] = "elsewhere"
    assert findings(store, away, monitor({"app": "x"}, any=True)) == []
    assert len(findings(store, away, monitor({"app": "x"}))) == 1
    assert findings(store, monitor({"app": "y"}), references=[{"kind": "Service", "name": "s"}]) == []


def test_unnamed_ports(store: Store) -> None:
    """A port without a name is known by its number."""
    ours = service({}, app="x")
    del ours["spec"]["ports"][0]["name"]
    assert findings(store, ours, monitor({"app": "x"}, port="80")) == []


BARE = [
    named("Pod", "p"),
    named("Service", "s"),
    named("CronJob", "c", "batch/v1"),
    named("Deployment", "d", "apps/v1"),
    container(env=[{"name": "V", "valueFrom": {"configMapKeyRef": {"key": "k", "optional": True}}}]),
    pod(volumes=[{"name": "v", "projected": {}}]),
]


@pytest.mark.parametrize("body", BARE)
def test_objects_with_little_in_them(store: Store, body: Body) -> None:
    """Objects that lack what they usually have end in a finding, or in none, but never in a crash."""
    assert all(found.startswith("GPU") for found in findings(store, body))
