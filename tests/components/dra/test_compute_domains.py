"""Compute domains beside a device plugin that keeps the GPUs: `computeDomains`, which the operator doesn't have."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.dra import dra_driver_inputs as dra_driver
from gpustack.components.registry import REGISTRY
from gpustack.model import Body, FindingsError
from tests.components.common import container, env, pod_of
from tests.components.dra.common import policy, rendered

PLUGIN = "nvidia-dra-driver-kubelet-plugin"
GB200 = {"name": "rack", "os": "ubuntu24.04", "gpuProduct": "NVIDIA-GB200"}
H100 = {"name": "old", "os": "ubuntu22.04", "gpuProduct": "NVIDIA-H100-80GB-HBM3"}


def beside(*pools: Any, **sections: Any) -> dict[str, Body]:
    """What is rendered of the DRA driver for node POOLS, where computeDomains has SECTIONS' `domains`."""
    domains = {"enabled": True, **sections.pop("domains", {})}
    return rendered(nodePools=list(pools or (GB200,)), computeDomains=domains, drivers=[], **sections)


def terms(bodies: dict[str, Body]) -> list[dict[str, str]]:
    """Of which labels a node must have one set."""
    required = pod_of(bodies, PLUGIN)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [
        {condition["key"]: condition["values"][0] for condition in term["matchExpressions"]}
        for term in required["nodeSelectorTerms"]
    ]


def test_only_compute_domains() -> None:
    """GPUs stay with the device plugin: one container, its controller, its two classes, and no validator or DCGM."""
    bodies = beside()
    assert [body["name"] for body in pod_of(bodies, PLUGIN)["containers"]] == ["compute-domains"]
    classes = {key.partition("/")[2] for key in bodies if key.startswith("DeviceClass/")}
    assert classes == {"compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"}
    assert [key for key in bodies if key.startswith("DaemonSet/")] == [f"DaemonSet/{PLUGIN}"]
    assert "Deployment/nvidia-dra-driver-controller" in bodies


def test_the_container_stack_stays() -> None:
    """All that a cluster without compute domains has is rendered as well."""
    spec = policy(nodePools=[GB200], computeDomains={"enabled": True}, drivers=[])
    on = {entry.id for entry in REGISTRY if entry.inputs(spec) is not None}
    assert {"device-plugin", "container-toolkit", "operator-validator", "gfd", "dra-driver"} <= on
    assert not {"dra-dcgm", "dra-dcgm-exporter", "dra-validator"} & on


def test_a_gpu_cluster_excludes_the_container_stack() -> None:
    """With `gpuCluster` nothing of the device plugin's stack is rendered (11.1)."""
    spec = policy(nodePools=[GB200], gpuCluster={"dcgm": {"enabled": True}})
    on = {entry.id for entry in REGISTRY if entry.inputs(spec) is not None}
    dra = {"dra-driver", "dra-dcgm", "dra-dcgm-exporter", "dra-validator"}
    assert on == {"namespace", "guards", "nfd", "nvidia-drivers", *dra}


def test_only_nodes_that_can_have_them() -> None:
    """The plugin runs on the nodes of pools whose GPUs are joined across nodes, told by the pool's labels and CPU."""
    pool = {**GB200, "nodeSelector": {"rack": "a"}}
    assert terms(beside(pool, H100)) == [{"kubernetes.io/arch": "arm64", "rack": "a"}]
    assert pod_of(beside(pool, H100), PLUGIN)["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_a_pool_without_a_product_may_have_them() -> None:
    """What is not known is not excluded: its nodes are told by what the pool says of them."""
    unknown = {"name": "new", "os": "ubuntu24.04", "arch": "amd64"}
    assert terms(beside(GB200, unknown)) == [{"kubernetes.io/arch": "arm64"}, {"kubernetes.io/arch": "amd64"}]
    assert "affinity" not in pod_of(beside({"name": "new", "os": "ubuntu24.04"}), PLUGIN)


def test_pools_that_serve_virtual_machines_have_none() -> None:
    """A node without a driver for containers has no use for the plugin."""
    vms = {**GB200, "name": "vms", "workload": "vm-passthrough", "nodeSelector": {"vms": "yes"}}
    bodies = beside({**GB200, "nodeSelector": {"rack": "a"}}, vms, sandboxWorkloads={"enabled": True})
    assert [term["rack"] for term in terms(bodies)] == ["a"]


def test_nowhere_is_refused() -> None:
    """A cluster whose GPUs are all known not to be joined has no use for the switch."""
    with pytest.raises(FindingsError) as refused:
        dra_driver.from_cluster(resolve(policy(nodePools=[H100], computeDomains={"enabled": True}, drivers=[])))
    (finding,) = refused.value.findings
    assert (finding.rule, finding.path) == ("GPU060", "spec.computeDomains.enabled")
    assert "NVIDIA-GB200" in finding.why


def test_no_label_that_a_driver_reload_takes_away() -> None:
    """The kubelet needs the plugin until the last claim is given back, so no deploy label and no clique selects it."""
    pod = pod_of(beside(), PLUGIN)
    assert "gpu.deploy" not in str([pod["nodeSelector"], pod["affinity"]])
    assert "gpu.clique" not in str([pod["nodeSelector"], pod["affinity"]])


@pytest.mark.parametrize(("gfd", "written"), [(True, "false"), (False, "true")])
def test_one_writer_of_the_clique_label(gfd: bool, written: str) -> None:
    """GFD writes nvidia.com/gpu.clique where it runs, else the plugin does."""
    pod = pod_of(beside(gfd={"enabled": gfd}), PLUGIN)
    assert env(container(pod, "compute-domains"))["GPU_CLIQUE_LABEL_ENABLED"] == written


def test_it_waits_for_the_container_stack() -> None:
    """One poll of the operator validator's file instead of a validation of its own, which would rewrite that file."""
    assert [body["name"] for body in pod_of(beside(), PLUGIN)["initContainers"]] == ["toolkit-validation"]


def test_image_of_the_release_or_of_the_policy() -> None:
    """The release's DRA driver, with what the policy replaces; a release without one needs all of it."""
    image = "nvcr.io/nvidia/dra-driver-nvidia-gpu"
    assert container(pod_of(beside(), PLUGIN), "compute-domains")["image"] == f"{image}:v0.5.0"
    newer = beside(domains={"version": "v0.6.0"})
    assert container(pod_of(newer, PLUGIN), "compute-domains")["image"] == f"{image}:v0.6.0"
    whole = beside(domains={"repository": "", "image": "r.example/dra:1", "version": ""})
    assert container(pod_of(whole, PLUGIN), "compute-domains")["image"] == "r.example/dra:1"
    with pytest.raises(FindingsError) as refused:
        beside(release="v26.3.1")
    assert refused.value.findings[0].path == "spec.computeDomains.repository"


def test_pull_secrets_reach_the_daemons() -> None:
    """The controller passes the secrets on to the pods that it makes."""
    body = beside(domains={"imagePullSecrets": ["a", "b"]})["Deployment/nvidia-dra-driver-controller"]
    (program,) = body["spec"]["template"]["spec"]["containers"]
    assert ("CD_DAEMON_IMAGE_PULL_SECRET_NAMES", "a,b") in env(program).items()


def test_daemonsets_of_the_policy_hold() -> None:
    """`daemonsets` steers the plugin like every other DaemonSet of the container stack."""
    sets = {"updateStrategy": "OnDelete", "podSecurityContext": {"fsGroup": 1}}
    body = beside(daemonsets=sets)[f"DaemonSet/{PLUGIN}"]
    assert body["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert body["spec"]["template"]["spec"]["securityContext"] == {"fsGroup": 1}


def test_images_are_pulled_as_those_of_other_components() -> None:
    """Beside a device plugin an empty policy is IfNotPresent, too (operator.md 4)."""
    for domains, policy_of_it in (({"imagePullPolicy": ""}, "IfNotPresent"), ({}, "IfNotPresent")):
        pod = pod_of(beside(domains=domains), PLUGIN)
        assert container(pod, "compute-domains")["imagePullPolicy"] == policy_of_it
