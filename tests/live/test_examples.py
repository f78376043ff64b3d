"""Nothing is found where nothing is amiss: every cluster of policies/, as it is once all is well."""

from __future__ import annotations

import pytest
import yaml

from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.live.state import of_files
from gpustack.live.verify import verify
from gpustack.live.why import KINDS, Target, why
from gpustack.policy.loading.load import load, policy_files
from tests.live.healthy import NODES, cluster
from tests.project import ROOT


def test_every_example_is_tried() -> None:
    """None is left out."""
    assert NODES.keys() == {path.stem for path in policy_files(ROOT / "policies", "policies")}


@pytest.mark.parametrize("name", NODES)
def test_nothing_is_found_where_all_is_well(name: str) -> None:
    """By verify; and `why` of each node, DaemonSet, NodePolicy and pod of the stack says that nothing is amiss."""
    rendered = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / "dist" / name).rglob("*.yaml"))]
    expected = Expected.of(resolve(load(ROOT / "policies" / f"{name}.yaml", root=ROOT).spec), rendered)
    bodies = cluster(name)
    state = of_files(bodies)
    assert [(each.rule, each.what) for each in verify(expected, state)] == []
    told = {}
    for body in bodies:
        if body["kind"] in KINDS.values() and body.get("status", {}).get("phase") != "Failed":
            target = Target(body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", ""))
            told[str(target)] = [each.rule for each in why(expected, state, target)]
    assert {target: rules for target, rules in told.items() if rules != ["WHY003"]} == {}
