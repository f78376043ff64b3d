"""What `gpustack preflight` finds of nodes before the stack is there; it is quiet where all is well."""

from __future__ import annotations

import copy
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.catalog import oses
from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.compiler.judge import due
from gpustack.live.preflight import preflight
from gpustack.live.state import of_files
from gpustack.live.verify import texts as said
from gpustack.model import Body, Finding
from gpustack.policy.loading.load import load, policy_files
from tests.components.common import spec
from tests.components.test_compat import body as copied
from tests.hardware.measured import FOLDER
from tests.project import ROOT, Project, cache, project

__all__ = ["cache", "project"]


def now(finding: Finding) -> bool:
    """What counts on the day of all runs."""
    return due(finding, datetime.date(2026, 11, 1))


POOL: dict[str, Any] = {
    "name": "training",
    "os": "ubuntu22.04",
    "gpuProduct": "NVIDIA-H100-80GB-HBM3",
    "gpusPerNode": 8,
    "nodeSelector": {"pool": "t"},
}
WELL = """Module                  Size  Used by
nf_tables             303104  0
SecureBoot disabled
Package: linux-headers-5.15.0-130-generic
Id=nvidia-fabricmanager.service
ActiveState=active
/sys/kernel/iommu_groups/0
"""
"""What the commands of PRE309 (lsmod, mokutil, apt-cache, systemctl, ls) print on a node that is ready."""


def node(name: str, **info: str) -> Body:
    """A node of the pool, as a kubelet registers it, with INFO over its nodeInfo."""
    known = {
        "osImage": "Ubuntu 22.04.5 LTS",
        "kernelVersion": "5.15.0-130-generic",
        "architecture": "amd64",
        "containerRuntimeVersion": "containerd://1.7.27",
        **info,
    }
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": known}
    metadata = {"name": name, "labels": {"pool": "t"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def told(
    bodies: list[Body], hosts: dict[str, str] | None = None, smi: dict[str, str] | None = None, **sections: Any
) -> list[Finding]:
    """What is found in a cluster of BODIES."""
    sections = {"nodePools": [POOL], **sections}
    expected = Expected.of(resolve(spec(**sections)), [other("d", "a")])
    return preflight(expected, of_files(bodies), {**({"a": WELL} if hosts is None else hosts), **(smi or {})}, now)


def test_a_sound_node_is_quiet() -> None:
    """Nothing is found on a node that is as the policy says and of which everything is told."""
    assert told([node("a")]) == []


def test_what_nobody_looked_at_is_listed() -> None:
    """Without a file from the host nothing is said of nouveau, Secure Boot and packages, but that, with the commands;
    node feature discovery tells of nouveau. A precompiled driver asks for no packages and is signed."""
    (note,) = told([node("a")], {})
    assert (note.rule, note.severity) == ("PRE309", "note")
    assert note.what == "a: not looked at: nouveau, Secure Boot, the packages of its kernel"
    assert "mokutil --sb-state" in note.remedy
    (note,) = told([node("a"), feature("ext4")], {})
    assert "nouveau" not in note.what
    assert [(each.rule, each.severity) for each in told([node("a"), feature("nouveau")], {})] == [
        ("PRE301", "error"),
        ("PRE309", "note"),
    ]
    precompiled: dict[str, Any] = {
        "driver": {"usePrecompiled": True, "version": "580"},
        "nodePools": [{**POOL, "kernel": KERNEL}],
    }
    (note,) = told([node("a")], {}, **precompiled)
    assert note.what == "a: not looked at: nouveau"


KERNEL = "5.15.0-130-generic"


def feature(module: str) -> Body:
    """What node feature discovery's worker writes of the kernel's modules (NodeFeature, nfd.k8s-sigs.io/v1alpha1)."""
    metadata = {"name": "a", "namespace": "nfd", "labels": {"nfd.node.kubernetes.io/node-name": "a"}}
    flags: Body = {"kernel.loadedmodule": {"elements": {module: {}, "nf_tables": {}}}}
    head = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": metadata}
    return {**head, "spec": {"features": {"flags": flags}}}


def other(name: str, image: str, **spec: Any) -> Body:
    """A DaemonSet of somebody else."""
    pod = {"containers": [{"name": "c", "image": image}], **spec}
    metadata = {"name": name, "namespace": "kube-system"}
    head = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}
    return {**head, "spec": {"template": {"spec": pod}}}


PLUGIN = other("nvidia-device-plugin-daemonset", "nvcr.io/nvidia/k8s-device-plugin:v0.17.0")
OPERATOR: Body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "gpu-operator", "namespace": "x"}}
RESTRICTED: Body = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "gpu-operator", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
}
OF_NODES: dict[str, tuple[Body, str, str, str]] = {
    "another system": (
        node("a", osImage="Ubuntu 24.04.1 LTS"),
        "PRE201", "a: os is ubuntu24.04; the policy says ubuntu22.04", "spec.nodePools[0].os",
    ),
    "another runtime": (
        node("a", containerRuntimeVersion="cri-o://1.33.1"),
        "PRE201", "containerRuntime is cri-o://1.33.1; the policy says containerd", "spec.cluster.containerRuntime",
    ),
    "no image for the system": (
        node("a", osImage="Debian GNU/Linux 12 (bookworm)"),
        "GPU435", "a: no published driver image", "spec.nodePools[0].os",
    ),
    "an old runtime": (
        node("a", containerRuntimeVersion="containerd://1.5.1"),
        "GPU403", "a: ", "",
    ),
    "a taint": (
        {**node("a"), "spec": {"taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]}},
        "PRE203", "a: its taints keep out d", "spec.daemonsets.tolerations",
    ),
    "not ready": ({**node("a"), "status": {"nodeInfo": {}}}, "LIV204", "a: not Ready", ""),
    "no node": (
        {**node("a"), "metadata": {"name": "b", "labels": {}}},
        "PRE202", "no node is known to be of the pool training", "spec.nodePools[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NODES)
def test_a_node_is_held_against_the_policy(name: str) -> None:
    """By what it says of itself: fields that differ, and the policy's own rules with what the node has in its place."""
    body, rule, words, path = OF_NODES[name]
    found = told([body])
    assert any(each.rule.startswith(rule) and words in each.what and path in each.path for each in found), found


HOSTS = {
    "PRE301": ("nf_tables  ", "nouveau              1785856  0\nnf_tables  "),
    "PRE302": ("SecureBoot disabled", "SecureBoot enabled"),
    "PRE303": ("Package: linux-headers-5.15.0-130-generic", "N: Unable to locate package\nE: No packages found"),
    "PRE304": ("ActiveState=active", "ActiveState=inactive"),
    "PRE305": (
        "/sys/kernel/iommu_groups/0",
        "ls: cannot access '/sys/kernel/iommu_groups/*': No such file or directory",
    ),
}
SECTIONS: dict[str, dict[str, Any]] = {
    "PRE304": {"driver": {"enabled": False, "hostVersion": "580.126.20"}},
    "PRE305": {
        "sandboxWorkloads": {"enabled": True},
        "nodePools": [{**POOL, "workload": "vm-passthrough"}],
    },
}


@pytest.mark.parametrize("rule", HOSTS)
def test_what_a_host_tells(rule: str) -> None:
    """Each sign in a file named after the node, and only where it matters."""
    sections = SECTIONS.get(rule, {})
    assert not {each.rule for each in told([node("a")], **sections)} & {rule, "PRE309"}
    (found,) = (each for each in told([node("a")], {"a": WELL.replace(*HOSTS[rule])}, **sections) if each.rule == rule)
    assert found.what.startswith("a: ")
    (stray,) = told([node("a")], {"a": WELL, "z": ""})
    assert (stray.rule, stray.what) == ("PRE310", "no node is called z, and no pool has its GPUs")


AROUND: dict[str, tuple[Body, str, str]] = {
    "operator": (OPERATOR, "PRE101", "Deployment x/gpu-operator is there"),
    "its object": (
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}},
        "PRE101", "ClusterPolicy cluster-policy is there",
    ),
    "device plugin": (PLUGIN, "PRE102", "does what devicePlugin of the policy will do"),
    "NFD": (other("nfd-worker", "registry.k8s.io/nfd/node-feature-discovery:v0.17.3"), "PRE102", "what nfd of the"),
    "driver": (other("nvidia-driver-installer", "cos-nvidia-installer:fixed"), "PRE102", "what driver of the policy"),
    "Pod Security": (RESTRICTED, "PRE103", "pod-security.kubernetes.io/enforce=baseline"),
}  # fmt: skip


@pytest.mark.parametrize("name", AROUND)
def test_what_else_is_in_the_cluster(name: str) -> None:
    """Programs that would contradict the stack, and a namespace that would refuse it."""
    body, rule, words = AROUND[name]
    (found,) = told([node("a"), body])
    assert (found.rule, words in found.what) == (rule, True)


def test_what_is_no_contradiction() -> None:
    """A DaemonSet that runs on none of the nodes, one whose work the policy leaves to it, the operator's own operands,
    a namespace that the render itself opens, and the copy of a ClusterPolicy that gpustack renders."""
    assert told([node("a"), copied()]) == []
    elsewhere = other("x", "k8s-device-plugin:1", nodeSelector={"pool": "other"})
    assert told([node("a"), elsewhere]) == []
    assert told([node("a"), PLUGIN], devicePlugin={"enabled": False}) == []
    theirs = copy.deepcopy(PLUGIN)
    theirs["metadata"]["namespace"] = "x"
    assert [each.rule for each in told([node("a"), theirs, OPERATOR])] == ["PRE101"]
    opened = copy.deepcopy(RESTRICTED)
    opened["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    expected = Expected.of(resolve(spec(nodePools=[POOL])), [opened])
    assert preflight(expected, of_files([node("a"), RESTRICTED]), {"a": WELL}, now) == []


def test_pools_that_only_their_systems_tell_apart() -> None:
    """Before node feature discovery has labelled nodes: by the system that the kubelet reports."""
    pools = [{**POOL, "os": "ubuntu24.04", "name": "new"}, POOL]
    assert told([node("a"), node("b", osImage="Ubuntu 24.04.1 LTS")], {"a": WELL, "b": WELL}, nodePools=pools) == []


def smi(name: str) -> str:
    """A recorded output of nvidia-smi on a real board."""
    return (FOLDER / f"{name}-nvidia-smi.xml").read_text(encoding="utf-8")


H200 = {**POOL, "gpuProduct": "NVIDIA-H200", "gpusPerNode": 1, "name": "big", "nodeSelector": {"pool": "b"}}
H100 = {**POOL, "gpusPerNode": 1}
HOST: dict[str, Any] = {"enabled": False, "hostVersion": "580.159.04"}


def of_smi(text: str, pool: dict[str, Any], **driver: Any) -> set[tuple[str, str]]:
    """What an output says against POOL whose nodes bring their driver, less what nobody looked at."""
    bodies = [node("a")]
    bodies[0]["metadata"]["labels"]["pool"] = pool["nodeSelector"]["pool"]
    found = told(bodies, {"a": f"{WELL}{text}"}, nodePools=[pool], driver=driver or HOST)
    return {(each.rule, each.path) for each in found}


@pytest.mark.parametrize(("name", "pool"), [("h100", H100), ("h200", H200), ("h200-x2", {**H200, "gpusPerNode": 2})])
def test_recorded_boards_are_what_the_catalogue_says(name: str, pool: dict[str, Any]) -> None:
    """Product, number, memory, MIG and driver of real boards are those of a policy that says so, cut or not."""
    assert of_smi(smi(name), pool) == set()
    assert (
        of_smi(smi(name), {**pool, "sharing": {"mig": {"layout": {f"1g.{18 if 'h200' in name else 10}gb": 7}}}})
        == set()
    )


def test_a_board_that_is_otherwise() -> None:
    """Each difference of a recorded output and the policy, at the policy's line."""
    assert of_smi(smi("h100"), POOL) == {("PRE201", "spec.nodePools[0].gpusPerNode")}
    assert ("PRE201", "spec.nodePools[0].gpuProduct") in of_smi(smi("h200"), H100)
    assert of_smi(smi("h100"), H100, enabled=False, hostVersion="570") == {("PRE201", "spec.driver.hostVersion")}
    assert of_smi(smi("h100"), H100, enabled=False) == {("PRE406", "spec.nodePools[0]")}
    assert of_smi(smi("h100"), H100, enabled=True) == {("PRE405", "spec.driver")}
    less = smi("h100").replace("81559 MiB", "40960 MiB")
    assert of_smi(less, H100) == {("PRE403", "spec.nodePools[0].gpuProduct")}
    on = smi("h100").replace("<current_mig>Disabled", "<current_mig>Enabled")
    assert of_smi(on, H100) == {("PRE404", "spec.nodePools[0]")}
    waits = smi("h100").replace("<fabric>\n\t\t\t<state>N/A", "<fabric>\n\t\t\t<state>In Progress")
    assert of_smi(waits, H100) == {("PRE304", "spec.nodePools[0]")}
    cut = {**H100, "sharing": {"mig": {"layout": {"1g.10gb": 7}}}}
    assert ("PRE404", "spec.nodePools[0]") in of_smi(
        smi("h100").replace("<current_mig>Disabled", "<current_mig>N/A"), cut
    )
    found = told([node("a")], {"a": WELL}, {"x": smi("h200")}, nodePools=[H100], driver=HOST)
    assert ("PRE310", "no node is called x, and no pool has its GPUs") in {(each.rule, each.what) for each in found}


def test_an_output_without_a_node() -> None:
    """It is of the pools with its product."""
    found = told([node("a")], {"a": WELL}, {"x": smi("h100")}, nodePools=[{**H100, "gpusPerNode": 4}], driver=HOST)
    assert ("PRE201", "x: gpusPerNode is 1; the policy says 4") in {(each.rule, each.what) for each in found}
    assert "PRE310" not in {each.rule for each in found}


def test_rules_see_the_driver_that_is_there() -> None:
    """Where the policy doesn't say it: workloads that need CUDA 13.2 get less of R580 (NVIDIA's CUDA release notes)."""
    found = told(
        [node("a")], {"a": WELL}, {"x": smi("h100")}, nodePools=[{**H100, "cuda": "13.2"}], driver={"enabled": False}
    )
    assert any(each.rule == "GPU431" and each.what.startswith("x: ") for each in found)


@pytest.mark.parametrize(
    ("image", "system"),
    [
        ("Ubuntu 22.04.5 LTS", "ubuntu22.04"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "rhel9.4"),
        ("Red Hat Enterprise Linux CoreOS 418.94.202501221327-0", ""),
        ("SUSE Linux Enterprise Server 15 SP6", "sles15.6"),
        ("Amazon Linux 2023.6.20250303", "amzn2023.6"),
        ("Debian GNU/Linux 12 (bookworm)", "debian12"),
        ("Container-Optimized OS from Google", ""),
        ("Windows Server 2022", ""),
    ],
)
def test_a_system_by_its_name(image: str, system: str) -> None:
    """As kubelets report it (PRETTY_NAME of os-release); what isn't sure is not known."""
    assert oses.of_image(image) == system


EXAMPLES = sorted(path.stem for path in policy_files(ROOT / "policies", "policies"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_quiet_on_nodes_that_are_as_they_say(name: str) -> None:
    """No error and no warning on the nodes that an example cluster describes, as kubelets and NFD would report them."""
    cluster = resolve(load(ROOT / "policies" / f"{name}.yaml", root=ROOT).spec)
    rendered = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "dist" / name).rglob("DaemonSet-*.yaml")]
    bodies, system = [], "feature.node.kubernetes.io/system-os_release."
    for pool in cluster.pools:
        facts = {"kernelVersion": pool.said.kernel, "architecture": pool.arch}
        versions = {"containerd": "containerd://2.1.4", "cri-o": "cri-o://1.33.1", "docker": "docker://27.0.1"}
        body = node(pool.name, containerRuntimeVersion=versions[pool.engine], osImage="")
        body["status"]["nodeInfo"] |= {key: value for key, value in facts.items() if value}
        named = oses.os_id(pool.said.os) if pool.said.os else ("", "")
        body["metadata"]["labels"] = {**pool.selection, f"{system}ID": named[0], f"{system}VERSION_ID": named[1]}
        body["metadata"]["labels"]["feature.node.kubernetes.io/pci-10de.present"] = "true"
        body["spec"]["taints"] = [each.model_dump(exclude_none=True) for each in pool.said.taints]
        count = pool.said.count.min if pool.said.count else 1
        bodies += [{**body, "metadata": {**body["metadata"], "name": f"{pool.name}-{n}"}} for n in range(count or 1)]
    found = preflight(Expected.of(cluster, rendered), of_files(bodies), {}, now)
    assert [each for each in found if each.severity != "note"] == []


def test_every_text_is_tested_and_explained() -> None:
    """Each id is told by a test, and has its line on the page."""
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    texts = said("preflight")["texts"]
    assert all(f"| {rule} | {each['severity']} | {each['title']} |" in page for rule, each in texts.items())
    tests = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{rule}"' in tests for rule in texts)
    assert {each["id"] for each in said("preflight")["hosts"].values()} <= texts.keys()


def test_the_verb(project: Project) -> None:
    """A policy, nodes, a host's file and an output: findings with their lines, exit 2; what can't be read is told."""
    project.policy("c", nodePools=[POOL], driver={"enabled": True})
    project.write("dump.yaml", yaml.safe_dump({"kind": "List", "items": [node("gpu-1")]}))
    project.write("gpu-1.txt", WELL.replace("disabled", "enabled"))
    project.write("gpu-1.xml", smi("h100"))
    words = ("preflight", "c", "--from", "dump.yaml", "--host", "gpu-1.txt", "--nvidia-smi", "gpu-1.xml")
    ran = project.run(*words)
    assert ran.code == 2
    assert "error PRE302: gpu-1: SecureBoot enabled" in ran.out
    assert "policies/c.yaml:" in ran.out
    rules = {each["rule"] for each in project.run(*words, "--format", "json").json["findings"]}
    assert {"PRE201", "PRE302", "PRE405"} <= rules
    assert project.run("preflight", "c", "--from", "dump.yaml", "--host", "none.txt").code == 4
