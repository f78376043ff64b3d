"""The last guard: what schemas let pass and the API server or the kubelet refuses.

Expected values are those of k8s.io/apimachinery/pkg/util/validation and k8s.io/kubernetes/pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from gpustack.model import Body, Resource

RULES = {rule.id: rule for rule in all_rules()}


def body(kind: str, version: str = "v1", name: str = "a", **content: Any) -> Body:
    """An object."""
    meta = content.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, **content}


def pod(container: dict[str, Any] | None = None, **spec: Any) -> Body:
    """A pod with one container."""
    return body("Pod", spec={"containers": [{"name": "main", "image": "a/b:1", **(container or {})}], **spec})


def paths(rule: str, found: Body) -> list[str]:
    """Where RULE finds something in an object."""
    resource = Resource(found, "operands", "ExtraWorkloads")
    return [finding.path for finding in RULES[rule].findings(resource)]


RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (body("ConfigMap", name="a.b-c"), []),
        (body("ConfigMap", name="A"), ["metadata.name"]),
        (body("ConfigMap", name="a_b"), ["metadata.name"]),
        (body("ConfigMap", name="-a"), ["metadata.name"]),
        (body("ConfigMap", name="a" * 254), ["metadata.name"]),
        (body("ClusterRole", RBAC, name="system:Node_a"), []),
        (body("Service", name="a.b"), ["metadata.name"]),
        (body("Namespace", name="a.b"), ["metadata.name"]),
        (body("Service", "serving.knative.dev/v1", name="a.b"), []),
        (body("ConfigMap", metadata={"labels": {"a/b": "c", "d": ""}}), []),
        (body("ConfigMap", metadata={"labels": {"a b": "c"}}), ['metadata.labels["a b"]']),
        (body("ConfigMap", metadata={"labels": {"a": "b c"}}), ["metadata.labels.a"]),
        (body("ConfigMap", metadata={"labels": {"a": "b" * 64}}), ["metadata.labels.a"]),
        (body("ConfigMap", metadata={"annotations": {"Example.com/A": "any text\n"}}), []),
        (body("ConfigMap", metadata={"annotations": {"a/b/c": ""}}), ['metadata.annotations["a/b/c"]']),
        (body("ConfigMap", metadata={"annotations": {"a": "x" * (256 * 1024 - 1)}}), []),
        (body("ConfigMap", metadata={"annotations": {"a": "x" * 256 * 1024}}), ["metadata.annotations"]),
        (body("ConfigMap", data={"a.b-c_D": "", ".profile": "", "x" * 253: ""}), []),
        (body("ConfigMap", data={"read me": ""}), ['data["read me"]']),
        (body("ConfigMap", data={"a/b": ""}), ['data["a/b"]']),
        (body("ConfigMap", data={"..": ""}), ['data[".."]']),
        (body("ConfigMap", data={"..a": ""}), ['data["..a"]']),
        (body("ConfigMap", data={"$replace": ""}), ['data["$replace"]']),
        (body("ConfigMap", data={"x" * 254: ""}), [f"data.{'x' * 254}"]),
        (body("ConfigMap", data={"a": ""}, binaryData={"a": "", "b c": ""}), ['binaryData["b c"]', "binaryData.a"]),
        (
            body("Deployment", "apps/v1", spec={"template": {"metadata": {"labels": {"a": "b c"}}}}),
            ["spec.template.metadata.labels.a"],
        ),
    ],
)
def test_names_and_labels(found: Body, expected: list[str]) -> None:
    """Names by kind, labels and annotations of the object and of its pods, 256 KiB of annotations; keys as
    apimachinery's IsConfigMapKey takes them."""
    assert paths("GPU811", found) == expected


PROBE = "spec.containers[0]"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod({"ports": [{"containerPort": 65535, "hostPort": 0}]}), []),
        (pod({"ports": [{"containerPort": 65536}]}), [f"{PROBE}.ports[0].containerPort"]),
        (pod({"ports": [{"containerPort": 0}]}), [f"{PROBE}.ports[0].containerPort"]),
        (body("Service", spec={"ports": [{"port": -1}]}), ["spec.ports[0].port"]),
        (pod({"startupProbe": {"successThreshold": 1}, "readinessProbe": {"successThreshold": 3}}), []),
        (pod({"startupProbe": {"successThreshold": 2}}), [f"{PROBE}.startupProbe.successThreshold"]),
        (pod({"livenessProbe": {"successThreshold": 2}}), [f"{PROBE}.livenessProbe.successThreshold"]),
        (pod({"readinessProbe": {"periodSeconds": -1}}), [f"{PROBE}.readinessProbe.periodSeconds"]),
        (pod({"readinessProbe": {"periodSeconds": 2**31}}), [f"{PROBE}.readinessProbe.periodSeconds"]),
        (pod({"securityContext": {"runAsUser": 2**31}}), [f"{PROBE}.securityContext.runAsUser"]),
        (pod(terminationGracePeriodSeconds=2**40, tolerations=[{"tolerationSeconds": 2**40}]), []),
        (pod({"resources": {"limits": {"memory": 2**40}}}), []),
        (body("ResourceQuota", spec={"hard": {"limits.memory": 2**40}}), []),
        (body("PriorityClass", "scheduling.k8s.io/v1", value=2**31), ["value"]),
        (body("Deployment", "apps/v1", spec={"replicas": 2**31}), ["spec.replicas"]),
        (body("NodeFeatureRule", "nfd.k8s-sigs.io/v1alpha1", spec={"replicas": 2**40, "port": 0}), []),
    ],
)
def test_numbers(found: Body, expected: list[str]) -> None:
    """Ports, probes and the 32 bits of most numbers; amounts, and fields of 64 bits, are none of these."""
    assert paths("GPU812", found) == expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"image": "registry.example.com:5000/a/b:1@sha256:" + "a" * 64}, []),
        ({"image": " a/b:1"}, [f"{PROBE}.image"]),
        ({"image": "a/B:1"}, [f"{PROBE}.image"]),
        ({"image": "a/b:1 "}, [f"{PROBE}.image"]),
        ({"env": [{"name": "A.b-C", "value": "any\ntext"}]}, []),
        ({"env": [{"name": "1A"}]}, [f"{PROBE}.env[0].name"]),
        ({"env": [{"name": "A=B"}]}, [f"{PROBE}.env[0].name"]),
        ({"env": [{"name": "A", "value": "a\0"}]}, [f"{PROBE}.env[0].value"]),
        ({"args": ["a", "b\0"], "command": ["\0"]}, [f"{PROBE}.command[0]", f"{PROBE}.args[1]"]),
    ],
)
def test_containers(container: dict[str, Any], expected: list[str]) -> None:
    """Image references, names of variables, and texts that no process can be given."""
    assert paths("GPU813", pod(container)) == expected


@pytest.mark.parametrize("text", ["http://me:hunter2@proxy:1", "a\ndeb https://me:hunter2@example.com/a b\nc"])
def test_passwords(text: str) -> None:
    """An address with a password is found in any text of any object, and not told."""
    found = body("ConfigMap", data={"a": text, "b": "http://proxy:1", "c": "https://me:$(PW)@proxy:1"})
    (finding,) = RULES["GPU814"].findings(Resource(found, "base", "ExtraObjects"))
    assert finding.path == "data.a"
    assert "hunter2" not in finding.what
    assert "***@" in finding.what
