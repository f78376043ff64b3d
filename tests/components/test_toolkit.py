"""The container toolkit: what it finds at which path, and who wins where the policy sets a variable."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components import ContainerToolkit
from gpustack.components.parts.common_inputs import OperandInputs
from gpustack.components.toolkit.environment import FILES, config_sources
from gpustack.components.toolkit.toolkit_inputs import toolkit as from_cluster
from gpustack.model import Body
from tests.components.common import common, container, env, grants, mounts, pod_of, render, spec, validation

CTR = "nvidia-container-toolkit-ctr"


def pod(toolkit_env: dict[str, str] | None = None, **changes: Any) -> Body:
    """The toolkit's pod with the policy's TOOLKIT_ENV, and CHANGES to what all components share."""
    inputs = OperandInputs(common=common(**changes), image="x", env=tuple((toolkit_env or {}).items()))
    return pod_of(render(ContainerToolkit, inputs), "nvidia-container-toolkit-daemonset")


def settings(toolkit_env: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The environment of the toolkit's container."""
    return env(container(pod(toolkit_env, **changes), CTR))


def hosts(toolkit_env: dict[str, str] | None = None, **changes: Any) -> dict[str, str]:
    """Where the folders below /runtime are on the node."""
    found = mounts(pod(toolkit_env, **changes), CTR)
    return {path: mount["from"]["hostPath"]["path"] for path, mount in found.items() if path.startswith("/runtime/")}


@pytest.mark.parametrize(
    ("runtime", "folders", "variables"),
    [
        (
            "containerd",
            {
                "/runtime/config-dir/": "/etc/containerd",
                "/runtime/config-dir.d/": "/etc/containerd/conf.d",
                "/runtime/sock-dir/": "/run/containerd",
            },
            {
                "CONTAINERD_CONFIG": "/runtime/config-dir/config.toml",
                "CONTAINERD_SOCKET": "/runtime/sock-dir/containerd.sock",
                "CONTAINERD_RUNTIME_CLASS": "nvidia",
                "RUNTIME_DROP_IN_CONFIG_HOST_PATH": "/etc/containerd/conf.d/99-nvidia.toml",
            },
        ),
        (
            "crio",
            {"/runtime/config-dir/": "/etc/crio", "/runtime/config-dir.d/": "/etc/crio/crio.conf.d"},
            {
                "CRIO_CONFIG": "/runtime/config-dir/config.toml",
                "RUNTIME_DROP_IN_CONFIG_HOST_PATH": "/etc/crio/crio.conf.d/99-nvidia.conf",
            },
        ),
        (
            "docker",
            {"/runtime/config-dir/": "/etc/docker", "/runtime/sock-dir/": "/var/run"},
            {"DOCKER_CONFIG": "/runtime/config-dir/daemon.json", "DOCKER_SOCKET": "/runtime/sock-dir/docker.sock"},
        ),
    ],
)
def test_runtime_files(runtime: str, folders: dict[str, str], variables: dict[str, str]) -> None:
    """Each runtime's configuration, drop-in and socket folders are mounted, and named by its own variables."""
    assert hosts(runtime=runtime) == folders
    found = settings(runtime=runtime)
    assert found["RUNTIME"] == runtime
    assert {name: found[name] for name in variables} == variables
    assert ("RUNTIME_SOCKET" in found) == bool(FILES[runtime].socket)  # type: ignore[index]


def test_paths_of_the_policy_are_rewritten() -> None:
    """`toolkit.env` says where the node's files are; the container sees their folders elsewhere (case 05)."""
    k3s = {
        "CONTAINERD_CONFIG": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl",
        "CONTAINERD_SOCKET": "/run/k3s/containerd/containerd.sock",
    }
    assert hosts(k3s)["/runtime/config-dir/"] == "/var/lib/rancher/k3s/agent/etc/containerd"
    assert hosts(k3s)["/runtime/sock-dir/"] == "/run/k3s/containerd"
    found = settings(k3s)
    assert found["CONTAINERD_CONFIG"] == found["RUNTIME_CONFIG"] == "/runtime/config-dir/config.toml.tmpl"
    assert found["CONTAINERD_SOCKET"] == found["RUNTIME_SOCKET"] == "/runtime/sock-dir/containerd.sock"


def test_own_variable_of_the_runtime_wins_over_the_general_one() -> None:
    """CONTAINERD_CONFIG, else RUNTIME_CONFIG, else the default; the drop-in has the general variable only."""
    both = {
        "CONTAINERD_CONFIG": "/a/own.toml",
        "RUNTIME_CONFIG": "/b/general.toml",
        "RUNTIME_DROP_IN_CONFIG": "/c/x.toml",
    }
    assert hosts(both)["/runtime/config-dir/"] == "/a"
    assert hosts({"RUNTIME_CONFIG": "/b/general.toml"})["/runtime/config-dir/"] == "/b"
    assert hosts(both)["/runtime/config-dir.d/"] == "/c"
    assert settings(both)["RUNTIME_DROP_IN_CONFIG_HOST_PATH"] == "/c/x.toml"


def test_policy_env_wins_over_all_but_the_runtime_section() -> None:
    """The policy may make NVIDIA's runtime the default one, but not name another runtime or RuntimeClass (5.2)."""
    found = settings(
        {"NVIDIA_RUNTIME_SET_AS_DEFAULT": "true", "ROOT": "/opt", "RUNTIME": "x", "CONTAINERD_RUNTIME_CLASS": "y"},
        runtime_class="nvidia-custom",
    )
    assert (found["NVIDIA_RUNTIME_SET_AS_DEFAULT"], found["ROOT"]) == ("true", "/opt")
    assert (found["RUNTIME"], found["CONTAINERD_RUNTIME_CLASS"]) == ("containerd", "nvidia-custom")


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("command,file=/etc/containerd/config.toml", "command,file=/host/etc/containerd/config.toml"),
        ("file=etc/x.toml", "file=/host/etc/x.toml"),
        ("file,files=/x,other=/y", "file,files=/x,other=/y"),
    ],
)
def test_config_sources(sources: str, expected: str) -> None:
    """`file=` entries of RUNTIME_CONFIG_SOURCE are read below /host; all others stay as they are (case 73)."""
    assert config_sources(sources) == expected
    assert settings({"RUNTIME_CONFIG_SOURCE": sources})["RUNTIME_CONFIG_SOURCE"] == expected


def test_cdi() -> None:
    """CDI settings come with CDI on every runtime; without it CRI-O keeps the OCI hook and others get nothing (5.5)."""
    names = ("CDI_ENABLED", "NVIDIA_RUNTIME_SET_AS_DEFAULT", "NVIDIA_CONTAINER_RUNTIME_MODE", "CRIO_CONFIG_MODE")
    assert [settings()[name] for name in names] == ["true", "false", "cdi", "config"]
    assert not set(names) & set(settings(cdi=False))
    assert settings(cdi=False, runtime="crio")["CRIO_CONFIG_MODE"] == "hook"


def test_nri_needs_nothing_but_its_socket() -> None:
    """With the NRI plugin the runtime's files stay alone; the policy's NRI_SOCKET says where its socket is."""
    assert hosts(nri=True) == {"/runtime/nri-sock-dir/": "/var/run/nri"}
    moved = {"NRI_SOCKET": "/run/other/my.sock", "CONTAINERD_CONFIG": "/etc/x.toml"}
    assert hosts(moved, nri=True) == {"/runtime/nri-sock-dir/": "/run/other"}
    found = settings(moved, nri=True)
    assert (found["NRI_SOCKET"], found["ENABLE_NRI_PLUGIN"]) == ("/runtime/nri-sock-dir/my.sock", "true")
    assert found["RUNTIME"] == "containerd"
    assert not {"RUNTIME_CONFIG", "RUNTIME_SOCKET", "CONTAINERD_RUNTIME_CLASS"} & set(found)


def test_oci_hooks() -> None:
    """CRI-O outside OpenShift reads hooks below /usr/share, all others below /run (case 02)."""

    def folder(**changes: Any) -> str:
        return str(mounts(pod(**changes), CTR)["/usr/share/containers/oci/hooks.d"]["from"]["hostPath"]["path"])

    assert folder(runtime="crio") == "/usr/share/containers/oci/hooks.d"
    assert folder(runtime="crio", openshift=True) == folder() == "/run/containers/oci/hooks.d"


def test_install_dir() -> None:
    """`toolkit.installDir` moves ROOT and the mount, on the node and in the container (5.4)."""
    assert settings(install_dir="/opt/nvidia")["ROOT"] == "/opt/nvidia"
    assert mounts(pod(install_dir="/opt/nvidia"), CTR)["/opt/nvidia"]["from"]["hostPath"]["path"] == "/opt/nvidia"


def test_root_and_driver_folder() -> None:
    """`hostPaths` reach the toolkit and its driver check: HOST_ROOT on every container, the driver's folder (5.4)."""
    found = pod(root_fs="/node", driver_dir="/opt/driver")
    for each in [*found["initContainers"], *found["containers"]]:
        assert env(each)["HOST_ROOT"] == "/node"
    assert mounts(found, CTR)["/driver-root"]["from"]["hostPath"]["path"] == "/opt/driver"
    assert mounts(found, "driver-validation")["/host-dev-char"]["from"]["hostPath"]["path"] == "/node/dev/char"


def test_waits_for_the_driver_of_this_render() -> None:
    """A rendered driver has no owner that the validator knows, so its pod is waited for first (reconciler.md V3)."""
    assert [each["name"] for each in pod()["initContainers"]] == ["gpustack-wait-for-driver", "driver-validation"]
    assert [each["name"] for each in pod(driver=False)["initContainers"]] == ["driver-validation"]


def test_pull_secrets() -> None:
    """The validator's pull secrets come before the toolkit's own, each once (section 4)."""
    check = validation(pull_secrets=("v", "both"))
    inputs = OperandInputs(common=common(validation=check), image="x", pull_secrets=("both", "t"))
    found = pod_of(render(ContainerToolkit, inputs), "nvidia-container-toolkit-daemonset")
    assert [secret["name"] for secret in found["imagePullSecrets"]] == ["v", "both", "t"]


def test_rights() -> None:
    """The toolkit's account lists DaemonSets of its namespace for the driver check and may do nothing else (6)."""
    plain = render(ContainerToolkit, OperandInputs(common=common(), image="x"))
    assert grants(plain["Role/nvidia-container-toolkit"]) == {"daemonsets:list"}
    assert not any(key.startswith("ClusterRole") for key in plain)
    openshift = render(ContainerToolkit, OperandInputs(common=common(openshift=True), image="x"))
    assert "securitycontextconstraints=privileged:use" in grants(openshift["Role/nvidia-container-toolkit"])


def test_policy() -> None:
    """The toolkit is off where the nodes bring it, and takes no arguments, whatever the policy says (1.3, 5.2)."""
    assert from_cluster(resolve(spec(toolkit={"enabled": False}))) is None
    found = from_cluster(resolve(spec(toolkit={"args": ["--x"], "env": [{"name": "A", "value": "1"}]})))
    assert found is not None
    assert (found.args, found.env) == ((), (("A", "1"),))
