"""What the containers of a driver's pod see of the node, and the files that the policy adds (operator.md 7.1)."""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.traits import Traits
from ..model import Body
from .inputs.driver_files import Files, Part
from .inputs.driver_settings import DriverPod
from .kube import metadata
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
OS_RELEASE = Volume.host("host-os-release", "/etc/os-release")
FIRMWARE_PATH = Volume.host("firmware-search-path", "/sys/module/firmware_class/parameters/path")
FIRMWARE = Volume.host("nv-firmware", "/run/nvidia/driver/lib/firmware", "DirectoryOrCreate")
NETWORK_SOURCES = "/run/mellanox/drivers/usr/src"
MEMORY_ONLINE = "/sys/devices/system/memory/auto_online_blocks"

TRUSTED_CA, TRUSTED_CA_KEY = "gpu-operator-trusted-ca", "ca-bundle.crt"
INJECT = "config.openshift.io/inject-trusted-cabundle"


def mount_node(container: Container, traits: Traits, *, host_sources: bool) -> None:
    """Give the driver's CONTAINER what it needs of the node; HOST_SOURCES as in `network_sources`."""
    fabric_manager = Volume.host("run-nvidia-fabricmanager", "/run/nvidia-fabricmanager", "DirectoryOrCreate")
    topology_daemon = Volume.host("run-nvidia-topologyd", "/run/nvidia-topologyd", "DirectoryOrCreate")
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(fabric_manager, "/run/nvidia-fabricmanager").mount(topology_daemon, "/run/nvidia-topologyd")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log")
    container.mount(OS_RELEASE, "/host-etc/os-release", read_only=True)
    container.mount(network_sources(host=host_sources), NETWORK_SOURCES, propagation="HostToContainer")
    container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")
    if traits.driver_sees_system_devices:
        devices = Volume.host("host-sys-devices-system", "/sys/devices/system", "Directory")
        container.mount(devices, "/sys/devices/system")
    else:
        container.mount(Volume.host("sysfs-memory-online", MEMORY_ONLINE), MEMORY_ONLINE)
    mount_firmware(container)
    if traits.driver_probe_script:
        container.mount(STARTUP_PROBE, PROBE, sub_path="startup-probe.sh")


def network_sources(*, host: bool) -> Volume:
    """The sources of the network driver, against which nvidia-peermem is built: the node's own, or those of a network
    driver container.
    """
    return Volume.host("mlnx-ofed-usr-src", "/usr/src" if host else NETWORK_SOURCES, "DirectoryOrCreate")


def mount_firmware(container: Container) -> None:
    """Let CONTAINER install firmware, and tell the kernel where it is."""
    container.mount(FIRMWARE_PATH, "/sys/module/firmware_class/parameters/path").mount(FIRMWARE, "/lib/firmware")


def mount_host_manager(container: Container) -> None:
    """Give the driver of virtual machines' hosts what it needs beside (operator.md 10.3)."""
    container.mount(Volume.host("cgroup", "/sys/fs/cgroup"), "/sys/fs/cgroup")
    container.mount(Volume.host("vfio", "/dev/vfio"), "/dev/vfio")


def mount_toolkit(sidecar: Container, *, host_sources: bool, firmware: bool) -> None:
    """Give the SIDECAR that builds on OpenShift what it needs of the node (operator.md 7.1, 10.3)."""
    sidecar.mount(VAR_LOG, "/var/log").mount(OS_RELEASE, "/host-etc/os-release", read_only=True)
    sidecar.mount(network_sources(host=host_sources), NETWORK_SOURCES, propagation="HostToContainer")
    if firmware:
        mount_firmware(sidecar)


def mount_authorities(container: Container) -> None:
    """Let CONTAINER trust the authorities of the cluster's proxy (operator.md 8.2)."""
    bundle = Volume.config_map(TRUSTED_CA, TRUSTED_CA, items={TRUSTED_CA_KEY: "tls-ca-bundle.pem"})
    container.mount(bundle, "/etc/pki/ca-trust/extracted/pem", read_only=True)


def trusted_authorities(namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The ConfigMap that OpenShift fills with the authorities of the cluster's proxy.

    Without data, where the operator has an empty text under the key: what Git says would be written back over the
    bundle whenever the cluster is synced.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(TRUSTED_CA, namespace, labels={INJECT: "true", **(labels or {})}),
    }


def mount_files(container: Container, part: Part, target: DriverPod) -> None:
    """Give CONTAINER, which is PART of the pod, its share of the files that the policy brings along."""
    for files in target.files:
        if part in files.parts:
            source = volume(files)
            for key, path in files.paths.items():
                container.mount(source, path, read_only=True, sub_path=key)
    for file in target.host_files:
        if part in file.parts:
            container.mount(Volume.host(file.volume, file.path, file.kind), file.target, read_only=True)


def volume(files: Files) -> Volume:
    """The volume of FILES: the keys that are mounted, each under its own name."""
    items = {key: key for key in files.paths}
    if files.kind == "Secret":
        return Volume.secret(files.volume, files.name, items=items)
    return Volume.config_map(files.volume, files.name, items=items)
