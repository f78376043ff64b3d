"""Rules over policies for OpenShift."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.platforms import platform  # noqa: F401 - registers rules
from gpustack.checks.rule import RULES
from tests.components.common import spec

NAMESPACE = "nvidia-gpu-operator"


def hits(rule: str, cluster: dict[str, Any] | None = None, **sections: Any) -> list[str]:
    """The paths of what RULE finds in an OpenShift policy."""
    policy = spec(cluster={"platform": "openshift", "namespace": NAMESPACE, **(cluster or {})}, **sections)
    return [finding.path for finding in RULES[rule].findings(policy)]


@pytest.mark.parametrize("runtime", ["containerd", "containerd://1.7.27", "docker"])
def test_another_runtime(runtime: str) -> None:
    """A policy that says containerd or docker was written for another cluster."""
    assert hits("GPU120", {"containerRuntime": runtime}) == ["spec.cluster.containerRuntime"]
    assert hits("GPU120", {"platform": "generic", "containerRuntime": runtime}) == []
    pools = [{"name": "a", "containerRuntime": "cri-o"}, {"name": "b", "containerRuntime": runtime}]
    assert hits("GPU120", nodePools=pools) == ["spec.nodePools[1].containerRuntime"]
    assert hits("GPU120", {"containerRuntime": "cri-o://1.31.4"}) == []


def test_settings_of_containerd() -> None:
    """Settings of containerd do nothing under CRI-O, so a fleet-wide layer that brings them is a mistake (B24)."""
    env = [{"name": "CRIO_CONFIG_MODE", "value": "hook"}, {"name": "CONTAINERD_SOCKET", "value": "/run/x.sock"}]
    assert hits("GPU120", toolkit={"env": env}) == ["spec.toolkit.env[1]"]
    assert hits("GPU120", {"platform": "generic"}, toolkit={"env": env}) == []


def test_namespace() -> None:
    """Another namespace costs the labels: said where monitoring or Pod Security counts on them (operator.md 2.5)."""
    assert hits("GPU121") == []
    assert hits("GPU121", {"namespace": "gpus"}) == ["spec.cluster.namespace"]
    assert hits("GPU121", {"namespace": "gpus", "monitoring": False}) == []
    assert hits("GPU121", {"namespace": "gpus", "monitoring": False}, psa={"enabled": True}) == [
        "spec.cluster.namespace"
    ]
    assert hits("GPU121", {"platform": "generic", "namespace": "gpus"}) == []


def test_pods_of_the_finder() -> None:
    """What the policy says about the finder's pods is the business of OpenShift's operator."""
    section = {"enabled": True, "worker": {"priorityClassName": "x"}, "helmRelease": "y"}
    assert hits("GPU122", nfd=section) == ["spec.nfd.worker", "spec.nfd.helmRelease"]
    assert hits("GPU122", nfd={**section, "enabled": False}) == []
    assert hits("GPU122", {"platform": "generic"}, nfd=section) == []
