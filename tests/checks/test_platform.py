"""Rules about platforms: what their images bring, their paths, their container runtimes, upgrades on them."""

from __future__ import annotations

import pytest

from gpustack.catalog import platforms
from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from tests.checks.kinds import Row
from tests.checks.kinds.platforms import ROWS
from tests.checks.snippets import loaded
from tests.checks.snippets import said as said_of
from tests.checks.spec_rules import paths, said

RULES = {rule.id: rule for rule in all_rules()}
POOL = "nodePools: [{name: a, gpuProduct: NVIDIA-L4}]\n"
"""A pool that does not say its system: what a platform's image is holds for it."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.rule}")
def test_kinds(row: Row, store: Store) -> None:
    """Each kind of mistake is found, at a place of the policy and with a remedy, and its neighbour passes."""
    found = said_of(RULES[row.rule], row.bad, store)
    assert found
    assert all(finding.path.startswith("spec.") and finding.remedy for finding in found)
    assert not said_of(RULES[row.rule], row.good, store)


@pytest.mark.parametrize("name", platforms.names())
def test_presets_and_rules_agree(name: str) -> None:
    """A policy that leaves everything to its platform gets no error and no warning of a rule about platforms."""
    release = f"release: v26.7.0\ncluster: {{kubernetesVersion: '1.35', platform: {name}}}\n"
    systems = platforms.platform(name).systems
    system = "{name: a, nodeSelector: {gke-no-default-nvidia-gpu-device-plugin: 'true'}, os: %s}"
    os = {"openshift": "rhcos4.18", "rke2-sles16": "sles16.0"}.get(name, f"{systems[0]}1" if systems else "ubuntu22.04")
    spec = loaded(f"{release}nodePools: [{system % os}]").spec
    found = [finding for rule in RULES.values() if rule.over == "spec" for finding in rule.findings(spec)]
    assert [(one.rule, one.what) for one in found if one.rule >= "GPU445" and one.severity != "note"] == []


@pytest.mark.parametrize("name", [name for name in platforms.names() if platforms.platform(name).brings])
def test_everything_that_an_image_brings(name: str) -> None:
    """Each section that the image has is found when it is on: an error where the sources are sure, else a warning."""
    platform = platforms.platform(name)
    for section in platform.brings.keys() - {"fabric_manager"}:
        snippet = f"cluster: {{platform: {name}}}\n{section}: {{enabled: true}}\n{POOL}"
        rule, other = ("GPU445", "GPU446") if platform.brings[section].sure else ("GPU446", "GPU445")
        assert f"spec.{section}.enabled" in paths(rule, snippet)
        assert f"spec.{section}.enabled" not in paths(other, snippet)


def test_a_variant_takes_back_what_its_base_brings() -> None:
    """Oracle's image without the add-on has no device plugin, and the one without driver has nothing."""
    assert {*platforms.platform("oke").brings} == {"driver", "toolkit", "devicePlugin"}
    assert {*platforms.platform("oke-operator-managed-plugin").brings} == {"driver", "toolkit"}
    assert not platforms.platform("oke-operator-managed-driver").brings


def test_pools_of_another_system() -> None:
    """Nodes that run another system than the platform's image may lack what that has: a warning, as both can't be
    right. One pool that runs it is enough for an error."""
    ubuntu, amazon = "{name: u, os: ubuntu22.04}", "{name: a, os: amzn2023}"
    snippet = "cluster: {platform: eks-al2023}\ndriver: {enabled: true}\nnodePools: [%s]"
    assert (paths("GPU445", snippet % ubuntu), paths("GPU446", snippet % ubuntu)) == ([], ["spec.driver.enabled"])
    assert paths("GPU445", snippet % f"{ubuntu}, {amazon}") == ["spec.driver.enabled"]


def test_drivers_of_the_list_count_too() -> None:
    """`drivers` install a driver as the section does."""
    snippet = "cluster: {platform: dgx-os-bcm}\ndriver: {useNvidiaDriverCRD: true}\ndrivers: [{name: x}]\n"
    assert paths("GPU445", snippet + POOL) == ["spec.driver.enabled"]


def test_talos_has_a_first_release() -> None:
    """Talos needs v26.3.1; other platforms need none."""
    snippet = "release: %s\ncluster: {platform: talos}\n" + POOL
    assert paths("GPU448", snippet % "v26.3.0") == ["spec.release"]
    assert not paths("GPU448", snippet % "v26.3.1")
    assert not paths("GPU448", "release: v25.10.0")


@pytest.mark.parametrize(
    ("snippet", "path"),
    [
        ("cluster: {platform: gke-cos}\ntoolkit: {installDir: /usr/local/nvidia}", "spec.toolkit.installDir"),
        ("cluster: {platform: gke-cos}\nhostPaths: {driverInstallDir: ''}", "spec.hostPaths.driverInstallDir"),
        ("cluster: {platform: talos}\nhostPaths: {driverInstallDir: /}", "spec.hostPaths.driverInstallDir"),
        ("cluster: {platform: aks-azure-linux}\noperator: {runtimeClass: nvidia}", "spec.operator.runtimeClass"),
        ("cluster: {platform: rke2}\ntoolkit: {installDir: /opt/nvidia}", ""),
        ("toolkit: {installDir: /opt/nvidia}", ""),
    ],
)
def test_folders_that_a_platform_has(snippet: str, path: str) -> None:
    """Where the platform says a folder or name, another one is a warning; elsewhere it is the user's choice."""
    assert paths("GPU449", f"{snippet}\n{POOL}") == ([path] if path else [])


def test_a_driver_container_has_one_folder() -> None:
    """hostPaths.driverInstallDir is for drivers of the node; its default, spelt or not, is the container's."""
    snippet = "nodePools: [{name: a, os: ubuntu22.04}]\nhostPaths: {driverInstallDir: '%s'}\ndriver: {enabled: %s}"
    assert paths("GPU450", snippet % ("/usr/local", "true")) == ["spec.hostPaths.driverInstallDir"]
    assert not paths("GPU450", snippet % ("/run/nvidia/driver", "true"))
    assert not paths("GPU450", snippet % ("", "true"))
    assert not paths("GPU450", snippet % ("/usr/local", "false"))


def test_what_hosts_need_is_said() -> None:
    """nouveau on hosts of one's own, system extensions on Talos, options of clouds' node pools; else nothing."""
    assert any("nouveau" in one.what for one in said("GPU451", "cluster: {platform: kubeadm-bare-metal}"))
    assert any("extension" in one.what.lower() for one in said("GPU451", f"cluster: {{platform: talos}}\n{POOL}"))
    assert any("--gpu-driver none" in one.what for one in said("GPU451", "cluster: {platform: aks-ubuntu}"))
    assert not said("GPU451", "cluster: {platform: generic}")


def test_paths_of_the_kubelet_that_stay(store: Store) -> None:
    """With another kubelet root each path that is still below the default one is listed, with all who mount it."""
    (found,) = said_of(RULES["GPU453"], "hostPaths: {kubeletRootDir: /var/lib/k0s/kubelet}", store)
    assert "/var/lib/kubelet/device-plugins" in found.what
    assert "DaemonSet/nvidia-device-plugin-daemonset" in found.what
    assert "dcgm-exporter" not in found.what


# The container runtime


@pytest.mark.parametrize(
    ("platform", "name", "value", "refused"),
    [
        ("k3s", "CONTAINERD_SOCKET", "/run/containerd/containerd.sock", True),
        ("k3s", "RUNTIME_CONFIG", "/etc/containerd/config.toml", False),  # its default too: GPU463
        ("k3s", "RUNTIME_CONFIG", "/etc/k0s/containerd.toml", True),
        ("k3s", "RUNTIME_CONFIG_SOURCE", "command,file=/etc/containerd/config.toml", True),
        ("k3s", "RUNTIME_CONFIG_SOURCE", "command", False),
        ("microk8s", "CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", True),
        ("microk8s", "CONTAINERD_CONFIG", "/var/snap/microk8s/current/args/containerd-env", False),
        ("k0s", "CONTAINERD_CONFIG", "/etc/k0s/containerd.d/nvidia.toml", False),
        ("k0s", "CONTAINERD_CONFIG", "/etc/containerd/config.toml", True),
        ("eks-ubuntu", "CONTAINERD_CONFIG", "/etc/containerd/config.toml", False),
        ("eks-ubuntu", "CONTAINERD_SOCKET", "/run/k0s/containerd.sock", True),
        ("kubeadm-bare-metal", "CONTAINERD_CONFIG", "/opt/containerd/config.toml", False),
        ("generic", "CONTAINERD_SOCKET", "/run/k3s/containerd/containerd.sock", False),
    ],
)
def test_paths_of_platforms(platform: str, name: str, value: str, refused: bool) -> None:
    """A path in another platform's folders is refused; a path of nobody's is the user's own."""
    snippet = f"cluster: {{platform: {platform}}}\ntoolkit: {{env: [{{name: {name}, value: '{value}'}}]}}"
    assert len(paths("GPU456", snippet)) == refused
    assert not paths("GPU456", f"{snippet[:-1]}, enabled: false}}")


def test_the_message_names_both_platforms() -> None:
    """Who copied a path is told whose it is, and what the own one is."""
    snippet = "cluster: {platform: rke2}\ntoolkit: {env: [{name: CONTAINERD_CONFIG, value: %s}]}"
    (found,) = said("GPU456", snippet % "/var/lib/rancher/k3s/agent/etc/containerd/config.toml")
    assert "is a path of k3s, and cluster.platform is rke2" in found.what
    assert "/var/lib/rancher/rke2/agent/etc/containerd/config.toml" in found.remedy


def test_pairs_without_a_platform() -> None:
    """Configuration and socket of one distribution go together, also where nobody says which it is."""
    config = "{name: CONTAINERD_CONFIG, value: /var/lib/rancher/k3s/agent/etc/containerd/config.toml}"
    socket = "{name: CONTAINERD_SOCKET, value: %s}"
    assert paths("GPU457", f"toolkit: {{env: [{config}]}}") == ["spec.toolkit.env[0]"]
    right, wrong = socket % "/run/k3s/containerd/containerd.sock", socket % "/run/k0s/containerd.sock"
    assert not paths("GPU457", f"toolkit: {{env: [{config}, {right}]}}")
    assert paths("GPU457", f"toolkit: {{env: [{config}, {wrong}]}}")
    assert not paths("GPU457", f"toolkit: {{env: [{socket % '/opt/containerd.sock'}]}}")
    assert not paths("GPU457", f"toolkit: {{env: [{config}, {socket % '/opt/containerd.sock'}]}}")


@pytest.mark.parametrize(
    ("runtime", "name", "refused"),
    [
        ("cri-o://1.33.0", "CONTAINERD_CONFIG", True),
        ("crio", "CONTAINERD_SET_AS_DEFAULT", True),
        ("cri-o", "CRIO_CONFIG_MODE", False),
        ("cri-o", "RUNTIME_CONFIG", False),
        ("containerd", "DOCKER_SOCKET", True),
        ("docker://26.1.0", "DOCKER_SOCKET", False),
    ],
)
def test_variables_of_runtimes(runtime: str, name: str, refused: bool) -> None:
    """Variables of a runtime that no node runs do nothing; those without a runtime's name are for all."""
    snippet = f"cluster: {{containerRuntime: '{runtime}'}}\ntoolkit: {{env: [{{name: {name}, value: /x}}]}}"
    assert bool(paths("GPU461", snippet)) == refused


def test_mixed_runtimes() -> None:
    """Where one pool runs containerd, variables about it are for that pool."""
    pools = "nodePools: [{name: a, os: ubuntu22.04, containerRuntime: containerd}, {name: b, os: ubuntu22.04}]\n"
    snippet = "cluster: {containerRuntime: cri-o}\ntoolkit: {env: [{name: CONTAINERD_CONFIG, value: /x}]}\n"
    assert not paths("GPU461", snippet + pools)


@pytest.mark.parametrize(
    ("snippet", "warned"),
    [
        ("toolkit: {env: [{name: RUNTIME, value: docker}]}", True),
        ("toolkit: {env: [{name: CONTAINERD_RUNTIME_CLASS, value: nvidia}]}", False),
        ("cdi: {nriPluginEnabled: true}\ntoolkit: {env: [{name: CONTAINERD_SOCKET, value: /x}]}", True),
        (
            "release: v26.3.1\ncdi: {nriPluginEnabled: true}\ntoolkit: {env: [{name: CONTAINERD_SOCKET, value: /x}]}",
            False,
        ),
    ],
)
def test_variables_that_are_overwritten(snippet: str, warned: bool) -> None:
    """The operator writes RUNTIME and the runtime's class over them, and v26.7 drops all with NRI (operator.md 5.2)."""
    assert bool(paths("GPU462", snippet)) == warned


@pytest.mark.parametrize(
    ("value", "cdi", "rules"),
    [
        ("cdi-annotations,cdi-cri", True, []),
        ("cdi-cri", False, ["GPU464"]),
        ("envvar", False, []),
        ("envvar", True, ["GPU465"]),
        ("volume-mounts", True, ["GPU465"]),
        ("envvar,cdi-cri", True, ["GPU465"]),
        ("envar", False, ["GPU464"]),
        ("", True, ["GPU464"]),
    ],
)
def test_device_list_strategies(value: str, cdi: bool, rules: list[str]) -> None:
    """Unknown elements and CDI names without CDI are errors; ways that exclude each other are a warning."""
    snippet = (
        f"cdi: {{enabled: {str(cdi).lower()}}}\n"
        f"devicePlugin: {{env: [{{name: DEVICE_LIST_STRATEGY, value: '{value}'}}]}}"
    )
    assert [rule for rule in ("GPU464", "GPU465") if paths(rule, snippet)] == rules


# Nodes' software, upgrades


@pytest.mark.parametrize(
    ("version", "warned"),
    [("v1.14.6-centos7", False), ("v1.15.0-centos7", True), ("v1.17.8-ubi8", False), ("v1.18.0-ubi8", True),
     ("v1.20.0", False), ("v1.20.0-rc.1", False), ("v1.20.0-mine", False)],
)  # fmt: skip
def test_suffixes_of_the_toolkit(version: str, warned: bool) -> None:
    """centos7 until v1.14, ubi8 and ubuntu20.04 until v1.17; of other endings nothing is known."""
    assert bool(paths("GPU455", f"toolkit: {{version: {version}}}")) == warned


@pytest.mark.parametrize(
    ("os", "refused"),
    [
        ("amzn2", True),
        ("centos7.9", True),
        ("rhel7", True),
        ("ol7.9", True),
        ("amzn2023", False),
        ("rhel8.10", False),
        ("ubuntu20.04", False),
    ],
)
def test_old_c_libraries(os: str, refused: bool) -> None:
    """Amazon Linux 2 and EL 7 can't run the toolkit of any release in the catalogue."""
    snippet = f"driver: {{enabled: false}}\nnodePools: [{{name: a, os: {os}}}]\n"
    assert bool(paths("GPU454", snippet)) == refused
    assert not paths("GPU454", f"{snippet}toolkit: {{enabled: false}}")


def test_who_brings_the_network_driver() -> None:
    """The network operator, told or seen; the node; or nobody. Each driver counts for itself."""
    on = "driver: {rdma: {enabled: true}}\n"
    assert paths("GPU466", on) == ["spec.driver.rdma.enabled"]
    assert not paths("GPU466", on + "cluster: {networkOperator: true}")
    assert paths("GPU466", on + "cluster: {networkOperator: false}")
    assert not paths("GPU466", on + "references: [{kind: NicClusterPolicy, name: nic}]")
    assert not paths("GPU466", "driver: {enabled: false, rdma: {enabled: true}}")
    pool = "nodePools: [{name: a, os: ubuntu22.04, driver: {rdma: {enabled: true}}}]"
    assert paths("GPU466", pool) == ["spec.nodePools[0].driver.rdma.enabled"]


def test_files_of_module_parameters() -> None:
    """Lines as modprobe has them, and files of no module; ConfigMaps of others are theirs."""
    config = "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: p}, data: {%s}}]\n"
    used = "driver: {kernelModuleConfig: {name: p}}\n"
    text = '"nvidia.conf": "# comment\\nA=1\\noptions nvidia B=2\\n"'
    (found,) = said("GPU467", used + config % text)
    assert (found.inside, found.remedy) == ((3, 1), "write B=2")
    assert said("GPU467", used + config % "nvidia-fs.conf: A=1")[0].path == "spec.extraObjects[0].data"
    assert not said("GPU467", used + config % "nvidia-uvm.conf: A=1")
    assert not said("GPU467", config % text)


def test_drains() -> None:
    """Every variable that the upgrade policy overrides is found at its place; others are not meant."""
    env = (
        "[{name: ENABLE_GPU_POD_EVICTION, value: 'true'}, {name: A, value: b}, {name: DRAIN_USE_FORCE, value: 'true'}]"
    )
    snippet = f"driver: {{upgradePolicy: {{autoUpgrade: true}}, manager: {{env: {env}}}}}"
    assert paths("GPU470", snippet) == ["spec.driver.manager.env[0]", "spec.driver.manager.env[2]"]
    assert "spec.driver.upgradePolicy.drain.force" in said("GPU470", snippet)[1].remedy
    assert not paths("GPU470", f"sandboxWorkloads: {{enabled: true}}\n{snippet}")


@pytest.mark.parametrize(
    ("share", "counts", "said_so"),
    [
        ("25%", [3], True),
        ("25%", [4], False),
        ("25%", [2, 2], False),
        ("10%", [9], True),
        ("0%", [3], False),
        ("1", [3], False),
        ("25%", [2, None], False),
    ],
)
def test_percentages_of_few_nodes(share: str, counts: list[int | None], said_so: bool) -> None:
    """A percentage that is less than one node is rounded up to one; where a count is missing, nobody knows."""
    pools = ", ".join(
        f"{{name: p{place}, os: ubuntu22.04{f', count: {count}' if count else ''}}}"
        for place, count in enumerate(counts)
    )
    value = share if share.endswith("%") else int(share)
    snippet = f"driver: {{upgradePolicy: {{autoUpgrade: true, maxUnavailable: {value}}}}}\nnodePools: [{pools}]"
    assert bool(paths("GPU472", snippet)) == said_so


def test_percentages_of_a_pool() -> None:
    """A pool's own share counts by its own nodes."""
    own = "{name: a, os: ubuntu22.04, count: %s, upgrade: {maxUnavailable: 34%%}}"
    pools = f"nodePools: [{own}, {{name: b, os: ubuntu22.04}}]"
    assert paths("GPU472", pools % 2) == ["spec.nodePools[0].upgrade.maxUnavailable"]
    assert not paths("GPU472", pools % 3)


def test_somebody_has_to_offer_gpus() -> None:
    """Without the plugin, unless the platform has one, DRA allocates, or no pool serves containers."""
    off = "devicePlugin: {enabled: false}\n"
    assert paths("GPU473", off) == ["spec.devicePlugin.enabled"]
    assert not paths("GPU473", off + "cluster: {platform: eks-bottlerocket}\n" + POOL)
    assert not paths("GPU473", off + "sandboxWorkloads: {enabled: true, defaultWorkload: vm-passthrough}")
