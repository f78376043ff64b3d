"""Why the toolkit gets each of its variables (operator.md 7.2): `environment` for what is so on every node, then
`configure_runtime` for the container runtime (CONTAINERD_SOCKET and its like, with the paths of FILES), whose files
are mounted where the variables say.

What they depend on comes from the policy by way of `Common` (parts/common_inputs.py): `cdi` and `nri` are its section
`cdi`, `install_dir` is `toolkit.installDir`, `runtime` that of the pools, and `runtime_class` `operator.runtimeClass`.
A variable that isn't set here is the user's or the platform's (`toolkit.env`; catalog/data/platforms/): `gpustack
explain CLUSTER toolkit.env` says whose.

The toolkit's container mounts the folders of a runtime's files below /runtime, so each path exists twice: on the node,
as in FILES and in the policy's `toolkit.env`, and in the container. Without a socket or a drop-in folder it is "".
"""

import posixpath
from dataclasses import dataclass
from pathlib import Path

from ...catalog import _data
from ..parts.common_inputs import Common, OperandInputs, Runtime
from ..parts.pod import Container, Env, Volume

NRI_SOCKET = "/var/run/nri/nri.sock"


@dataclass(frozen=True, slots=True)
class RuntimeFiles:
    """The default paths on the node, and the runtime's own names for RUNTIME_CONFIG and RUNTIME_SOCKET."""

    config_env: str
    config: str
    drop_in: str = ""
    socket_env: str = ""
    socket: str = ""


FILES: dict[Runtime, RuntimeFiles] = {
    runtime: _data.made(RuntimeFiles, facts)
    for runtime, facts in _data.read(Path(__file__).with_name("runtime_files.yaml")).items()
}


def environment(inputs: OperandInputs) -> Env:
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
    the toolkit leaves the runtime's configuration alone and needs nothing but the NRI socket."""
    env = main.env.set("RUNTIME", common.runtime)
    if common.nri:
        socket = env.get("NRI_SOCKET") or NRI_SOCKET
        env.set("NRI_SOCKET", mount_folder(main, "nri-socket", socket, "/runtime/nri-sock-dir/", "DirectoryOrCreate"))
        if common.traits.nri_replaces_runtime_config:
            return
    if common.runtime == "containerd":
        env.set("CONTAINERD_RUNTIME_CLASS", common.runtime_class)
    files = FILES[common.runtime]
    config = env.get(files.config_env) or env.get("RUNTIME_CONFIG") or files.config
    config = mount_folder(main, f"{common.runtime}-config", config, "/runtime/config-dir/", "DirectoryOrCreate")
    env.set("RUNTIME_CONFIG", config).set(files.config_env, config)
    if files.drop_in and drop_in_files:
        drop_in = env.get("RUNTIME_DROP_IN_CONFIG") or files.drop_in
        volume = f"{common.runtime}-drop-in-config"
        mounted = mount_folder(main, volume, drop_in, "/runtime/config-dir.d/", "DirectoryOrCreate")
        env.set("RUNTIME_DROP_IN_CONFIG", mounted).set("RUNTIME_DROP_IN_CONFIG_HOST_PATH", drop_in)
    if sources := env.get("RUNTIME_CONFIG_SOURCE"):
        env.set("RUNTIME_CONFIG_SOURCE", config_sources(sources))
    if files.socket:
        socket = env.get(files.socket_env) or files.socket
        socket = mount_folder(main, f"{common.runtime}-socket", socket, "/runtime/sock-dir/")
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
