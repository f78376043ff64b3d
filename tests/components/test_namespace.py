"""The stack's namespace (operator.md 2.5) and its RuntimeClasses (operator.md 1.4, 5.5)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import Namespace, RuntimeClasses
from gpustack.components.base import base_inputs
from gpustack.components.base.base_inputs import NamespaceInputs
from gpustack.components.toolkit import toolkit_inputs
from gpustack.model import Body
from gpustack.text.quantities import size
from tests.components.common import chart, render, spec

PSA = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}


def objects(**sections: Any) -> dict[str, Body]:
    """The namespace's objects for a policy."""
    inputs = base_inputs.namespace(resolve(spec(**sections)))
    return render(Namespace, inputs) if inputs else {}


def labels(**sections: Any) -> dict[str, str]:
    """The labels of the namespace."""
    (body,) = (body for body in objects(**sections).values() if body["kind"] == "Namespace")
    return dict(body["metadata"].get("labels", {}))


def test_name() -> None:
    """The namespace is the cluster's, gpu-operator where it says none; nothing else is made by default."""
    assert set(objects()) == {"Namespace/gpu-operator"}
    assert set(objects(cluster={"namespace": "mine"})) == {"Namespace/mine"}
    assert labels() == {}


@pytest.mark.parametrize(
    ("name", "ours"),
    [("default", False), ("kube-system", False), ("openshift-x", False), ("default-gpu", True), ("kubeflow", True)],
)
def test_namespaces_of_the_cluster(name: str, ours: bool) -> None:
    """A namespace that belongs to the cluster is never rendered: a prune would delete it."""
    assert bool(objects(cluster={"namespace": name})) is ours


def test_pod_security() -> None:
    """`psa.enabled` and platforms that enforce a stricter level get all three labels (2.5)."""
    assert labels(psa={"enabled": True}) == PSA
    assert labels(cluster={"platform": "talos"}) == PSA
    assert labels(psa={"enabled": False}) == {}


def test_quota() -> None:
    """GKE admits system-critical pods only in a namespace with a quota for them (data/platforms)."""
    found = objects(cluster={"platform": "gke-cos"})["ResourceQuota/gpustack-system-critical"]
    assert found["metadata"]["namespace"] == "gpu-operator"
    (scope,) = found["spec"]["scopeSelector"]["matchExpressions"]
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "In")
    assert set(scope["values"]) == {"system-node-critical", "system-cluster-critical"}
    assert size(found["spec"]["hard"]["pods"]) > 1000


def test_before_everything_else() -> None:
    """What pods stand on is applied with the base."""
    made = Namespace(chart(), "stage", NamespaceInputs(name="x", quota=True)).resources()
    assert {resource.stage for resource in made} == {"base"}
    classes = RuntimeClasses(chart(), "classes", toolkit_inputs.RuntimeClassesInputs()).resources()
    assert {resource.stage for resource in classes} == {"base"}


@pytest.mark.parametrize(
    ("sections", "names"),
    [
        ({}, ["nvidia", "nvidia-cdi", "nvidia-legacy"]),
        ({"operator": {"runtimeClass": "mine"}}, ["mine", "nvidia-cdi", "nvidia-legacy"]),
        ({"operator": {"runtimeClass": "nvidia-cdi"}}, ["nvidia-cdi", "nvidia-legacy"]),
        ({"cdi": {"enabled": False}}, ["nvidia"]),
        ({"cdi": {"enabled": True, "nriPluginEnabled": True}}, []),
    ],
)
def test_runtime_classes(sections: dict[str, Any], names: list[str]) -> None:
    """The default class, with CDI two more, none with the NRI plugin; handlers are called like the classes (5.5)."""
    inputs = toolkit_inputs.runtime_classes(resolve(spec(**sections)))
    found = render(RuntimeClasses, inputs) if inputs else {}
    assert list(found) == [f"RuntimeClass/{name}" for name in names]
    for name in names:
        body = found[f"RuntimeClass/{name}"]
        assert (body["apiVersion"], body["handler"]) == ("node.k8s.io/v1", name)
