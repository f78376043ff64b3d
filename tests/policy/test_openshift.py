"""A policy that says something particular to OpenShift is for OpenShift, and gets its defaults."""

from __future__ import annotations

from typing import Any

from gpustack.cluster.resolve import resolve
from gpustack.policy.language.cluster import OpenShift
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Part


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
        assert resolve(spec).on_openshift


def test_the_policy_wins() -> None:
    """What a policy says itself stays; other platforms get nothing of it."""
    spec = effective(openshift={"version": "4.20"}, namespace="gpus", monitoring=False)
    assert (spec.cluster.namespace, spec.cluster.monitoring) == ("gpus", False)
    other = effective(platform="eks-al2023")
    assert (other.cluster.namespace, other.nfd.enabled, resolve(other).on_openshift) == ("gpu-operator", True, False)


def test_an_empty_section_is_enough() -> None:
    """`cluster.openshift: {}` says that the cluster is OpenShift, and nothing more."""
    spec = effective(openshift={})
    assert spec.cluster.openshift == OpenShift()
    assert spec.cluster.namespace == "nvidia-gpu-operator"
