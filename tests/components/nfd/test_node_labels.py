"""Labels by node feature discovery, where no program sets them."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.nfd.nfd_inputs import node_labels as from_cluster
from tests.components.common import spec
from tests.components.reconciler.common import POOL, label_rules, specs

TIMES = {"timeSlicing": {"replicas": 2}}


def test_one_rule_where_all_nodes_get_the_same() -> None:
    """The labels are those that the program would set on nodes that can't have MIG, on every node with a GPU."""
    pools = [{**POOL, "nodeSelector": {"a": "b"}}, {**POOL, "name": "b", "nodeSelector": {"a": "c"}}]
    (rule,) = label_rules(nodePools=pools)
    (program, *_) = specs(nodePools=pools, driver={"enabled": False}, migManager={"enabled": False}).values()
    deploy = {f"nvidia.com/gpu.deploy.{name}": "true" for name in program["components"] if name != "mig-manager"}
    assert rule["labels"] == {"nvidia.com/gpu.present": "true", **deploy}
    (feature,) = rule["matchFeatures"]
    assert feature["matchExpressions"]["vendor"] == {"op": "In", "value": ["10de"]}
    assert label_rules(nodePools=[])[0]["labels"] == rule["labels"]


def test_pools_of_different_systems() -> None:
    """Where pools get different labels, each rule looks for the pool's system and kernel."""
    pools: list[dict[str, Any]] = [
        {**POOL, "kernel": "5.15.0-1-generic"},
        {"name": "b", "os": "rhel9.4", "sharing": TIMES},
    ]
    first, second = label_rules(nodePools=pools)
    assert (first["name"], second["name"]) == ("a", "b")
    seen = {each["feature"]: each["matchExpressions"] for each in first["matchFeatures"]}
    assert seen["system.osrelease"] == {
        "ID": {"op": "In", "value": ["ubuntu"]},
        "VERSION_ID": {"op": "In", "value": ["22.04"]},
    }
    assert seen["kernel.version"] == {"full": {"op": "In", "value": ["5.15.0-1-generic"]}}
    assert second["labels"]["nvidia.com/device-plugin.config"] == "b"
    assert "nvidia.com/device-plugin.config" not in first["labels"]


@pytest.mark.parametrize("reconciler", [None, {"image": "r.example/r:1"}, {"labelling": "none"}])
def test_only_where_it_is_asked_for(reconciler: dict[str, Any] | None) -> None:
    """The program, or nobody, labels nodes otherwise."""
    sections: dict[str, Any] = {"reconciler": reconciler} if reconciler else {}
    assert from_cluster(resolve(spec(nodePools=[POOL], **sections))) is None
