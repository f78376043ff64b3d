"""Manifests that the policy brings along."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog import kubernetes
from gpustack.catalog.kubernetes import CLUSTER_SCOPED
from gpustack.cluster.resolve import resolve
from gpustack.compiler import validate
from gpustack.components import ExtraObjects, ExtraWorkloads
from gpustack.components.base.base_inputs import extra_objects
from gpustack.model import Body, FindingsError
from tests.components.common import chart, spec

RBAC = "rbac.authorization.k8s.io/v1"


def body(kind: str, version: str = "v1", name: str = "x", **meta: Any) -> Body:
    """An object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}}


def stages(*bodies: Body) -> dict[str, str]:
    """The stage of each object that both components make of BODIES, by "kind/name"."""
    inputs = extra_objects(resolve(spec(extraObjects=list(bodies))))
    assert inputs is not None
    made = [
        resource
        for construct in (ExtraObjects, ExtraWorkloads)
        for resource in construct(chart(), f"{construct.__name__}-{id(inputs)}", inputs).resources()
    ]
    found = {f"{resource.kind}/{resource.name}": str(resource.stage) for resource in made}
    assert len(found) == len(made) == len(bodies)
    return found


def test_stages() -> None:
    """What others name comes before them, each kind with a stage of its own in that, and all other objects with the
    operands; every object is rendered once."""
    assert stages(
        body("ConfigMap"),
        body("ServiceAccount"),
        body("PersistentVolumeClaim"),
        body("Role", RBAC),
        body("ClusterRoleBinding", RBAC),
        body("Namespace"),
        body("PriorityClass", "scheduling.k8s.io/v1"),
        body("CustomResourceDefinition", "apiextensions.k8s.io/v1"),
        body("ServiceMonitor", "monitoring.coreos.com/v1"),
        body("Deployment", "apps/v1"),
        body("Service"),
    ) == {
        "ConfigMap/x": "base",
        "ServiceAccount/x": "base",
        "PersistentVolumeClaim/x": "base",
        "Role/x": "base",
        "ClusterRoleBinding/x": "base",
        "Namespace/x": "base",
        "PriorityClass/x": "base",
        "CustomResourceDefinition/x": "crds",
        "ServiceMonitor/x": "monitoring",
        "Deployment/x": "operands",
        "Service/x": "operands",
    }


def test_namespaces() -> None:
    """A namespaced object without a namespace goes where the stack is; a namespace that is given stays; an object of
    the whole cluster gets none."""
    policy = spec(
        cluster={"namespace": "mine"},
        extraObjects=[
            body("ConfigMap", name="a"),
            body("ConfigMap", name="b", namespace="other"),
            body("ConfigMap", name="c", namespace=""),
            body("ClusterRole", RBAC, name="d"),
        ],
    )
    inputs = extra_objects(resolve(policy))
    assert inputs is not None
    found = {item["metadata"]["name"]: item["metadata"].get("namespace") for item in inputs.bodies}
    assert found == {"a": "mine", "b": "other", "c": "mine", "d": None}
    assert policy.extraObjects[0]["metadata"] == {"name": "a"}, "the policy itself is not changed"


NAMESPACED = {
    "AppProject", "Application", "ApplicationSet", "ComputeDomain", "ComputeDomainClique", "ConfigMap", "CronJob",
    "DaemonSet", "Deployment", "GitRepository", "GrafanaDashboard", "HorizontalPodAutoscaler", "HyperConverged",
    "Ingress", "Job", "KubeVirt", "Kustomization", "Lease", "LimitRange", "LocalQueue", "NetworkPolicy",
    "NodeFeature", "NodeFeatureDiscovery", "NodeFeatureGroup", "OCIRepository", "PersistentVolumeClaim", "Pod",
    "PodDisruptionBudget", "PodMonitor", "PrometheusRule", "ResourceClaim", "ResourceClaimTemplate",
    "ExternalSecret", "PodMonitoring", "PolicyException", "SealedSecret", "VMRule", "VMServiceScrape",
    "ResourceQuota", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "ServiceMonitor", "StatefulSet",
}  # fmt: skip
"""Kinds that live in a namespace, by their own API documentation."""


def test_every_kind_has_a_scope() -> None:
    """Of all kinds that can be rendered, those without a namespace are known: one that got a namespace would be refused
    by the API server."""
    known = {name.split()[1] for minor in kubernetes.MINORS for name in validate._known_kinds(minor)}
    assert not known - NAMESPACED - CLUSTER_SCOPED
    assert not NAMESPACED & CLUSTER_SCOPED


def test_bodies_are_as_the_policy_wrote_them() -> None:
    """Nothing is added to an object but its namespace, and to a ConfigMap of the stack's namespace the mark by which
    its guard knows it."""
    claim = body("PersistentVolumeClaim", labels={"a": "b"})
    inputs = extra_objects(resolve(spec(extraObjects=[claim])))
    assert inputs is not None
    (found,) = inputs.bodies
    assert found == {**claim, "metadata": {**claim["metadata"], "namespace": "gpu-operator"}}
    assert extra_objects(resolve(spec())) is None


@pytest.mark.parametrize(
    ("namespace", "data", "label", "mark"),
    [
        ("", {"k": "v"}, None, "true"),
        ("gpu-operator", {"k": "v"}, None, "true"),
        ("other", {"k": "v"}, None, None),
        ("", None, None, None),
        ("", {"k": "v"}, "false", "false"),
    ],
)
def test_config_maps_are_guarded(
    namespace: str, data: dict[str, str] | None, label: str | None, mark: str | None
) -> None:
    """A ConfigMap that pods of the stack can mount is marked; not one of another namespace, nor one that another
    program fills, nor one whose own label says no."""
    wanted = body("ConfigMap", **({"namespace": namespace} if namespace else {}))
    wanted["metadata"]["labels"] = {"a": "b", **({"gpustack.dev/guarded": label} if label else {})}
    inputs = extra_objects(resolve(spec(extraObjects=[{**wanted, **({"data": data} if data else {})}])))
    assert inputs is not None
    assert inputs.bodies[0]["metadata"]["labels"].get("gpustack.dev/guarded") == mark


def test_secrets() -> None:
    """A Secret would be public to everybody who reads the repository: it is refused, with another way."""
    with pytest.raises(FindingsError) as caught:
        extra_objects(resolve(spec(extraObjects=[body("ConfigMap"), body("Secret", name="s")])))
    (finding,) = caught.value.findings
    assert finding.path == "spec.extraObjects[1]"
    assert "references: [{kind: Secret, name: s" in finding.remedy
    assert extra_objects(resolve(spec(extraObjects=[body("Secret", "example.com/v1")]))) is not None


def test_one_object_twice() -> None:
    """Two objects of one kind, namespace and name are refused at the second; a name may repeat in another namespace,
    kind or API group."""
    different = [
        body("ConfigMap"),
        body("ConfigMap", namespace="other"),
        body("ServiceAccount"),
        body("Service"),
        body("Service", "serving.example.com/v1"),
    ]
    assert extra_objects(resolve(spec(extraObjects=different))) is not None
    with pytest.raises(FindingsError) as caught:
        extra_objects(resolve(spec(extraObjects=[*different, body("ConfigMap", namespace="gpu-operator")])))
    (finding,) = caught.value.findings
    assert (finding.rule, finding.path) == ("GPU204", "spec.extraObjects[5]")


@pytest.mark.parametrize("bad", [body("ConfigMap", "a/b/c"), body("ConfigMap", "/v1"), body("ConfigMap", namespace=5)])
def test_what_is_no_object(bad: Body) -> None:
    """An apiVersion or namespace that can't be one is refused while reading, not by a crash of cdk8s."""
    with pytest.raises(ValueError, match=r"apiVersion|namespace"):
        spec(extraObjects=[bad])
