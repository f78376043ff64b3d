"""Of any policy that is accepted, everybody who reads it says the same: which driver, which labels, how many GPUs."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpustack.checks.rule import rules_over
from gpustack.cluster.resolve import resolve
from gpustack.components.driver import driver_inputs, nvidia_drivers_inputs
from gpustack.components.nfd import nfd_inputs
from gpustack.components.reconciler import node_policies_inputs
from gpustack.model import FindingsError
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.cluster.seen import agreed
from tests.components.common import spec

OWNER = "nvidia.com/gpu-operator.driver.owner"
CONFIG = "nvidia.com/device-plugin.config"
GPU = "nvidia.com/gpu"
IMAGE = {"image": "registry.example.com/gpu/gpustack-reconciler:1"}
LAYOUTS: list[dict[str, int]] = [{"1g.18gb": 7}, {"3g.71gb": 1, "2g.35gb": 2}]
"""Layouts of an H200 (gpus/mig.yaml)."""


class Case(NamedTuple):
    """A policy, and what it means by the facts: of each pool the driver's name ("" for the section's, None for none),
    and what a node has."""

    spec: ClusterPolicySpec
    drivers: list[str | None]
    resources: list[dict[str, int]]


def shared(draw: st.DrawFn, gpus: int, *, cut: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """How a pool shares its GPUs, and what a node with so many of them has (plugin-config.yaml)."""
    layout = draw(st.sampled_from(LAYOUTS)) if cut else None
    counts = {f"{GPU}": gpus} if layout is None else {f"nvidia.com/mig-{name}": n * gpus for name, n in layout.items()}
    said: dict[str, Any] = {} if layout is None else {"mig": {"layout": layout}}
    kind = draw(st.sampled_from(["", "timeSlicing", *(["mps"] if not cut else [])]))
    if kind:
        replicas, renamed = draw(st.integers(2, 6)), draw(st.booleans())
        said[kind] = {"replicas": replicas, **({"renameByDefault": True} if renamed else {})}
        counts = {f"{name}.shared" if renamed else name: count * replicas for name, count in counts.items()}
    return said, counts


def chosen(pool: dict[str, Any], drivers: list[dict[str, Any]]) -> str | None:
    """The one of DRIVERS that the nodes of POOL get: who selects them, else the default (operator.md 2.3)."""
    labels = {"nvidia.com/gpu.present": "true", **pool["nodeSelector"]}
    selecting = [
        each["name"]
        for each in drivers
        if not each.get("default") and each.get("nodeSelector", {}).items() <= labels.items()
    ]
    return next(iter([*selecting, *(each["name"] for each in drivers if each.get("default"))]), None)


@st.composite
def policies(draw: st.DrawFn) -> Case:
    """A policy of one to three pools whose drivers are described in one of the three ways."""
    by, cut = draw(st.sampled_from(["section", "list", "host"])), draw(st.booleans())
    drivers: list[dict[str, Any]] = []
    if by == "list":
        selectors = st.sampled_from([{"pool": "p0"}, {"pool": "p1"}, {"ring": "early"}, {}])
        for number in range(draw(st.integers(1, 3))):
            more = {"default": True} if draw(st.booleans()) else {"nodeSelector": draw(selectors)}
            drivers.append({"name": f"d{number}", **more})
    pools, expected, resources = [], list[str | None](), []
    for number in range(draw(st.integers(1, 3))):
        gpus = draw(st.integers(1, 8))
        ring = draw(st.sampled_from([{}, {"ring": "early"}, {"ring": "late"}]))
        sharing, counts = shared(draw, gpus, cut=cut)
        pool: dict[str, Any] = {
            "name": f"p{number}",
            "os": "ubuntu22.04",
            "gpuProduct": "NVIDIA-H200",
            "gpusPerNode": gpus,
            "nodeSelector": {"pool": f"p{number}", **ring},
            "sharing": sharing,
        }
        own = by == "section" and draw(st.booleans())
        if own:
            pool["driver"] = {"version": "580.126.20"}
        pools.append(pool)
        resources.append(counts)
        expected.append({"section": pool["name"] if own else "", "list": chosen(pool, drivers), "host": None}[by])
    sections: dict[str, Any] = {"drivers": drivers, "mig": {"strategy": "mixed"} if cut else {}}
    sections["driver"] = {"section": {}, "list": {"useNvidiaDriverCRD": True}, "host": {"enabled": False}}[by]
    return Case(spec(nodePools=pools, reconciler=IMAGE, **sections), expected, resources)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(policies())
def test_all_readers_of_a_policy_agree(case: Case) -> None:
    """Lint, capacity, the offer, NodePolicies, the drivers that are rendered and who verifies nodes say of each pool
    the same driver, labels and resources, and what they say follows from the facts."""
    cluster = resolve(case.spec)
    findings = [found for rule in rules_over("spec") for found in rule.findings(case.spec)]
    assume(not [found for found in findings if found.severity == "error"])
    assert [pool.driver.owner if pool.driver else None for pool in cluster.pools] == case.drivers
    assert [pool.capacity.per_node for pool in cluster.pools] == case.resources
    assert [offered.resources or {} for offered in cluster.offer.pools] == case.resources
    without = {found.path for found in findings if found.rule == "GPU134"}
    bare = [index for index, name in enumerate(case.drivers) if name is None and cluster.listed]
    assert without == {f"spec.nodePools[{index}]" for index in bare}
    try:
        rendered = driver_inputs.from_cluster(cluster), nvidia_drivers_inputs.from_cluster(cluster)
    except FindingsError:
        return  # no driver can be rendered, and then nothing else is
    names = {each.owner for each in rendered[0].pools} if rendered[0] else set()
    names |= {each.name for each in rendered[1].drivers} if rendered[1] else set()
    assert names == {name for name in case.drivers if name}
    made = node_policies_inputs.from_cluster(cluster)
    assert made is not None
    by_pool = {name: each.spec for each in made.policies for name in each.spec["pools"]}
    for pool, name, counts in zip(cluster.pools, case.drivers, case.resources, strict=True):
        policy = by_pool[pool.name]
        assert policy["labels"].get(OWNER, "") == (name or "")
        assert (CONFIG in policy["labels"]) == bool(pool.said.sharing.timeSlicing or pool.said.sharing.mps)
        assert policy["gpu"]["resources"] == counts
        assert agreed(pool, policy, counts)
        assert ("driver" in policy) == (name is not None)
    assert nfd_inputs.node_labels(cluster) is None  # the program labels nodes
