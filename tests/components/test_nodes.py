"""What nodes are made with: objects for Karpenter and the Node Readiness Controller, texts for node groups."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pydantic import ValidationError

from gpustack.checks.rule import all_rules
from gpustack.cluster.autoscaling import closed
from gpustack.cluster.resolve import Cluster, resolve
from gpustack.components.nodes import groups
from gpustack.components.nodes.nodes import Nodes
from gpustack.model import Body
from gpustack.policy.language.node_pools import Window
from tests.components.common import chart, spec

KARPENTER = {"karpenter": {"nodeClass": "gpu"}}
TYPE = "node.kubernetes.io/instance-type"
L4: Body = {
    "name": "small",
    "os": "amzn2023",
    "gpuProduct": "NVIDIA-L4",
    "gpusPerNode": 1,
    "count": {"min": 0, "max": 20},
    "nodeSelector": {TYPE: "g6.2xlarge", "example.com/team": "a"},
    "autoscaling": KARPENTER,
}
SHARED = {"timeSlicing": {"replicas": 4}}
RENAMED = {"timeSlicing": {"replicas": 4, "renameByDefault": True}}
IDS = itertools.count()
AT = "spec.nodePools[0].autoscaling.karpenter"
EFFECTS = ("NoSchedule", "NoExecute")


def karpenter(**said: Any) -> Body:
    """A pool of Karpenter's, with what is SAID besides."""
    return {"karpenter": {"nodeClass": "gpu", **said}}


def need(key: str) -> Body:
    """A requirement on the label KEY."""
    return {"key": key, "operator": "In", "values": ["a"]}


def cluster(platform: str = "eks-al2023", pool: Body = L4, **said: Any) -> Cluster:
    """A cluster with one pool, which is POOL but for what is SAID."""
    sections = {name: said.pop(name) for name in ("reconciler", "mig", "driver", "gpuCluster") if name in said}
    return resolve(spec(cluster={"platform": platform}, nodePools=[{**pool, **said}], **sections))


def objects(where: Cluster) -> dict[str, Body]:
    """Spec by kind."""
    return {each.kind: each.body["spec"] for each in Nodes(chart(), f"n-{next(IDS)}", where).resources()}


def group(kind: str, **said: Any) -> str:
    """What is printed for a node group of KIND."""
    sizes = {"cpu": 8, "memory": "32Gi"}
    where = cluster(autoscaling={"nodeGroup": {"kind": kind, "resources": sizes}}, **said)
    return groups.text(where.pools[0])


def refused(where: Cluster, rule: str = "GPU750") -> list[tuple[str, str]]:
    """Where RULE speaks up, and what it says."""
    (chosen,) = (each for each in all_rules() if each.id == rule)
    return [(each.path, each.what) for each in chosen.findings(where.spec)]


def test_labels_are_requirements_or_given() -> None:
    """A label that Karpenter knows of instances is a requirement, one that it doesn't know is given to the nodes: a
    selector of pods must fit one or the other (nodes.md 1.1).
    """
    template = objects(cluster())["NodePool"]["template"]
    asked = {each["key"]: each["values"] for each in template["spec"]["requirements"]}
    assert asked == {"kubernetes.io/os": ["linux"], TYPE: ["g6.2xlarge"]}
    assert template["metadata"]["labels"] == {"example.com/team": "a"}


def test_the_node_class_follows_from_the_platform() -> None:
    """EC2NodeClass on EKS (karpenter.k8s.aws); elsewhere it has to be said, and is refused where it isn't."""
    found = objects(cluster())["NodePool"]["template"]["spec"]["nodeClassRef"]
    assert found == {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    assert [path for path, _ in refused(cluster("kubeadm-bare-metal"))] == [
        "spec.nodePools[0].autoscaling.karpenter.nodeClass"
    ]
    own = {"karpenter": {"nodeClass": {"name": "a", "kind": "Metal", "group": "example.com"}}}
    assert not refused(cluster("kubeadm-bare-metal", autoscaling=own))


def test_startup_taints_are_those_that_somebody_takes_away() -> None:
    """The reconciler's, where it runs, and the Node Readiness Controller's; pods need not tolerate them (nodes.md
    1.2)."""
    taints = [{"key": "example.com/starting", "effect": "NoSchedule"}]
    program = {"image": "registry.example/r:1", "startupTaints": taints}
    made = objects(cluster(reconciler=program, readiness={"conditions": {"example.com/Ready": "True"}}))
    ours = {"key": "readiness.k8s.io/gpu", "value": "pending", "effect": "NoSchedule"}
    assert made["NodePool"]["template"]["spec"]["startupTaints"] == [*taints, ours]
    assert made["NodeReadinessRule"]["taint"] == ours
    assert made["NodeReadinessRule"]["conditions"] == [{"type": "example.com/Ready", "requiredStatus": "True"}]
    off = objects(cluster(reconciler={**program, "replicas": 1, "labelling": "none"}))
    assert off["NodePool"]["template"]["spec"]["startupTaints"] == taints
    assert "startupTaints" not in objects(cluster())["NodePool"]["template"]["spec"]


def test_a_roll_out_and_karpenter_keep_to_one_budget() -> None:
    """Nodes with pods go as fast as a roll-out may, and not outside of its windows. From Sunday 06:00 to Saturday 22:00
    are 6 days and 16 hours.
    """
    window = {"days": ["sat"], "start": "22:00", "hours": 8}
    upgrade = {"maxUnavailable": "20%", "maxParallel": 2, "windows": [window]}
    budgets = objects(cluster(upgrade=upgrade))["NodePool"]["disruption"]["budgets"]
    paced = ["Drifted", "Underutilized"]
    assert budgets == [
        {"nodes": "20%", "reasons": paced},
        {"nodes": "2", "reasons": paced},
        {"nodes": "0", "schedule": "0 6 * * 0", "duration": "160h0m", "reasons": paced},
    ]
    short = {"windows": [{**window, "hours": 1, "timeZone": "Europe/Berlin"}]}
    assert objects(cluster(upgrade=short))["NodePool"]["disruption"]["budgets"][-1] == {"nodes": "0", "reasons": paced}
    assert refused(cluster(upgrade=short), "GPU752")
    assert not refused(cluster(upgrade={"windows": [{**window, "timeZone": "Europe/Berlin"}]}), "GPU752")


@pytest.mark.parametrize(
    ("windows", "shut"),
    [
        ([], []),
        ([{"start": "00:00", "hours": 24}], []),
        ([{"days": ["sun"], "start": "00:00", "hours": 168}], []),
        ([{"days": ["mon", "wed"], "start": "22:30", "hours": 2}], [("30 0 * * 2", 46 * 60), ("30 0 * * 4", 118 * 60)]),
        ([{"days": ["sat"], "start": "23:00", "hours": 2}], [("0 1 * * 0", 166 * 60)]),
    ],
)
def test_when_windows_are_closed(windows: list[Body], shut: list[tuple[str, int]]) -> None:
    """Every minute of a week is in a window or in one of these; cron's day 0 is Sunday."""
    assert closed([Window.model_validate(each) for each in windows]) == shut
    opened = sum(each["hours"] * 60 * len(each.get("days") or range(7)) for each in windows)
    assert not windows or sum(length for _, length in shut) == 7 * 24 * 60 - opened


@pytest.mark.parametrize(
    ("windows", "shut"),
    [
        ([{"days": ["sat"], "start": "22:00", "hours": 8, "timeZone": "Europe/Berlin"}], [("0 4 * * 0", 161 * 60)]),
        ([{"days": ["mon"], "start": "00:00", "hours": 2, "timeZone": "Asia/Kolkata"}], [("30 20 * * 0", 166 * 60)]),
        ([{"start": "12:00", "hours": 1, "timeZone": "America/New_York"}], [("", 7 * 24 * 60)]),
        ([{"start": "12:00", "hours": 1, "timeZone": "Mars/Olympus"}], [("", 7 * 24 * 60)]),
        (
            [
                {"days": ["sat"], "start": "22:00", "hours": 4, "timeZone": "Europe/Berlin"},
                {"days": ["sun"], "start": "02:00", "hours": 4, "timeZone": "Europe/Berlin"},
            ],
            [("0 4 * * 0", 161 * 60)],
        ),
    ],
)
def test_windows_of_other_zones(windows: list[Body], shut: list[tuple[str, int]]) -> None:
    """Berlin is one or two hours ahead of UTC, New York four or five behind, India always 5:30 ahead: a window is open
    in UTC while it is so by each of its clocks. Two that follow each other are one, and nobody knows Olympus."""
    assert closed([Window.model_construct(**{"days": [], **each}) for each in windows]) == shut


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ({}, None),
        ({"sharing": SHARED}, {"nvidia.com/gpu": "4"}),
        ({"sharing": RENAMED}, {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "4"}),
        (
            {
                "gpuProduct": "NVIDIA-A100-SXM4-80GB",
                "gpusPerNode": 8,
                "nodeSelector": {TYPE: "p4de.24xlarge"},
                "sharing": {"mig": {"layout": {"3g.40gb": 2}}},
                "mig": {"strategy": "mixed"},
            },
            {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "16"},
        ),
    ],
)
def test_karpenter_knows_what_nodes_will_offer(said: Body, offered: dict[str, str] | None) -> None:
    """It is what `capacity` counts; what an instance type has and the nodes don't offer is 0 (nodes.md 1.5)."""
    where = cluster(**said)
    made = objects(where)
    assert (made["NodeOverlay"]["capacity"] if offered else made.get("NodeOverlay")) == offered
    counted = {name: str(count) for name, count in where.capacity[0].per_node.items()}
    assert counted == {name: count for name, count in (offered or {"nvidia.com/gpu": "1"}).items() if count != "0"}
    assert bool(refused(where, "GPU753")) == bool(offered)


@pytest.mark.parametrize(
    ("said", "path", "word"),
    [
        ({"count": None}, "spec.nodePools[0]", "how many nodes"),
        ({"count": {"min": 1, "max": 2}}, "spec.nodePools[0].count", "Karpenter keeps none"),
        ({"gpusPerNode": None}, "spec.nodePools[0]", "isn't known"),
        (
            {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4"}},
            "spec.nodePools[0].nodeSelector.nvidia.com/gpu.product",
            "once discovery ran",
        ),
        (
            {"nodeSelector": {"karpenter.sh/nodepool": "other"}},
            "spec.nodePools[0].nodeSelector.karpenter.sh/nodepool",
            "is called small",
        ),
        (
            {"nodeSelector": {"kubernetes.io/hostname": "a"}},
            "spec.nodePools[0].nodeSelector.kubernetes.io/hostname",
            "gives to no node",
        ),
        (
            {"nodeSelector": {"a.karpenter.sh/b": "c", TYPE: "g6.2xlarge"}},
            "spec.nodePools[0].nodeSelector.a.karpenter.sh/b",
            "gives to no node",
        ),
        ({"nodeSelector": {"example.com/team": "a"}}, f"{AT}", "which instances"),
        ({"autoscaling": karpenter(instanceTypes=["g6.xlarge"])}, f"{AT}.instanceTypes", "said twice"),
        ({"autoscaling": karpenter(limits={"nodes": 3})}, f"{AT}.limits.nodes", "said twice"),
        ({"autoscaling": karpenter(requirements=[need(TYPE)])}, f"{AT}.requirements[0]", "said twice"),
        (
            {"autoscaling": karpenter(capacityTypes=["spot"], requirements=[need("karpenter.sh/capacity-type")])},
            f"{AT}.requirements[0]",
            "said twice",
        ),
        *(
            ({"autoscaling": karpenter(requirements=[need(key)])}, f"{AT}.requirements[0]", "doesn't know")
            for key in ("kubernetes.io/hostname", "karpenter.sh/nodepool", "karpenter.sh/x", "nvidia.com/gpu.product")
        ),
        (
            {"autoscaling": {"nodeGroup": {}}, "taints": [{"key": "a", "effect": e} for e in EFFECTS]},
            "spec.nodePools[0].taints",
            "one tag",
        ),
        ({"sharing": RENAMED, "autoscaling": {"nodeGroup": {"kind": "gke"}}}, "spec.nodePools[0].count", "whole GPUs"),
        (
            {"sharing": RENAMED, "count": 1, "autoscaling": {"nodeGroup": {"kind": "gke"}}},
            "spec.nodePools[0]",
            "cloud.google.com/gke-accelerator",
        ),
        (
            {"autoscaling": {"nodeGroup": {"kind": "clusterApi"}}},
            "spec.nodePools[0].autoscaling.nodeGroup.resources",
            "",
        ),
    ],
)
def test_what_an_autoscaler_cannot_be_told(said: Body, path: str, word: str) -> None:
    """It is refused where the policy says it, and no object is rendered that says something else."""
    where = cluster(**said)
    found = refused(where)
    assert [at for at, what in found if word in what] == [path], found
    assert "NodePool" not in objects(where)


def test_the_label_of_its_node_pool_selects() -> None:
    """Karpenter sets karpenter.sh/nodepool itself: it is no requirement and no label."""
    types = {"karpenter": {"nodeClass": "gpu", "instanceTypes": ["g6.2xlarge"]}}
    where = cluster(nodeSelector={"karpenter.sh/nodepool": "small"}, autoscaling=types)
    template = objects(where)["NodePool"]["template"]
    assert not refused(where)
    assert "metadata" not in template
    assert [each["key"] for each in template["spec"]["requirements"]] == ["kubernetes.io/os", TYPE]


def test_instance_types_have_their_gpus() -> None:
    """g6.2xlarge has one L4 (AWS, accelerated computing instances)."""
    assert [path for path, _ in refused(cluster(gpusPerNode=4), "GPU751")] == [f"spec.nodePools[0].nodeSelector.{TYPE}"]
    wrong = {"karpenter": {"nodeClass": "gpu", "instanceTypes": ["g6.xlarge", "g6.48xlarge", "g5.xlarge"]}}
    found = refused(cluster(autoscaling=wrong, nodeSelector={}), "GPU751")
    assert [path[-3:] for path, _ in found] == ["[1]", "[2]"]
    assert not refused(cluster(), "GPU751")


def test_tags_of_an_auto_scaling_group() -> None:
    """Names and values as cluster-autoscaler reads them (nodes.md 2.1), labels of discovery among them."""
    taint = {"key": "nvidia.com/gpu", "value": "yes", "effect": "NoSchedule"}
    lines = group("aws", sharing=RENAMED, taints=[taint]).splitlines()
    base = "k8s.io/cluster-autoscaler/node-template"
    assert f"{base}/label/example.com/team: a" in lines
    assert f"{base}/label/nvidia.com/gpu.sharing-strategy: time-slicing" in lines
    assert f"{base}/taint/nvidia.com/gpu: yes:NoSchedule" in lines
    assert f'{base}/resources/nvidia.com/gpu: "0"' in lines
    assert f'{base}/resources/nvidia.com/gpu.shared: "4"' in lines
    assert not [line for line in lines if TYPE in line], "the instance type's own label is known"


def test_tags_of_a_scale_set() -> None:
    """A slash is written "_" and "_" is "~2" (nodes.md 2.2)."""
    text = group("azure", nodeSelector={"example.com/a_b": "c"})
    assert "k8s.io_cluster-autoscaler_node-template_label_example.com_a~2b: c" in text.splitlines()


def test_annotations_of_a_machine_deployment() -> None:
    """Sizes, GPUs, labels and taints (nodes.md 2.3)."""
    lines = dict(line.split(": ", 1) for line in group("clusterApi").splitlines() if line[0] != "#")
    at = "capacity.cluster-autoscaler.kubernetes.io"
    assert lines["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"] == '"20"'
    assert (lines[f"{at}/cpu"], lines[f"{at}/memory"]) == ('"8"', "32Gi")
    assert (lines[f"{at}/gpu-type"], lines[f"{at}/gpu-count"]) == ("nvidia.com/gpu", '"1"')
    assert "example.com/team=a" in lines[f"{at}/labels"].split(",")


def test_options_of_clouds() -> None:
    """What the clouds' own commands take, both of two taints with one key; labels that a cloud sets itself are left to
    it."""
    both = [{"key": "a", "value": "b", "effect": each} for each in EFFECTS]
    assert "--node-taints=a=b:NoSchedule,a=b:NoExecute" in group("gke", taints=both).splitlines()
    own = {"example.com/team": "a", "cloud.google.com/gke-accelerator": "nvidia-l4"}
    assert group("gke", nodeSelector=own).splitlines()[1:] == [
        "--enable-autoscaling",
        "--total-min-nodes=0",
        "--total-max-nodes=20",
        "--node-labels=example.com/team=a",
    ]
    assert "--max-count 20" in group("aks").splitlines()


@pytest.mark.parametrize(
    ("said", "place", "word"),
    [
        ({"autoscaling": {**KARPENTER, "nodeGroup": {}}}, ("autoscaling",), "one of them"),
        ({"autoscaling": {"nodeGroup": {"resources": {"nvidia.com/gpu": 1}}}}, ("autoscaling", "nodeGroup"), "follows"),
        ({"autoscaling": {"karpenter": {"nodeClass": {"name": "a", "kind": "B"}}}}, ("autoscaling",), "API group"),
        ({"readiness": {"conditions": {}}}, ("readiness", "conditions"), "at least 1"),
        (
            {"readiness": {"conditions": {"A": "True"}, "taint": "example.com/a"}},
            ("readiness", "taint"),
            "readiness.k8s.io",
        ),
        ({"autoscaling": {"karpenter": {"nodeClass": "a", "expireAfter": "30d"}}}, ("autoscaling",), "hours"),
    ],
)
def test_what_is_refused(said: Body, place: tuple[str, ...], word: str) -> None:
    """It is said at its place, in words that name it."""
    with pytest.raises(ValidationError) as caught:
        cluster(**said)
    (error,) = caught.value.errors()
    assert error["loc"][2 : 2 + len(place)] == place
    assert word in error["msg"]


def test_a_taint_has_one_owner() -> None:
    """Two programs that take one taint away open the node for each other."""
    program = {
        "image": "registry.example/r:1",
        "startupTaints": [{"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"}],
    }
    both = cluster(reconciler=program, readiness={"conditions": {"example.com/Ready": "True"}})
    assert [path for path, _ in refused(both, "GPU754")] == ["spec.nodePools[0].readiness.taint"]
