"""The container toolkit: installs NVIDIA's runtime on a node and has the container runtime use it (operator.md 7.2)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ...model import Body
from ..component import Component
from ..parts.common_inputs import Common
from ..parts.daemonset import CDI_ROOT, VALIDATIONS, daemonset, driver_install_dir, host_dev_char, host_root
from ..parts.kube import PRIVILEGED_SCC, access, config_map, rule
from ..parts.pod import PRIVILEGED_S0, Container, Env, Pod, Volume, unique
from ..parts.validation import driver_checks
from ..scripts import entrypoint, script
from . import runtimes
from .toolkit_inputs import ToolkitInputs

NAME = "nvidia-container-toolkit"
DAEMONSET = "nvidia-container-toolkit-daemonset"
ENTRYPOINT = "nvidia-container-toolkit-entrypoint"
OCI_HOOKS = "/usr/share/containers/oci/hooks.d"


class ContainerToolkit(Component[ToolkitInputs]):
    """The toolkit's DaemonSet, its entry point and its rights (its driver check lists DaemonSets: operator.md 14)."""

    def manifests(self, inputs: ToolkitInputs) -> Iterator[Body]:
        common = inputs.common
        yield from access(
            NAME,
            common.namespace,
            role=[*([PRIVILEGED_SCC] if common.openshift else []), rule("apps", "daemonsets", "list")],
        )
        start = {"entrypoint.sh": script("container-toolkit")}
        yield config_map(ENTRYPOINT, common.namespace, start, labels={"app": DAEMONSET})
        scc = {"openshift.io/scc": "hostmount-anyuid"}
        yield daemonset(common, DAEMONSET, pod(inputs), deploy="container-toolkit", annotations=scc)


def pod(inputs: ToolkitInputs) -> Pod:
    """The toolkit, once the node's driver works."""
    common = inputs.common
    main = Container(
        "nvidia-container-toolkit-ctr",
        inputs.image,
        inputs.pull_policy,
        command=["/bin/sh", "-c"],
        args=["/bin/entrypoint.sh"],
        env=environment(inputs),
        security=PRIVILEGED_S0,
        resources=inputs.resources,
    )
    main.mount(entrypoint(ENTRYPOINT), "/bin/entrypoint.sh", read_only=True, sub_path="entrypoint.sh")
    main.mount(TOOLKIT_ROOT, "/run/nvidia/toolkit")
    main.mount(VALIDATIONS, "/run/nvidia/validations")
    main.mount(install_dir(common), common.install_dir)
    main.mount(oci_hooks(common), OCI_HOOKS)
    main.mount(driver_install_dir(common), "/driver-root", propagation="HostToContainer")
    main.mount(host_root(common), "/host", read_only=True, propagation="HostToContainer")
    main.mount(CDI_ROOT, "/var/run/cdi")
    configure_runtime(common, main)
    return Pod(
        NAME,
        {},
        [main],
        init=driver_checks(common, driver_install_dir(common)),
        declared=volumes(common),
        host_pid=True,
        host_network=inputs.host_network,
        pull_secrets=unique([*common.validation.pull_secrets, *inputs.pull_secrets]),
    )


TOOLKIT_ROOT = Volume.host("toolkit-root", "/run/nvidia/toolkit", "DirectoryOrCreate")


def install_dir(common: Common) -> Volume:
    """Where the toolkit is installed on the node."""
    return Volume.host("toolkit-install-dir", common.install_dir)


def oci_hooks(common: Common) -> Volume:
    """Where the node's CRI-O looks for OCI hooks: on OpenShift, whose /usr is read-only, below /run."""
    path = OCI_HOOKS if common.runtime == "crio" and not common.openshift else "/run/containers/oci/hooks.d"
    return Volume.host("crio-hooks", path)


def volumes(common: Common) -> list[Volume]:
    """The volumes in the operator's order, less those for the container runtime, which it appends."""
    return [
        entrypoint(ENTRYPOINT),
        TOOLKIT_ROOT,
        VALIDATIONS,
        driver_install_dir(common),
        host_root(common),
        install_dir(common),
        oci_hooks(common),
        host_dev_char(common),
        CDI_ROOT,
    ]


def environment(inputs: ToolkitInputs) -> Env:
    """The toolkit's settings. The policy's env wins over these, but not over `configure_runtime` (operator.md 5.2)."""
    common = inputs.common
    env = Env({"ROOT": common.install_dir})
    env.set("NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND", "management.nvidia.com/gpu")
    env.set("NVIDIA_VISIBLE_DEVICES", "void").set("TOOLKIT_PID_FILE", "/run/nvidia/toolkit/toolkit.pid")
    if common.traits.toolkit_nri_namespace:
        env.field("NRI_NAMESPACE", "metadata.namespace")
    env.appended()
    if common.cdi:
        env.set("CDI_ENABLED", True).set("NVIDIA_RUNTIME_SET_AS_DEFAULT", False)
        env.set("NVIDIA_CONTAINER_RUNTIME_MODE", "cdi").set("CRIO_CONFIG_MODE", "config")
        if common.nri:
            env.set("ENABLE_NRI_PLUGIN", True)
    elif common.runtime == "crio":
        env.set("CRIO_CONFIG_MODE", "hook")
    return env.update(inputs.env)


def configure_runtime(common: Common, main: Container, *, drop_in_files: bool = True) -> None:
    """Mount the runtime's files into MAIN and rewrite the paths in its environment to where they are mounted.

    Without DROP_IN_FILES it is to change the main configuration alone, as the Kata manager does. With the NRI plugin
    the toolkit leaves the runtime's configuration alone and needs nothing but the NRI socket.
    """
    env = main.env.set("RUNTIME", common.runtime)
    if common.nri:
        socket = env.get("NRI_SOCKET") or runtimes.NRI_SOCKET
        env.set("NRI_SOCKET", mount_folder(main, "nri-socket", socket, runtimes.NRI_SOCKET_DIR, "DirectoryOrCreate"))
        if common.traits.nri_replaces_runtime_config:
            return
    if common.runtime == "containerd":
        env.set("CONTAINERD_RUNTIME_CLASS", common.runtime_class)
    files = runtimes.FILES[common.runtime]
    config = env.get(files.config_env) or env.get("RUNTIME_CONFIG") or files.config
    config = mount_folder(main, f"{common.runtime}-config", config, runtimes.CONFIG_DIR, "DirectoryOrCreate")
    env.set("RUNTIME_CONFIG", config).set(files.config_env, config)
    if files.drop_in and drop_in_files:
        drop_in = env.get("RUNTIME_DROP_IN_CONFIG") or files.drop_in
        volume = f"{common.runtime}-drop-in-config"
        mounted = mount_folder(main, volume, drop_in, runtimes.DROP_IN_DIR, "DirectoryOrCreate")
        env.set("RUNTIME_DROP_IN_CONFIG", mounted).set("RUNTIME_DROP_IN_CONFIG_HOST_PATH", drop_in)
    if sources := env.get("RUNTIME_CONFIG_SOURCE"):
        env.set("RUNTIME_CONFIG_SOURCE", config_sources(sources))
    if files.socket:
        socket = env.get(files.socket_env) or files.socket
        socket = mount_folder(main, f"{common.runtime}-socket", socket, runtimes.SOCKET_DIR)
        env.set("RUNTIME_SOCKET", socket).set(files.socket_env, socket)


def mount_folder(main: Container, volume: str, path: str, target: str, kind: str = "") -> str:
    """Mount the folder of the node's file PATH at TARGET; returns the file's path in the container."""
    folder, file = posixpath.split(path)
    main.mount(Volume.host(volume, folder, kind), target)
    return target + file


def config_sources(sources: str) -> str:
    """RUNTIME_CONFIG_SOURCE with the paths of its `file=` entries below /host, where the node's root is mounted."""

    def moved(source: str) -> str:
        kind, is_path, path = source.partition("=")
        return f"file={posixpath.normpath(f'/host/{path}')}" if kind == "file" and is_path else source

    return ",".join(moved(source) for source in sources.split(","))
