"""Which files of ConfigMaps, Secrets and the node reach a driver's pod, and where (operator.md 7.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.driver.driver_files_inputs import TAKEN, Files, HostFile, files, subscriptions
from gpustack.components.driver.driver_pools_inputs import parse
from gpustack.components.driver.driver_view import DriverView
from gpustack.model import Finding, FindingsError
from tests.components.common import spec

RELEASE = "v26.7.0"


def config_map(name: str, *keys: str, namespace: str | None = None) -> dict[str, Any]:
    """An extra object: the ConfigMap NAME with KEYS."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **place},
        "data": dict.fromkeys(keys, "x"),
    }


def found(driver: dict[str, Any], os: str = "ubuntu22.04", **sections: Any) -> dict[str, Files]:
    """The files of a driver's pod on OS, by use."""
    return {
        each.use: each
        for each in files(DriverView.section(resolve(spec(driver=driver, **sections))), parse(os, RELEASE))
    }


def refusal(driver: dict[str, Any], os: str = "ubuntu22.04", **sections: Any) -> Finding:
    """Why the files of a driver's pod on OS are refused."""
    with pytest.raises(FindingsError) as caught:
        found(driver, os, **sections)
    return caught.value.findings[0]


def node(os: str, driver: dict[str, Any] | None = None, *, crio: bool = False, **sections: Any) -> tuple[HostFile, ...]:
    """The files that a driver's pod on OS takes from its node."""
    return subscriptions(
        DriverView.section(resolve(spec(driver=driver or {}, **sections))), parse(os, RELEASE), crio=crio
    )


def test_without_configuration_there_are_no_files() -> None:
    """The chart's empty names mean none."""
    assert found({}) == {}


@pytest.mark.parametrize(
    ("os", "repositories", "certificates"),
    [
        ("ubuntu22.04", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"),
        ("debian12", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"),
        ("rhel9.4", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"),
        ("rocky9.4", "/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem"),
        ("sles15.6", "/etc/zypp/repos.d", "/etc/pki/trust/anchors"),
        ("sl-micro6.1", "/etc/zypp/repos.d", "/etc/pki/trust/anchors"),
    ],
)
def test_package_sources_and_certificates_go_where_the_system_looks(
    os: str, repositories: str, certificates: str
) -> None:
    """Each key is a file in the distribution's folder, for the three containers that install packages (7.1)."""
    driver = {"repoConfig": {"configMapName": "repo"}, "certConfig": {"name": "cert"}}
    have = found(driver, os, extraObjects=[config_map("repo", "b.list", "a.list"), config_map("cert", "ca.crt")])
    assert have["repositories"].paths == {"a.list": f"{repositories}/a.list", "b.list": f"{repositories}/b.list"}
    assert have["certificates"].paths == {"ca.crt": f"{certificates}/ca.crt"}
    assert list(have["repositories"].paths) == ["a.list", "b.list"], "sorted, whatever order the ConfigMap has"
    assert have["repositories"].parts == have["certificates"].parts == ("driver", "fs", "gdrcopy")


def test_module_parameters_reach_driver_and_peermem() -> None:
    """One file /drivers/<key> per key of kernelModuleConfig, on the two containers that load modules with it."""
    have = found({"kernelModuleConfig": {"name": "kmod"}}, extraObjects=[config_map("kmod", "nvidia.conf")])
    assert have["modules"].paths == {"nvidia.conf": "/drivers/nvidia.conf"}
    assert have["modules"].parts == ("driver", "peermem")


def test_precompiled_drivers_install_no_packages() -> None:
    """Precompiled: package sources, certificates and subscriptions are left out, module parameters stay (7.1)."""
    driver = {
        "usePrecompiled": True,
        "repoConfig": {"configMapName": "repo"},
        "certConfig": {"name": "cert"},
        "kernelModuleConfig": {"name": "kmod"},
    }
    assert list(found(driver, extraObjects=[config_map("kmod", "nvidia.conf")])) == ["modules"]
    assert node("rhel9.4", driver) == node("sles15.6", driver) == ()


def test_references_can_say_the_keys() -> None:
    """A ConfigMap that others bring is fine as long as the policy says its keys."""
    reference = {"kind": "ConfigMap", "name": "kmod", "keys": ["nvidia.conf"]}
    assert found({"kernelModuleConfig": {"name": "kmod"}}, references=[reference])["modules"].paths


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"references": [{"kind": "ConfigMap", "name": "kmod"}]},
        {"references": [{"kind": "Secret", "name": "kmod", "keys": ["nvidia.conf"]}]},
        {"references": [{"kind": "ConfigMap", "name": "kmod", "namespace": "other", "keys": ["nvidia.conf"]}]},
        {"extraObjects": [config_map("kmod", "nvidia.conf", namespace="other")]},
        {"extraObjects": [config_map("kmod")]},
    ],
)
def test_unknown_keys_are_refused(sections: dict[str, Any]) -> None:
    """Without the keys there is nothing to mount, so the field is refused and not left without effect."""
    why = refusal({"kernelModuleConfig": {"name": "kmod"}}, **sections)
    assert why.path == "spec.driver.kernelModuleConfig.name"
    assert "kind: ConfigMap, name: kmod" in why.remedy


def test_systems_without_known_folders_are_refused() -> None:
    """Package sources for a system whose folder nobody knows are an error, as with the operator (case 35)."""
    assert (
        refusal({"repoConfig": {"configMapName": "repo"}}, "flatcar4081.2").path
        == "spec.driver.repoConfig.configMapName"
    )
    assert refusal({"certConfig": {"name": "cert"}}, "flatcar4081.2").path == "spec.driver.certConfig.name"


GRIDD = {"gridd.conf": "/drivers/gridd.conf"}
TOKEN = {"client_configuration_token.tok": "/drivers/ClientConfigToken/client_configuration_token.tok"}


@pytest.mark.parametrize(
    ("config", "kind", "name", "paths"),
    [
        ({"secretName": "s", "configMapName": "c", "nlsEnabled": True}, "Secret", "s", {**GRIDD, **TOKEN}),
        ({"secretName": "s", "nlsEnabled": False}, "Secret", "s", GRIDD),
        ({"secretName": "", "configMapName": "c", "nlsEnabled": False}, "ConfigMap", "c", GRIDD),
    ],
)
def test_licences_come_from_a_secret_or_a_config_map(
    config: dict[str, Any], kind: str, name: str, paths: dict[str, str]
) -> None:
    """The Secret wins; the token is mounted with NLS only; an empty name is none (7.1, cases 35 and 36)."""
    have = found({"licensingConfig": config})["licence"]
    assert (have.kind, have.name, have.paths, have.parts) == (kind, name, paths, ("driver",))


def test_a_topology_file_reaches_the_driver() -> None:
    """virtualTopology.config: its one key goes to the topology daemon (7.1)."""
    have = found({"virtualTopology": {"config": "topology"}})["topology"]
    assert (have.kind, have.name) == ("ConfigMap", "topology")
    assert have.paths == {"nvidia-topologyd.conf": "/etc/nvidia/nvidia-topologyd.conf"}


def test_rhel_nodes_lend_their_subscription() -> None:
    """RHEL: entitlement, redhat.repo and rhsm of the node (7.1, case 41)."""
    assert [(file.path, file.kind, file.target) for file in node("rhel9.4")] == [
        ("/etc/pki/entitlement", "Directory", "/run/secrets/etc-pki-entitlement"),
        ("/etc/yum.repos.d/redhat.repo", "File", "/run/secrets/redhat.repo"),
        ("/etc/rhsm", "Directory", "/run/secrets/rhsm"),
    ]


def test_subscriptions_that_are_not_needed_are_left_alone() -> None:
    """None with CRI-O, on OpenShift, with own package sources, or on rebuilds of RHEL (7.1, cases 42 and 45)."""
    own = {"repoConfig": {"configMapName": "repo"}}
    openshift = {"version": "4.18"}
    assert node("rhel9.4", crio=True) == node("rhel9.4", own) == node("rocky9.4") == node("ubuntu22.04") == ()
    assert node("rhel9.4", cluster={"openshift": openshift}) == ()


def test_suse_nodes_always_lend_their_subscription() -> None:
    """SUSE: also beside own package sources and with CRI-O (7.1, case 44)."""
    wanted = [("/etc/SUSEConnect", "FileOrCreate"), ("/etc/zypp/credentials.d", "Directory")]
    for files_of_node in (node("sles15.6", crio=True), node("sl-micro6.1", {"repoConfig": {"configMapName": "repo"}})):
        assert [(file.path, file.kind) for file in files_of_node] == wanted
        assert all(file.target == file.path for file in files_of_node)


@pytest.mark.parametrize(
    ("name", "volume"),
    [
        ("kmod-params", "kmod-params"),
        ("kmod.params", "kernel-module-config"),
        ("k" * 64, "kernel-module-config"),
        *((name, "kernel-module-config") for name in sorted(TAKEN)),
    ],
)
def test_volumes_are_called_after_their_config_map(name: str, volume: str) -> None:
    """As the operator calls them, but where the API server would refuse the name: no label, or taken in this pod."""
    have = found({"kernelModuleConfig": {"name": name}}, extraObjects=[config_map(name, "nvidia.conf")])
    assert have["modules"].volume == volume


def test_one_config_map_for_two_uses_is_one_volume() -> None:
    """The operator declares it twice, which the API server refuses."""
    driver = {"repoConfig": {"configMapName": "both"}, "certConfig": {"name": "both"}}
    have = found(driver, extraObjects=[config_map("both", "a")])
    assert have["repositories"].volume == have["certificates"].volume == "both"
