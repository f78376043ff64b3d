"""Nodes that are made anew or reboot, and texts that somebody has to bring to where nodes are made."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.review.impact.tiers import OUTAGE, PLANNED, POWER
from tests.review.impact.requests import Request, judge, request
from tests.review.impact.test_requests import pool

KARPENTER = {"nodeClass": "gpu-training", "capacityTypes": ["reserved", "on-demand"]}
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
GROUP = {"autoscaling": {"nodeGroup": {"kind": "aws"}}}


def told(asked: Request) -> dict[str, tuple[int, str, Any]]:
    """Tier, sentence and nodes of each effect of these rules."""
    found, _ = judge(asked)
    return {each.rule: (each.tier, each.what, each.nodes) for each in found.effects if each.rule.startswith("IMP72")}


def test_nodes_are_replaced() -> None:
    """A taint in the template makes all nodes of the pool drift, one at a time as the pool says; a limit does not."""
    tier, what, nodes = told(request("prod-eks", pool("training", taints=[TAINT])))["IMP720"]
    assert (tier, nodes) == (OUTAGE, (0, 12))
    assert what.startswith("taints of its NodePool")
    assert what.endswith("1 at a time")
    limits = {"autoscaling": {"karpenter": {**KARPENTER, "limits": {"cpu": 100}}}}
    assert not told(request("prod-eks", pool("training", **limits)))


def test_machines_reboot() -> None:
    """A MachineConfig that changes, comes or goes reboots its MachineConfigPool."""
    change = pool("desktops", host={"iommu": "amd"})
    tier, what, _ = told(request("vm-openshift", change))["IMP721"]
    assert tier == OUTAGE
    assert "MachineConfigPool desktops reboot" in what
    moved = pool("desktops", host={"machineConfigPool": "others"})
    assert "desktops and others" in told(request("vm-openshift", moved))["IMP721"][1]
    assert told(Request("vm-openshift", {}, pool("desktops", host={"blockNouveau": True})))["IMP721"][0] == OUTAGE


def test_a_text_is_to_be_brought_to_machines() -> None:
    """Where nothing in the cluster writes onto hosts, that is planned work; a drop-in, which runs as root, is power."""
    tier, what, _ = told(request("lab-a100", pool("training", host={"blockNouveau": True})))["IMP721"]
    assert tier == PLANNED
    assert "gpustack nodes" in what
    found, _ = judge(request("lab-a100", pool("training", host={"containerdDropIn": "version = 3"})))
    assert found.tier == POWER


def test_a_node_group_is_to_be_told() -> None:
    """Another number of shares is another tag; the number of nodes is the cloud's and no tag of an Auto Scaling
    group."""
    shared = pool("inference", **GROUP, sharing={"timeSlicing": {"replicas": 8}})
    tier, what, _ = told(request("prod-eks", shared, pool("inference", **GROUP)))["IMP722"]
    assert tier == PLANNED
    assert "node-template/resources/nvidia.com/gpu.shared" in what
    more = pool("inference", **GROUP, count={"min": 0, "max": 14})
    assert "IMP722" not in told(request("prod-eks", more, pool("inference", **GROUP)))


@pytest.mark.parametrize(
    ("change", "tier"),
    [
        ({"nodeClass": "other"}, POWER),
        ({"expireAfter": "24h"}, OUTAGE),
        ({"limits": {"cpu": 100}}, PLANNED),
    ],
)
def test_tiers_of_karpenter(change: dict[str, Any], tier: int) -> None:
    """A node class says with which image and rights nodes come up."""
    found, _ = judge(request("prod-eks", pool("training", autoscaling={"karpenter": change})))
    assert found.tier == tier
