"""What is below a simulated node: the hardware and the host, their state, and what is made to go wrong.

A Machine outlives pods, and what of it survives a reboot is as in life (reconciler.md M12, D8): the MIG mode does, the
MIG geometry, the loaded driver and everything in /run do not. `Faults` are switches: a test sets them with
`Kubelets.change(machine, ...)`, before or while something happens.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.control_plane.api import Body

BASICS = {"cpu": "128", "memory": "1Ti", "pods": "250", "ephemeral-storage": "1Ti"}
PCI_LABEL = "feature.node.kubernetes.io/pci-10de.present"


@dataclass
class Faults:
    """What goes wrong on a machine; everything is off at first."""

    pull_fails: bool = False
    """Images of the driver can't be pulled: ImagePullBackOff until it is taken back."""
    driver_crashes: bool = False
    """The driver's container ends right after its start, again and again."""
    driver_never_ready: bool = False
    """The driver's startup probe never succeeds."""
    driver_manager_fails: bool = False
    """The init container of the driver pod gives up after it paused the operands (D11)."""
    pods_hang: bool = False
    """Pods with a deletion timestamp stay (a dead NFS server, P21)."""
    plugin_never_ready: bool = False
    validator_never_ready: bool = False
    gfd_gone: bool = False
    """GFD publishes nothing: mig.capable and gpu.product are missing (L29)."""
    mig_fails: bool = False
    """Applying a MIG configuration fails: state failed; operands stay paused if the process had a success (M14)."""
    mig_wait_fails: bool = False
    """The wait for paused pods times out: the state stays pending, the operands stay paused, no retry (M13)."""
    mig_hangs: bool = False
    """The manager stays in pending for ever."""
    mig_without_effect: bool = False
    """Success is reported, the geometry is the old one (P40)."""
    mig_needs_reboot: bool = False
    """A change of the MIG mode needs a reboot: done with WITH_REBOOT, else failed (M8)."""


@dataclass(eq=False)
class Machine:
    """One GPU node's hardware and host."""

    name: str
    gpus: int = 8
    product: str = "NVIDIA-A100-SXM4-80GB"
    device: str = "0x20B210DE"
    """What device filters of MIG configurations are compared with."""
    mig_capable: bool = True
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    kernel: str = "5.15.0-105-generic"
    os: tuple[str, str] = ("ubuntu", "22.04")
    nfd: bool = True
    """Node feature discovery has labelled it. A node that an autoscaler has just added is bare."""
    host_driver: bool = False
    """The operating system's image brings the driver: it is loaded at each boot."""
    replicas: int = 1
    """How often the device plugin offers each device: time slicing."""
    renamed: bool = False
    """Whether what it offers more than once is called `.shared`."""
    faults: Faults = field(default_factory=Faults)

    # What the host is in.
    up: bool = True
    driver: str | None = None
    """The digest of the loaded driver; None while no module is loaded."""
    files: set[str] = field(default_factory=set)
    """What is in /run/nvidia/validations."""
    toolkit: bool = False
    """The container toolkit is installed on the host: by the operand, or with the operating system."""
    mig_mode: bool = False
    geometry: dict[str, int] = field(default_factory=dict)
    """MIG profile -> instances, all GPUs together."""
    boots: int = 1
    machine_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    node: Body = field(default_factory=dict, repr=False)
    """The Node object as it was last seen."""
    _waiting: set[asyncio.Future[None]] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self.driver = "host" if self.host_driver else None

    # --- for what runs on it (in the kubelets' thread) ----------------------------------------------------------------

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until TRUE is; asked again whenever something about the machine changes."""
        while not true():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)

    def changed(self) -> None:
        """Something about the machine changed: whoever waits looks again."""
        for future in list(self._waiting):
            if not future.done():
                future.set_result(None)

    def write(self, *files: str) -> None:
        """Create files in /run/nvidia/validations."""
        self.files.update(files)
        self.changed()

    def remove(self, *files: str) -> None:
        """Remove files in /run/nvidia/validations."""
        self.files.difference_update(files)
        self.changed()

    def label(self, key: str) -> str:
        """A label of the Node, "" where there is none."""
        return str(self.node.get("metadata", {}).get("labels", {}).get(key, ""))

    def annotation(self, key: str) -> str:
        """An annotation of the Node, "" where there is none."""
        return str(self.node.get("metadata", {}).get("annotations", {}).get(key, ""))

    def resources(self, strategy: str) -> dict[str, int]:
        """What a device plugin with the MIG strategy `none`, `single` or `mixed` offers here."""
        end = ".shared" if self.renamed else ""
        return {f"{name}{end}": count * self.replicas for name, count in self._devices(strategy).items()}

    def _devices(self, strategy: str) -> dict[str, int]:
        if strategy == "none" or not self.mig_mode:
            return {"nvidia.com/gpu": self.gpus}
        if strategy == "single":
            return {"nvidia.com/gpu": sum(self.geometry.values())}
        return {f"nvidia.com/mig-{profile.replace('+', '.')}": count for profile, count in self.geometry.items()}

    def rebooted(self) -> None:
        """What a reboot does to it."""
        self.driver, self.geometry = "host" if self.host_driver else None, {}
        self.files.clear()
        self.boots += 1
        self.boot_id = str(uuid.uuid4())
        self.changed()


def nfd_labels(machine: Machine) -> dict[str, str]:
    """What node feature discovery says about it."""
    id_, version = machine.os
    return {
        PCI_LABEL: "true",
        "feature.node.kubernetes.io/kernel-version.full": machine.kernel,
        "feature.node.kubernetes.io/system-os_release.ID": id_,
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": version,
        "feature.node.kubernetes.io/system-os_release.VERSION_ID.major": version.partition(".")[0],
    }


def node_body(machine: Machine) -> Body:
    """The Node object as the kubelet registers it."""
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **machine.labels,
        **(nfd_labels(machine) if machine.nfd else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"taints": machine.taints} if machine.taints else {},
    }


def node_status(machine: Machine) -> Body:
    """What the kubelet says when it has registered the node."""
    info = {
        "machineID": machine.machine_id,
        "systemUUID": machine.machine_id,
        "bootID": machine.boot_id,
        "kernelVersion": machine.kernel,
        "osImage": " ".join(machine.os),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": "v1.37.2",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
    good = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    conditions = [{"type": name, "status": is_so, "reason": "Kubelet", "message": ""} for name, is_so in good.items()]
    return {"conditions": conditions, "capacity": BASICS, "allocatable": BASICS, "nodeInfo": info}
