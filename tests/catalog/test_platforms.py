"""Platforms: each preset as its vendor and NVIDIA document it, and the conditions that choose among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpustack.catalog import fields, platforms, releases
from gpustack.catalog.platforms import Containerd, UnknownPlatform, defaults, platform

Tree = dict[str, Any]

OFF: Tree = {"enabled": False}
ON: Tree = {"enabled": True}


def env(**variables: str) -> list[dict[str, str]]:
    """Environment as the spec writes it."""
    return [{"name": name, "value": value} for name, value in variables.items()]


HOST_DRIVER: Tree = {"driver": OFF, "toolkit": OFF}
GOOGLE_DIR = "/home/kubernetes/bin/nvidia"
K3S_SOCKET = "/run/k3s/containerd/containerd.sock"
MICROK8S = "/var/snap/microk8s"

EXPECTED: dict[str, Tree] = {
    # what each platform changes with v26.7.0 on Kubernetes 1.34
    "generic": {},
    "kubeadm-bare-metal": {},
    "kubeadm-bare-metal-preinstalled-driver": {"driver": OFF},
    "kubeadm-bare-metal-preinstalled-driver-and-toolkit": HOST_DRIVER,
    "kubeadm-bare-metal-preinstalled-toolkit": {"toolkit": OFF},
    "eks-al2023": HOST_DRIVER,
    "eks-bottlerocket": HOST_DRIVER | {"devicePlugin": OFF, "migManager": OFF},
    "eks-ubuntu": {},
    "gke-cos": {
        "driver": OFF,
        "hostPaths": {"driverInstallDir": GOOGLE_DIR},
        "toolkit": {"installDir": GOOGLE_DIR, "env": env(RUNTIME_CONFIG_SOURCE="file")},
        "cdi": ON,
        "gdrcopy": OFF,
        "migManager": {"env": env(WITH_REBOOT="true")},
    },
    "gke-ubuntu": {},
    "gke-ubuntu-google-installer": {
        "driver": OFF,
        "hostPaths": {"driverInstallDir": GOOGLE_DIR},
        "toolkit": {"installDir": GOOGLE_DIR},
    },
    "aks-ubuntu": {},
    "aks-ubuntu-managed-driver": HOST_DRIVER | {"operator": {"runtimeClass": "nvidia-container-runtime"}},
    "aks-azure-linux": HOST_DRIVER | {"operator": {"runtimeClass": "nvidia-container-runtime"}},
    "oke": HOST_DRIVER | {"devicePlugin": OFF},
    "oke-operator-managed-plugin": HOST_DRIVER | {"devicePlugin": ON},
    "oke-operator-managed-driver": {
        "driver": ON,
        "toolkit": ON,
        "devicePlugin": ON | {"env": env(MOFED_ENABLED="false")},
    },
    "openshift": {
        "cluster": {"containerRuntime": "cri-o", "monitoring": True, "namespace": "nvidia-gpu-operator"},
        "nfd": {"enabled": False},
        "operator": {"use_ocp_driver_toolkit": True},
    },
    "k3s": {"toolkit": {"env": env(CONTAINERD_SOCKET=K3S_SOCKET)}},
    "rke2": {"toolkit": {"env": env(CONTAINERD_SOCKET=K3S_SOCKET)}},
    "rke2-sles16": {
        "toolkit": {"env": env(CONTAINERD_SOCKET=K3S_SOCKET)},
        "driver": {"repository": "registry.suse.com/third-party/nvidia", "usePrecompiled": True, "version": "595"},
    },
    "microk8s": {
        "toolkit": {
            "env": env(
                CONTAINERD_CONFIG=f"{MICROK8S}/current/args/containerd-template.toml",
                CONTAINERD_SOCKET=f"{MICROK8S}/common/run/containerd.sock",
                RUNTIME_CONFIG_SOURCE=f"file={MICROK8S}/current/args/containerd.toml",
            )
        }
    },
    "talos": HOST_DRIVER | {"hostPaths": {"driverInstallDir": "/usr/local"}},
    "flatcar": HOST_DRIVER,
    "dgx-os-bcm": HOST_DRIVER,
    "vmware-vks-tkg": {},
    "k0s": {
        "toolkit": {
            "env": env(
                CONTAINERD_CONFIG="/etc/k0s/containerd.toml",
                CONTAINERD_SOCKET="/run/k0s/containerd.sock",
                RUNTIME_DROP_IN_CONFIG="/etc/k0s/containerd.d/99-nvidia.toml",
                RUNTIME_CONFIG_SOURCE="file=/etc/k0s/containerd.toml",
            )
        }
    },
    "kind-and-nvkind": HOST_DRIVER,
    "kubeone": {},
}


OWN = {"cluster.containerRuntime", "cluster.monitoring", "cluster.namespace", "nfd.enabled"}
"""Fields of presets that the operator's API lacks."""


def paths(tree: Any, path: str = "") -> Iterator[str]:
    """The fields that a spec tree sets, as the field list writes them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, list):
        for value in tree:
            yield from paths(value, f"{path}[]")
    else:
        yield path


def test_no_platform_is_lost() -> None:
    """Each platform with a written expectation is there."""
    assert set(EXPECTED) <= set(platforms.names())


@pytest.mark.parametrize("name", EXPECTED)
def test_platform_changes_what_is_documented(name: str) -> None:
    """The preset of each platform is what its sources say, and nothing else."""
    assert defaults(name, "v26.7.0", "1.34") == EXPECTED[name]


@pytest.mark.parametrize("name", platforms.names())
@pytest.mark.parametrize("release", ["v25.3.4", "v25.10.0", "v26.7.0"])
@pytest.mark.parametrize("kubernetes", ["1.29", "1.37"])
def test_presets_set_known_fields_only(name: str, release: str, kubernetes: str) -> None:
    """A misspelt field in a preset would be refused in every policy of the platform."""
    for path in paths(defaults(name, release, kubernetes)):
        assert path in OWN or path in fields.fields("ClusterPolicy"), path


@pytest.mark.parametrize("name", EXPECTED)
def test_presets_change_something(name: str) -> None:
    """A preset that states a default of the release would only be noise, but for what a source asks for by name."""
    release = releases.release("v26.7.0").defaults
    same = {
        f"{section}.{key}"
        for section, values in defaults(name, "v26.7.0", "1.34").items()
        for key, value in values.items()
        if release.get(section, {}).get(key) == value
    }
    allowed = {"gke-cos": {"cdi.enabled", "gdrcopy.enabled"}}
    allowed["oke-operator-managed-plugin"] = {"devicePlugin.enabled"}  # undoes its base
    allowed["oke-operator-managed-driver"] = {"driver.enabled", "toolkit.enabled", "devicePlugin.enabled"}
    assert same == allowed.get(name, set())


@pytest.mark.parametrize(("kubernetes", "file"), [("1.31", False), ("1.32", False), ("1.33", True), ("1.34.2", True)])
def test_gke_reads_the_runtime_config_from_the_file_from_1_33_on(kubernetes: str, file: bool) -> None:
    """GKE needs RUNTIME_CONFIG_SOURCE=file from Kubernetes 1.33 on, and must not have it before."""
    found = defaults("gke-cos", "v26.3.1", kubernetes)["toolkit"].get("env", [])
    assert found == (env(RUNTIME_CONFIG_SOURCE="file") if file else [])


@pytest.mark.parametrize("name", ["microk8s", "k0s"])
def test_config_source_is_newer_than_v25_3(name: str) -> None:
    """The toolkit of releases before v25.10 does not know RUNTIME_CONFIG_SOURCE and drop-in files."""
    old = defaults(name, "v25.3.4", "1.31")["toolkit"]["env"]
    assert [variable["name"] for variable in old] == ["CONTAINERD_CONFIG", "CONTAINERD_SOCKET"]


def test_k3s_and_rke2_by_release_line() -> None:
    """From v25.10 on only the socket is told; before, k3s needed the template and RKE2 volume mounts."""
    assert defaults("k3s", "v25.3.4", "1.31") == {
        "toolkit": {
            "env": env(
                CONTAINERD_CONFIG="/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl",
                CONTAINERD_SOCKET=K3S_SOCKET,
                CONTAINERD_RUNTIME_CLASS="nvidia",
                CONTAINERD_SET_AS_DEFAULT="true",
            )
        }
    }
    assert defaults("rke2", "v25.3.0", "1.31")["devicePlugin"] == {"env": env(DEVICE_LIST_STRATEGY="volume-mounts")}
    for name in ("k3s", "rke2"):
        assert defaults(name, "v25.10.0", "1.34") == {"toolkit": {"env": env(CONTAINERD_SOCKET=K3S_SOCKET)}}


def test_gke_needs_a_quota() -> None:
    """GKE admits system-critical pods only with a ResourceQuota for their classes; no other platform asks for one."""
    quota = {"pods": 100, "priority_classes": ["system-node-critical", "system-cluster-critical"]}
    assert {name for name in platforms.names() if platform(name).quota} == {
        "gke-cos", "gke-ubuntu", "gke-ubuntu-google-installer",
    }  # fmt: skip
    assert platform("gke-cos").quota == quota
    assert platform("gke-ubuntu-google-installer").quota == quota


def test_pod_security_labels_are_required_where_baseline_is_the_default() -> None:
    """Talos and vSphere refuse privileged pods in a namespace without labels."""
    assert {name for name in platforms.names() if platform(name).psa_required} == {"talos", "vmware-vks-tkg"}


def test_node_pools_of_the_clouds() -> None:
    """What a node pool has to be created with, so that the cloud installs no second driver or device plugin."""
    for name in ("gke-cos", "gke-ubuntu", "gke-ubuntu-google-installer"):
        assert platform(name).node_pool_labels == {"gke-no-default-nvidia-gpu-device-plugin": "true"}
        assert platform(name).node_pool_options == ("gpu-driver-version=disabled",)
    assert platform("aks-ubuntu").node_pool_options == ("--gpu-driver none",)
    assert platform("aks-ubuntu-managed-driver").node_pool_options == ()


def test_host_paths_of_containerd() -> None:
    """Distributions with a containerd of their own, and where it listens and is configured."""
    agent = "/var/lib/rancher/{}/agent/etc/containerd/config.toml"
    assert platform("k3s").containerd == Containerd(agent.format("k3s"), K3S_SOCKET, None)
    assert platform("rke2").containerd == Containerd(agent.format("rke2"), K3S_SOCKET, None)
    assert platform("rke2-sles16").containerd == platform("rke2").containerd
    assert platform("k0s").containerd == Containerd(
        "/etc/k0s/containerd.toml", "/run/k0s/containerd.sock", "/etc/k0s/containerd.d/99-nvidia.toml"
    )
    assert platform("generic").containerd is None


def test_uncertain_kubelet_roots_are_not_set() -> None:
    """Where sources disagree about the kubelet's root, the preset leaves the field alone and says so."""
    other = {name for name in platforms.names() if platform(name).kubelet_root != "/var/lib/kubelet"}
    assert other == {"k0s", "microk8s"}
    for name in other:
        assert not platform(name).kubelet_root_certain
        assert any("kubeletRootDir" in text for text in platform(name).uncertain)


def test_facts_about_single_platforms() -> None:
    """Namespace and runtime of OpenShift, the first release for Talos, kernel flavors of the clouds."""
    assert (platform("openshift").namespace, platform("openshift").container_runtime) == (
        "nvidia-gpu-operator",
        "cri-o",
    )
    assert platform("talos").operator_min == "v26.3.1"
    assert [platform(name).kernel_flavor for name in ("eks-ubuntu", "aks-ubuntu", "oke", "k3s")] == [
        "aws", "azure", "oracle", None,
    ]  # fmt: skip


def test_what_nodes_are() -> None:
    """Those of the clouds are virtual machines, whose GPUs can't be reset for MIG; variants have it of their base."""
    assert {name for name in EXPECTED if platform(name).machines == "virtual"} == {
        name for name in EXPECTED if name.startswith(("aks", "eks", "gke", "oke", "vmware"))
    }
    assert {name for name in EXPECTED if platform(name).machines == "metal"} == {
        name for name in EXPECTED if name.startswith(("kubeadm-bare-metal", "dgx"))
    }


def test_what_google_does_by_itself() -> None:
    """GKE runs a device plugin of its own, and turns ExtendedResourceToleration on, whatever the node image."""
    gke = {name for name in EXPECTED if name.startswith("gke")}
    assert {name for name in EXPECTED if platform(name).own_plugin} == gke
    assert {name for name in EXPECTED if platform(name).tolerates_by_name} == gke


@pytest.mark.parametrize("name", platforms.names())
def test_every_platform_explains_itself(name: str) -> None:
    """A title for people, a confidence from the scale, and sentences in the lists."""
    found = platform(name)
    assert found.title
    assert found.confidence in {"documented", "issue", "inferred"}
    assert found.operator_min in {None, *releases.names()}
    for text in (*found.caveats, *found.host_needs, *found.uncertain):
        assert isinstance(text, str)
        assert text.endswith(".")


def test_a_variant_adds_to_its_base() -> None:
    """A variant repeats nothing: it keeps what its base warns of and adds what it needs itself."""
    base, variant = platform("oke"), platform("oke-operator-managed-driver")
    assert variant.caveats == base.caveats
    assert len(variant.host_needs) == 2
    assert variant.kernel_flavor == base.kernel_flavor
    assert (base.base, variant.base) == (None, "oke-operator-managed-plugin")


def test_presets_are_fresh_copies() -> None:
    """A caller may change what it gets."""
    defaults("k3s", "v26.7.0", "1.34")["toolkit"]["env"].clear()
    assert defaults("k3s", "v26.7.0", "1.34") == EXPECTED["k3s"]


def test_unknown_platform_names_the_nearest() -> None:
    """The cloud's name alone leads to its variants."""
    for written, expected in {
        "eks": "eks-al2023",
        "EKS AL2023": "eks-al2023",
        "gke": "gke-cos",
        "bare-metal": "kubeadm-bare-metal",
    }.items():
        with pytest.raises(UnknownPlatform) as caught:
            platform(written)
        assert caught.value.nearest[0] == expected
    with pytest.raises(UnknownPlatform):
        defaults("minikube", "v26.7.0", "1.34")


def test_reading_a_platform_reads_nothing_else(files_read: list[str]) -> None:
    """One platform costs its own file, and those of its bases."""
    platform.cache_clear()
    defaults("rke2-sles16", "v26.7.0", "1.34")
    assert set(files_read) == {"platforms/rke2-sles16", "platforms/rke2"}


def test_what_node_images_bring() -> None:
    """The platforms whose preset leaves a component to the node say why, and those alone (data/platforms)."""
    for name in platforms.names():
        found, preset = platform(name), defaults(name, "v26.7.0", "1.34")
        off = {section for section, values in preset.items() if values.get("enabled") is False}
        assert found.brings.keys() - {"fabric_manager"} == off - {"gdrcopy", "nfd"}, name
        assert all(brought.what for brought in found.brings.values())
    assert {name for name in platforms.names() if "fabric_manager" in platform(name).brings} == {
        "eks-al2023",
        "dgx-os-bcm",
    }


def test_folders_of_container_runtimes() -> None:
    """Configuration, drop-in and socket of a distribution are in its folders."""
    for name in platforms.names():
        found = platform(name)
        own = found.containerd
        for path in (own.config, own.socket, own.drop_in) if own else ():
            assert path is None or any(path.startswith(f"{folder}/") for folder in found.runtime_folders)
    assert platform("generic").runtime_folders == ("/etc/containerd", "/run/containerd")
    assert {name for name in platforms.names() if platform(name).own_template} == {"k3s", "rke2", "rke2-sles16"}
    assert [name for name in platforms.names() if platform(name).config_owner] == ["kubeone"]
