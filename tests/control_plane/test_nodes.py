"""What a real API server makes of the objects by which nodes are made, with Karpenter's own resource definitions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from gpustack.cluster.resolve import resolve
from gpustack.components.nodes.nodes import Nodes
from tests.components.common import chart, spec
from tests.components.test_nodes import L4
from tests.control_plane.api import ApiError, Body
from tests.control_plane.cluster import ControlPlane, wait_for
from tests.control_plane.manifests import established
from tests.control_plane.test_secrets import definition
from tests.readers import modules

ALL: dict[str, Any] = {
    "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    "sharing": {"timeSlicing": {"replicas": 4, "renameByDefault": True}},
    "upgrade": {
        "maxUnavailable": "20%",
        "maxParallel": 2,
        "windows": [{"days": ["sat"], "start": "22:30", "hours": 8}],
    },
    "autoscaling": {
        "karpenter": {
            "nodeClass": "gpu",
            "instanceTypes": ["g6.2xlarge", "g6.4xlarge"],
            "capacityTypes": ["spot", "on-demand"],
            "requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["4"]}],
            "limits": {"cpu": 200, "memory": "1Ti"},
            "consolidate": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "1h30m",
            "expireAfter": "720h",
            "terminationGracePeriod": "24h",
            "weight": 10,
        }
    },
}
TAINTS = [{"key": "example.com/starting", "value": "true", "effect": "NoSchedule"}]


def rendered(name: str, **said: Any) -> list[Body]:
    """The objects of a pool that says all that there is to say, or what is SAID."""
    program = {"image": "registry.example/r:1", "startupTaints": TAINTS}
    pool = {**L4, "nodeSelector": {"example.com/team": "a"}, **said, "name": name}
    where = resolve(spec(cluster={"platform": "eks-al2023"}, reconciler=program, nodePools=[pool]))
    return [each.body for each in Nodes(chart(), f"plane-{name}", where).resources()]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, emulated: str) -> Iterator[ControlPlane]:
    """A control plane that knows Karpenter's kinds."""
    with ControlPlane(tmp_path_factory.mktemp("nodes"), emulated=emulated) as plane:
        for path in (modules.folder(modules.KARPENTER) / "pkg/apis/crds").glob("karpenter.sh_*.yaml"):
            crd = plane.admin.create(yaml.safe_load(path.read_bytes()))["metadata"]["name"]
            wait_for(partial(established, plane.admin, crd), f"{crd} is served")
        yield plane


@pytest.mark.parametrize(("name", "said"), [("plain", {"nodeSelector": L4["nodeSelector"]}), ("all", ALL)])
def test_karpenter_takes_it(plane: ControlPlane, name: str, said: Body) -> None:
    """Its own definitions, with their rules, have nothing against the objects, and what is read back is what was
    rendered: no engine sees a difference.
    """
    made = rendered(name, **said)
    assert [each["kind"] for each in made] == ["NodePool", *(["NodeOverlay"] if name == "all" else [])]
    for body in made:
        stored = plane.admin.apply(body).body
        assert stored["spec"] == body["spec"]


def test_the_definitions_are_asked(plane: ControlPlane) -> None:
    """What Karpenter refuses is refused here: cpu in an overlay, a budget's schedule without its duration."""
    pool, overlay = rendered("wrong", **ALL)
    overlay["spec"]["capacity"]["cpu"] = "1"
    with pytest.raises(ApiError, match="invalid resource restricted"):
        plane.admin.apply(overlay)
    del pool["spec"]["disruption"]["budgets"][-1]["duration"]
    with pytest.raises(ApiError, match="'schedule' must be set with 'duration'"):
        plane.admin.apply(pool)


OTHERS = {
    "NodeReadinessRule": ("nodereadinessrules.readiness.node.x-k8s.io", "readiness.node.x-k8s.io-v1alpha1"),
    "MachineConfig": ("machineconfigs.machineconfiguration.openshift.io", "machineconfiguration.openshift.io-v1"),
}
"""Kinds that no Go module defines: name of the definition, group and version of the schema by hand."""


def test_what_hosts_and_readiness_render(plane: ControlPlane) -> None:
    """Each is valid by a definition made of its schema, is read back as rendered, and no field besides is taken."""
    for kind, (name, of) in OTHERS.items():
        crd = definition(name, f"{kind.lower()}-{of}", kind, of.rpartition("-")[2], "Cluster")
        plane.admin.create(crd)
        wait_for(partial(established, plane.admin, name), f"{name} is served")
    facts = {"platform": "openshift", "containerRuntime": "cri-o", "openshift": {"version": "4.18.22"}}
    said = {"readiness": {"conditions": {"example.com/GpuReady": "True"}, "mode": "continuous"}}
    host = {"iommu": "intel", "hugePages": {"2Mi": 512, "1Gi": 4}, "blockNouveau": True, "machineConfigPool": "gpu"}
    pool = {"name": "p", "os": "rhcos4.18", "gpuProduct": "NVIDIA-L40S", "host": host, **said}
    where = resolve(spec(cluster=facts, driver={"enabled": False}, nodePools=[pool]))
    made = [each.body for each in Nodes(chart(), "others", where).resources()]
    assert {body["kind"] for body in made} == OTHERS.keys()
    for body in made:
        assert plane.admin.apply(body).body["spec"] == body["spec"]
        with pytest.raises(ApiError, match="besides"):
            plane.admin.apply({**body, "spec": {**body["spec"], "besides": 1}})
