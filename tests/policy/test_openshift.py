"""A policy that says something particular to OpenShift is for OpenShift, and gets its defaults."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpustack.catalog import platforms
from gpustack.cluster.resolve import resolve
from gpustack.components.nfd import nfd_inputs
from gpustack.components.parts.common_inputs import Common, prometheus_rules
from gpustack.policy.language.cluster import OpenShift
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part
from tests.components.common import spec


def effective(**cluster: Any) -> ClusterPolicySpec:
    """The effective spec of a policy whose `cluster` says this."""
    spec = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.33", **cluster}}
    merged, findings = assemble([Part("policy", "test", spec)])
    assert findings == []
    return ClusterPolicySpec.model_validate(merged.spec)


def test_defaults_of_openshift() -> None:
    """By its platform or by `cluster.openshift`: monitoring is there, node feature discovery is not ours, the namespace
    is that of OpenShift's catalogue (platforms/openshift.yaml)."""
    for said in ({"platform": "openshift"}, {"openshift": {"version": "4.20"}}):
        spec = effective(**said)
        assert (spec.cluster.monitoring, spec.nfd.enabled) == (True, False)
        assert spec.cluster.namespace == "nvidia-gpu-operator"
        assert spec.operator.use_ocp_driver_toolkit is True
        assert resolve(spec).platform.os_images


def test_the_policy_wins() -> None:
    """What a policy says itself stays; other platforms get nothing of it."""
    spec = effective(openshift={"version": "4.20"}, namespace="gpus", monitoring=False)
    assert (spec.cluster.namespace, spec.cluster.monitoring) == ("gpus", False)
    other = effective(platform="eks-al2023")
    assert (other.cluster.namespace, other.nfd.enabled) == ("gpu-operator", True)
    assert not resolve(other).platform.os_images


def test_each_thing_of_the_family_is_asked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform of OpenShift's family that lacks one of its things is data: without an operator for node feature
    discovery that is installed here, and constraints and monitoring stay as they are; the same the other way round."""
    whole = platforms.platform("openshift")

    def found(**lacks: Any) -> tuple[bool, bool, bool]:
        record = dataclasses.replace(whole, **lacks)
        monkeypatch.setattr(platforms, "of", lambda name, *, openshift: record)
        cluster = resolve(spec(cluster={"platform": "openshift"}, nfd={"enabled": True}))
        nfd = nfd_inputs.nfd(cluster)
        constraints = Common.from_cluster(cluster).openshift
        return bool(nfd and nfd.instance), constraints, prometheus_rules(cluster.spec)

    assert found() == (True, True, True)
    assert found(own_discovery=False) == (False, True, True)
    assert found(security_constraints=False) == (True, False, True)
    assert found(own_monitoring=False) == (True, True, False)


def test_an_empty_section_is_enough() -> None:
    """`cluster.openshift: {}` says that the cluster is OpenShift, and nothing more."""
    spec = effective(openshift={})
    assert spec.cluster.openshift == OpenShift()
    assert spec.cluster.namespace == "nvidia-gpu-operator"
