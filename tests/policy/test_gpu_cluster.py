"""`gpuCluster`: where its defaults come from, and that a mistake beside it is told once; who owns a CRD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.model import InputError
from gpustack.policy.loading.defaults import assemble
from gpustack.policy.loading.layers import Merged, Part
from gpustack.policy.loading.load import Loaded, load

CLUSTER = {"kubernetesVersion": "1.34.2"}


def merged(*parts: dict[str, Any], release: str = "v26.7.0") -> Merged:
    """What layers and a policy, the last of PARTS, become."""
    first, *rest = parts
    data = [{"release": release, "cluster": CLUSTER, **first}, *rest]
    found, findings = assemble([Part("layer", f"layer-{index}", part) for index, part in enumerate(data)])
    assert findings == []
    return found


def loaded(tmp_path: Path, **spec: Any) -> Loaded:
    """The policy with SPEC, from a file."""
    policy = {
        "apiVersion": "gpustack.dev/v1alpha1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "a"},
        "spec": {"release": "v26.7.0", "cluster": CLUSTER, **spec},
    }
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    return load(path, root=tmp_path)


def test_the_charts_defaults() -> None:
    """`gpuCluster: {}` is what the chart writes for an empty values file (case 56)."""
    found = merged({"gpuCluster": {}}).spec["gpuCluster"]
    image = {"repository": "nvcr.io/nvidia", "image": "dra-driver-nvidia-gpu", "version": "v0.5.0"}
    assert found["draDriver"] == {"computeDomains": {"enabled": True}, **image, "imagePullPolicy": "IfNotPresent"}
    assert found["dcgm"]["enabled"] is False
    assert found["dcgm"]["version"] == "4.6.0-1-ubuntu24.04"
    assert found["dcgmExporter"]["service"] == {"type": "ClusterIP", "internalTrafficPolicy": "Cluster"}
    assert found["dcgmExporter"]["serviceMonitor"]["interval"] == "15s"
    assert found["hostPaths"] == {"kubeletRootDir": "/var/lib/kubelet", "driverInstallDir": "/run/nvidia/driver"}
    assert found["daemonsets"]["priorityClassName"] == "system-node-critical"


def test_nobody_gets_one_who_has_none() -> None:
    """Its presence chooses DRA, so defaults never bring it."""
    assert "gpuCluster" not in merged({}).spec
    assert "gpuCluster" not in merged({"gpuCluster": None}).spec


def test_a_release_without_it_has_no_driver_for_it() -> None:
    """Older releases have no DRA driver; the sections that are shared are taken over all the same."""
    assert "draDriver" not in merged({"gpuCluster": {}}, release="v26.3.3").spec["gpuCluster"]


def test_sections_beside_it_are_taken_over_field_by_field() -> None:
    """What a layer says for all clusters holds for those with DRA; what gpuCluster says itself wins."""
    layer = {
        "dcgmExporter": {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}], "hostPID": True},
        "daemonsets": {"tolerations": [{"key": "team", "operator": "Exists"}]},
        "hostPaths": {"rootFS": "/host", "kubeletRootDir": "/k"},
    }
    own = {"gpuCluster": {"dcgmExporter": {"env": [{"name": "B", "value": "2"}]}, "daemonsets": {"tolerations": []}}}
    found = merged(layer, own)
    cluster = found.spec["gpuCluster"]
    assert cluster["dcgmExporter"]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert cluster["dcgmExporter"]["hostPID"] is True
    assert cluster["daemonsets"]["tolerations"] == []
    assert cluster["hostPaths"]["kubeletRootDir"] == "/k"
    assert "rootFS" not in cluster["hostPaths"]
    origin = found.origin(("gpuCluster", "dcgmExporter", "hostPID"))
    assert origin is not None
    assert (origin.kind, origin.file) == ("derived", "derived from spec.dcgmExporter")


def test_platforms_hold_for_it_too() -> None:
    """What a platform says about the node's paths reaches the DRA components."""
    found = merged({"cluster": {**CLUSTER, "platform": "gke-cos"}, "gpuCluster": {}})
    assert found.spec["gpuCluster"]["hostPaths"]["driverInstallDir"] == found.spec["hostPaths"]["driverInstallDir"]
    assert found.spec["hostPaths"]["driverInstallDir"] != "/run/nvidia/driver"


def test_a_mistake_is_told_where_it_was_made_and_once(tmp_path: Path) -> None:
    """A wrong value beside gpuCluster is no second mistake in what is taken over from there."""
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, gpuCluster={}, dcgmExporter={"hostPID": "yes"})
    assert [finding.path for finding in refused.value.findings] == ["spec.dcgmExporter.hostPID"]
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, gpuCluster={"dcgmExporter": {"hostPID": "yes"}})
    assert [finding.path for finding in refused.value.findings] == ["spec.gpuCluster.dcgmExporter.hostPID"]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ({"draDriver": {"featureGates": {"A,B": True}}}, 'draDriver.featureGates["A,B"]'),
        (
            {"draDriver": {"gpus": {"kubeletPlugin": {"healthcheck": {"port": 0}}}}},
            "draDriver.gpus.kubeletPlugin.healthcheck.port",
        ),
        ({"draDriver": {"computeDomain": {}}}, "draDriver.computeDomain"),
    ],
)
def test_what_would_break_the_driver_is_refused(tmp_path: Path, written: dict[str, Any], path: str) -> None:
    """Gates are names, ports are ports (the operator's API: 1 to 65535), and keys are known."""
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, gpuCluster=written)
    assert [finding.path for finding in refused.value.findings] == [f"spec.gpuCluster.{path}"]


def test_a_crd_that_nobody_renders_is_refused(tmp_path: Path) -> None:
    """An owner for a CRD that gpustack doesn't know is a typing error: the nearest name is the remedy."""
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, cluster={**CLUSTER, "crds": {"computedomain.resource.nvidia.com": "expect"}})
    (finding,) = refused.value.findings
    assert finding.location is not None
    assert finding.location.line is not None
    assert "computedomains.resource.nvidia.com" in finding.remedy
    known = {"computedomains.resource.nvidia.com": "expect", "nodefeatures.nfd.k8s-sigs.io": "own"}
    assert loaded(tmp_path, cluster={**CLUSTER, "crds": known}).spec.cluster.crds == known
