"""The inert copy of the operator's ClusterPolicy: what others read in it, and where it is refused.

What a reader asks for is told by NVIDIA/KAI-Scheduler (operands/binder/resources.go): the first ClusterPolicy,
spec.cdi, and the version in the label app.kubernetes.io/version.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.catalog.fields import fields
from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.components import Compat
from gpustack.components.base.base_inputs import CompatInputs, compat
from gpustack.model import Body, FindingsError
from tests.components.common import render, spec

ON: dict[str, Any] = {"compat": {"clusterPolicy": True}}


def inputs(**sections: Any) -> CompatInputs:
    """The inputs for a policy with SECTIONS and a copy."""
    found = compat(resolve(spec(**{**ON, **sections})))
    assert found is not None
    return found


def body(**sections: Any) -> Body:
    """The copy for a policy with SECTIONS; the API server's schema takes it, and its definition."""
    bodies = list(render(Compat, inputs(**sections)).values())
    assert [each["kind"] for each in bodies] == ["CustomResourceDefinition", "ClusterPolicy"]
    assert all(validate(each, "1.34") == [] for each in bodies)
    return bodies[1]


def test_nobody_gets_one_who_did_not_ask() -> None:
    """Absent or false: no object."""
    assert compat(resolve(spec())) is None
    assert compat(resolve(spec(compat={"clusterPolicy": False}))) is None


def test_it_has_the_effective_settings_under_the_operators_names() -> None:
    """Defaults of the release included; fields of gpustack's own, which the operator's API lacks, are left out; labels
    and resources are kept whole."""
    labels, limits = {"example.com/a": "b"}, {"limits": {"nvidia.com/x": "1"}}
    pools = [{"name": "a", "os": "ubuntu22.04"}]
    found = body(daemonsets={"labels": labels}, toolkit={"resources": limits}, nodePools=pools)
    assert (found["metadata"]["name"], found["metadata"]["labels"]) == (
        "cluster-policy",
        {"app.kubernetes.io/version": "v26.7.0"},
    )
    assert "status" not in found
    told = found["spec"]
    assert told["cdi"]["enabled"] is True
    assert (told["daemonsets"]["labels"], told["toolkit"]["resources"]) == (labels, limits)
    assert not {"release", "cluster", "nodePools", "nfd", "reconciler", "compat"} & set(told)
    assert set(told) <= set(fields("ClusterPolicy"))


def test_what_is_off_says_that_alone() -> None:
    """A section that is off has no image, which might be incomplete."""
    found = body(driver={"enabled": False}, migManager={"enabled": False})["spec"]
    assert (found["driver"], found["migManager"]) == ({"enabled": False}, {"enabled": False})


def test_a_definition_that_is_there_is_left_to_its_owner() -> None:
    """With `cluster.crds` the copy comes alone."""
    crds = {"clusterpolicies.nvidia.com": "expect"}
    only = render(Compat, inputs(cluster={"kubernetesVersion": "1.34", "crds": crds})).values()
    assert [each["kind"] for each in only] == ["ClusterPolicy"]


def test_it_is_refused_beside_claims() -> None:
    """With gpuCluster the operator reads no ClusterPolicy, so a copy would say what isn't so."""
    with pytest.raises(FindingsError) as caught:
        inputs(gpuCluster={}, devicePlugin={"enabled": False})
    assert [(finding.rule, finding.path) for finding in caught.value.findings] == [
        ("GPU061", "spec.compat.clusterPolicy")
    ]
