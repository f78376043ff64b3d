"""A node pool with a driver of its own: what it gets, and what that does to the others (driver/driver_inputs.py)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustack.cluster.resolve import resolve
from gpustack.components import Driver
from gpustack.components.driver.driver_inputs import DriverInputs, from_cluster
from gpustack.model import Body, Finding, FindingsError
from tests.components.common import container, env, render, spec

MAIN = "nvidia-driver-ctr"
OWNER = "nvidia.com/gpu-operator.driver.owner"
BASE: dict[str, Any] = {"env": [{"name": "A", "value": "1"}], "resources": {"limits": {"memory": "1Gi"}}}


def pools(*drivers: dict[str, Any] | None, os: str = "ubuntu22.04") -> list[dict[str, Any]]:
    """A pool for each of DRIVERS, called a, b, ..., with that driver; None has none of its own."""
    return [
        {"name": name, "os": os, "nodeSelector": {"p": name}, **({"driver": driver} if driver is not None else {})}
        for name, driver in zip("abcdefgh", drivers, strict=False)
    ]


def inputs(*drivers: dict[str, Any] | None, **sections: Any) -> DriverInputs:
    """The inputs of a cluster with `pools` of DRIVERS."""
    found = from_cluster(resolve(spec(**{"driver": BASE, "nodePools": pools(*drivers), **sections})))
    assert found is not None
    return found


def daemonsets(*drivers: dict[str, Any] | None, **sections: Any) -> list[Body]:
    """The DaemonSets of such a cluster: first those of all nodes, then those of pools."""
    return [body for body in render(Driver, inputs(*drivers, **sections)).values() if body["kind"] == "DaemonSet"]


def test_the_pool_gets_the_clusters_driver_with_its_changes() -> None:
    """Fields that the pool leaves out are the cluster's; lists of named items merge, as in layers."""
    _, own = daemonsets(None, {"version": "580.173.02", "env": [{"name": "B", "value": "2"}]})
    main = container(own["spec"]["template"]["spec"], MAIN)
    assert main["image"] == "nvcr.io/nvidia/driver:580.173.02-ubuntu22.04"
    assert env(main).items() >= {"A": "1", "B": "2"}.items()
    assert main["resources"] == BASE["resources"]


def test_a_whole_image_reference_replaces_repository_and_version() -> None:
    """`image` with path and tag is all of it, although the cluster's driver has repository and version."""
    (own,) = inputs({"image": "r.example.com/driver:1"}).pools
    assert own.pod.image == "r.example.com/driver:1-ubuntu22.04"
    (named,) = inputs({"image": "driver-next"}).pools
    assert named.pod.image == "nvcr.io/nvidia/driver-next:595.91.07-ubuntu22.04"
    (managed,) = inputs({"manager": {"image": "r.example.com/manager:1"}}).pools
    assert managed.settings.manager.image == "r.example.com/manager:1"


def test_an_image_with_a_registry_and_no_tag() -> None:
    """It is no whole reference, and beside the cluster's repository it is none that exists."""
    (finding,) = refusals({"image": "r.example.com/driver"})
    assert (finding.rule, finding.path) == ("GPU045", "spec.nodePools[0].driver.image")


def test_nodes_are_told_apart_by_the_owner_label() -> None:
    """The pool's DaemonSet selects its label, the others exclude it: a node without label has the cluster's driver."""
    base, own = daemonsets(None, {"version": "580.173.02"})
    of_base, of_own = (body["spec"]["template"]["spec"] for body in (base, own))
    assert of_own["nodeSelector"][OWNER] == "b"
    (term,) = of_base["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": OWNER, "operator": "NotIn", "values": ["b"]}]}
    assert "nodeAffinity" not in of_own["affinity"]
    assert OWNER not in of_base["nodeSelector"]


def test_selectors_are_disjoint() -> None:
    """No DaemonSet adopts the pods of another: an adopted driver on the wrong node would be deleted at once."""
    found = daemonsets(None, {"version": "1.0.0"}, {"version": "1.0.0"})
    selectors = [body["spec"]["selector"]["matchLabels"]["app"] for body in found]
    assert selectors[0] == "nvidia-driver-daemonset"
    assert len(set(selectors)) == len(found) == 3
    assert all(name.startswith("nvidia-gpu-driver-ubuntu22.04-") for name in selectors[1:])


VERSION = st.sampled_from([None, {"version": "1.0.0"}, {"version": "2.0.0"}, {"kernelModuleType": "open"}])


@settings(max_examples=40, deadline=None)
@given(before=st.lists(VERSION, min_size=2, max_size=4), index=st.integers(0, 3), after=VERSION)
def test_a_change_of_one_pool_renames_nothing_else(
    before: list[dict[str, Any] | None], index: int, after: dict[str, Any] | None
) -> None:
    """Whatever one pool's driver becomes, all other DaemonSets keep name, selector, nodes and what they install."""
    changed = [*before]
    changed[index % len(before)] = after
    old, new = inputs(*before), inputs(*changed)
    assert new.pods == old.pods
    assert new.settings == old.settings
    name = "abcdefgh"[index % len(before)]
    assert [own for own in new.pools if own.owner != name] == [own for own in old.pools if own.owner != name]
    names = {own.owner: own.pod.name for own in (*old.pools, *new.pools)}
    assert all(own.pod.name == names[own.owner] for own in (*old.pools, *new.pools))


def test_the_first_override_restarts_no_other_driver() -> None:
    """The other pods gain an affinity; what they install, and so its digest, stays."""
    (alone,), (base, _) = daemonsets(None), daemonsets(None, {"version": "1.0.0"})
    first, second = (env(container(body["spec"]["template"]["spec"], MAIN)) for body in (alone, base))
    assert first["DRIVER_CONFIG_DIGEST"] == second["DRIVER_CONFIG_DIGEST"]
    assert alone["spec"]["selector"] == base["spec"]["selector"]


def test_a_pool_may_have_precompiled_modules() -> None:
    """usePrecompiled for one pool: its kernel is in image and node selector, and no other pool needs one."""
    listed = pools(None, {"usePrecompiled": True, "version": "595"})
    listed[1]["kernel"] = "5.15.0-105-generic"
    (own,) = inputs(nodePools=listed).pools
    assert own.pod.image == "nvcr.io/nvidia/driver:595-5.15.0-105-generic-ubuntu22.04"
    assert own.pod.node_selector["feature.node.kubernetes.io/kernel-version.full"] == "5.15.0-105-generic"
    assert own.settings.precompiled


def test_rights_and_account_are_shared() -> None:
    """All drivers of the section `driver` may do the same, under one account."""
    bodies = render(Driver, inputs(None, {"version": "1.0.0"}))
    assert [name for name in bodies if name.startswith("ServiceAccount/")] == ["ServiceAccount/nvidia-driver"]
    accounts = {
        b["spec"]["template"]["spec"]["serviceAccountName"] for b in bodies.values() if b["kind"] == "DaemonSet"
    }
    assert accounts == {"nvidia-driver"}


def test_pools_of_virtual_machines_have_none() -> None:
    """A pool that serves virtual machines has no driver for containers, its own or the cluster's."""
    listed = pools(None, {"version": "1.0.0"})
    listed[1]["workload"] = "vm-passthrough"
    assert inputs(nodePools=listed, sandboxWorkloads={"enabled": True}).pools == ()
    assert len(inputs(nodePools=listed).pools) == 1


def refusals(*drivers: dict[str, Any] | None, **sections: Any) -> list[Finding]:
    """What is said against `pools` of DRIVERS."""
    with pytest.raises(FindingsError) as caught:
        inputs(*drivers, **sections)
    return caught.value.findings


def test_findings_point_to_the_pool() -> None:
    """What the pool says is refused where it says it, in path and remedy; what the cluster says, there."""
    (kernel,) = refusals(None, {"usePrecompiled": True, "version": "595"})
    assert kernel.path == "spec.nodePools[1].kernel"
    assert "spec.nodePools[1].driver.usePrecompiled: false" in kernel.remedy
    (keys,) = refusals(None, {"repoConfig": {"configMapName": "repo"}})
    assert keys.path == "spec.nodePools[1].driver.repoConfig.configMapName"
    listed = pools(None, {"usePrecompiled": True, "version": "595"})
    listed[1]["kernel"] = "5.15.0-105-generic"
    (gds,) = refusals(nodePools=listed, gds={"enabled": True})
    assert gds.path == "spec.gds.enabled"
    assert "spec.nodePools[1].driver.usePrecompiled: false" in gds.remedy


def test_a_mistake_of_the_cluster_is_said_once() -> None:
    """A finding about the section `driver` is not repeated for each pool that overrides another field."""
    found = refusals(None, {"version": "1.0.0"}, driver={"livenessProbe": {"periodSeconds": 5}})
    assert [finding.path for finding in found] == ["spec.driver.livenessProbe"]
