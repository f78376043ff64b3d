"""What the containers of a driver's pod see of the node, and the files that the policy adds (operator.md 7.1)."""

from collections.abc import Mapping

from ...catalog.traits import Traits
from ...model import Body
from ..parts.common_inputs import Common
from ..parts.daemonset import VALIDATIONS, host_root
from ..parts.kube import metadata
from ..parts.pod import Container, Volume
from .driver_files_inputs import Files, HostFile, Part
from .driver_settings_inputs import DriverCommon, DriverPod

ENTRYPOINT = "nvidia-driver-startup-probe"
PROBE = "/usr/local/bin/startup-probe.sh"

HOST_MANAGER = "vgpu-host-manager"
"""The type of a driver that serves virtual machines' hosts."""

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

FABRIC_MANAGER = Volume.host("run-nvidia-fabricmanager", "/run/nvidia-fabricmanager", "DirectoryOrCreate")
TOPOLOGY_DAEMON = Volume.host("run-nvidia-topologyd", "/run/nvidia-topologyd", "DirectoryOrCreate")
DEVICES = Volume.host("host-sys-devices-system", "/sys/devices/system", "Directory")
MEMORY = Volume.host("sysfs-memory-online", "/sys/devices/system/memory/auto_online_blocks")
CGROUP, VFIO = Volume.host("cgroup", "/sys/fs/cgroup"), Volume.host("vfio", "/dev/vfio")

TRUSTED_CA = "gpu-operator-trusted-ca"


def declared(common: Common, settings: DriverCommon) -> list[Volume]:
    """The volumes of a driver's pod in the operator's order, less those that it appends.

    Nothing in the pod looks at the results of validation, but the digest counts that volume too."""
    traits = common.traits
    return [
        *(RUN_NVIDIA, VAR_LOG, DEV_LOG, OS_RELEASE),
        *((CGROUP, VFIO) if settings.type == HOST_MANAGER else ()),
        *(FABRIC_MANAGER, TOPOLOGY_DAEMON, network_sources(settings), MELLANOX, VALIDATIONS),
        *(host_root(common), HOST_SYS, FIRMWARE_PATH, system_devices(traits), FIRMWARE),
        *((STARTUP_PROBE,) if traits.driver_probe_script else ()),
    ]


def system_devices(traits: Traits) -> Volume:
    """What the driver sees of /sys/devices/system: all, or the file that says whether new memory comes online."""
    return DEVICES if traits.driver_sees_system_devices else MEMORY


def mount_node(container: Container, traits: Traits, settings: DriverCommon) -> None:
    """Give the driver's CONTAINER what it needs of the node.

    One of `drivers` has another order, and for virtual machines' hosts it needs more (operator.md 10.3)."""
    container.mount(RUN_NVIDIA, "/run/nvidia", propagation="Bidirectional")
    container.mount(FABRIC_MANAGER, "/run/nvidia-fabricmanager").mount(TOPOLOGY_DAEMON, "/run/nvidia-topologyd")
    container.mount(VAR_LOG, "/var/log").mount(DEV_LOG, "/dev/log")
    container.mount(OS_RELEASE, "/host-etc/os-release", read_only=True)
    if settings.type == HOST_MANAGER:
        container.mount(CGROUP, "/sys/fs/cgroup").mount(VFIO, "/dev/vfio")
    container.mount(network_sources(settings), NETWORK_SOURCES, propagation="HostToContainer")
    container.mount(MELLANOX, "/run/mellanox/drivers", propagation="HostToContainer")
    devices = system_devices(traits)
    for volume in (FIRMWARE_PATH, devices) if settings.type else (devices, FIRMWARE_PATH):
        container.mount(volume, volume.path)
    container.mount(FIRMWARE, "/lib/firmware")
    if traits.driver_probe_script:
        container.mount(STARTUP_PROBE, PROBE, sub_path="startup-probe.sh")


def network_sources(settings: DriverCommon) -> Volume:
    """The sources that nvidia-peermem is built against: the node's network driver's, or those of a container of it."""
    host = settings.host_mofed or settings.host_sources
    return Volume.host("mlnx-ofed-usr-src", "/usr/src" if host else NETWORK_SOURCES, "DirectoryOrCreate")


def mount_toolkit(sidecar: Container, settings: DriverCommon) -> None:
    """Give the SIDECAR that builds on OpenShift what it needs of the node (operator.md 7.1, 10.3)."""
    sidecar.mount(VAR_LOG, "/var/log")
    sidecar.mount(network_sources(settings), NETWORK_SOURCES, propagation="HostToContainer")
    sidecar.mount(OS_RELEASE, "/host-etc/os-release", read_only=True)
    if settings.type:
        sidecar.mount(FIRMWARE_PATH, FIRMWARE_PATH.path).mount(FIRMWARE, "/lib/firmware")


def mount_authorities(container: Container) -> None:
    """Let CONTAINER trust the authorities of the cluster's proxy (operator.md 8.2)."""
    bundle = Volume.config_map(TRUSTED_CA, TRUSTED_CA, items={"ca-bundle.crt": "tls-ca-bundle.pem"})
    container.mount(bundle, "/etc/pki/ca-trust/extracted/pem", read_only=True)


def trusted_authorities(namespace: str, labels: Mapping[str, str] | None = None) -> Body:
    """The ConfigMap that OpenShift fills with the authorities of the cluster's proxy.

    Without data, where the operator has an empty text under the key: what Git says would be written back over the
    bundle whenever the cluster is synced."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(
            TRUSTED_CA, namespace, labels={"config.openshift.io/inject-trusted-cabundle": "true", **(labels or {})}
        ),
    }


def mount_files(container: Container, part: Part, target: DriverPod) -> None:
    """Give CONTAINER, which is PART of the pod, its share of the files that the policy brings along."""
    for files in target.files:
        if part not in files.parts:
            continue
        if isinstance(files, HostFile):
            container.mount(Volume.host(files.volume, files.path, files.kind), files.target, read_only=True)
            continue
        source = volume(files)
        for key, path in files.paths.items():
            container.mount(source, path, read_only=True, sub_path=key)


def volume(files: Files) -> Volume:
    """The volume of FILES: the keys that are mounted, each under its own name."""
    items = {key: key for key in files.paths}
    if files.kind == "Secret":
        return Volume.secret(files.volume, files.name, items=items)
    return Volume.config_map(files.volume, files.name, items=items)
