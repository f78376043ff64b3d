"""What the containers of a driver's pod see of the node, and the files that the policy adds (operator.md 7.1)."""

from __future__ import annotations

from .inputs.driver import DriverPod
from .inputs.driver_files import Files, Part
from .pod import Container, Volume

ENTRYPOINT = "nvidia-driver-startup-probe"
PROBE = "/usr/local/bin/startup-probe.sh"

RUN_NVIDIA = Volume.host("run-nvidia", "/run/nvidia", "DirectoryOrCreate")
"""Where the driver's root file system is mounted, for the node and all other pods: the driver makes it."""
VAR_LOG = Volume.host("var-log", "/var/log")
DEV_LOG = Volume.host("dev-log", "/dev/log")
HOST_SYS = Volume.host("host-sys", "/sys", "Directory")
MELLANOX = Volume.host("run-mellanox-drivers", "/run/mellanox/drivers", "DirectoryOrCreate")
STARTUP_PROBE = Volume.config_map("driver-startup-probe-script", ENTRYPOINT, mode=0o755)


def mount_node(container: Container, *, host_mofed: bool) -> None:
    """Give the driver's CONTAINER what it needs of the node.

    HOST_MOFED: the network driver's sources, against which nvidia-peermem is built, are the node's own and not those of
    a network driver container.
    """
    sources = "/usr/src" if host_mofed else "/run/mellanox/drivers/usr/src"
    fabric_manager = Volume.host("run-nvidia-fabricmanager", "/run/nvidia-fabricmanager", "DirectoryOrCreate")
    topology_daemon = Volume.host("run-nvidia-topologyd", "/run/nvidia-topologyd", "DirectoryOrCreate")
    firmware_path = "/sys/module/firmware_class/parameters/path"
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(fabric_manager, "/run/nvidia-fabricmanager").mount(topology_daemon, "/run/nvidia-topologyd")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log")
    container.mount(Volume.host("host-os-release", "/etc/os-release"), "/host-etc/os-release", read_only=True)
    container.mount(
        Volume.host("mlnx-ofed-usr-src", sources, "DirectoryOrCreate"),
        "/run/mellanox/drivers/usr/src",
        propagation="HostToContainer",
    )
    container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")
    container.mount(Volume.host("host-sys-devices-system", "/sys/devices/system", "Directory"), "/sys/devices/system")
    container.mount(Volume.host("firmware-search-path", firmware_path), firmware_path)
    container.mount(Volume.host("nv-firmware", "/run/nvidia/driver/lib/firmware", "DirectoryOrCreate"), "/lib/firmware")
    container.mount(STARTUP_PROBE, PROBE, sub_path="startup-probe.sh")


def mount_files(container: Container, part: Part, target: DriverPod) -> None:
    """Give CONTAINER, which is PART of the pod, its share of the files that the policy brings along."""
    for files in target.files:
        if part in files.parts:
            source = volume(files)
            for key, path in files.paths.items():
                container.mount(source, path, read_only=True, sub_path=key)
    if part == "driver":
        for file in target.host_files:
            container.mount(Volume.host(file.volume, file.path, file.kind), file.target, read_only=True)


def volume(files: Files) -> Volume:
    """The volume of FILES: the keys that are mounted, each under its own name."""
    items = {key: key for key in files.paths}
    if files.kind == "Secret":
        return Volume.secret(files.volume, files.name, items=items)
    return Volume.config_map(files.volume, files.name, items=items)
