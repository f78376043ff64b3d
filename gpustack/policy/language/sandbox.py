"""`sandboxWorkloads` and what serves it: GPUs for virtual machines (KubeVirt) and for Kata containers."""

from __future__ import annotations

from typing import Annotated, Literal

from .base import Own, Section, items, mapping, own, section
from .device_plugin import NamedConfigs
from .driver import ConfigMapRef
from .operand import DriverManager, Operand
from .types import DnsSubdomain, HostPath, ImageReference, Labels, LabelValue, ObjectName


class SandboxWorkloads(Section):
    """Whether nodes may serve virtual machines instead of containers."""

    enabled: bool | None = None
    """Whether nodes are told apart by the label `nvidia.com/gpu.workload.config`. Absent: the default of the release,
    false."""
    defaultWorkload: Literal["container", "vm-passthrough", "vm-vgpu"] = "container"
    """What nodes without that label serve. Absent: container."""
    mode: Literal["kubevirt", "kata"] = own("sandboxWorkloads.mode")
    """What runs on nodes for passthrough: virtual machines of KubeVirt or Kata containers. Absent: kubevirt."""


class VgpuManager(Operand):
    """The vGPU host driver. NVIDIA publishes no image of it: repository and version are your own."""

    driverManager: DriverManager = section()
    """The init container that unloads an old driver first."""
    kernelModuleConfig: ConfigMapRef = section()
    """ConfigMap with parameters of the kernel modules."""


class VgpuDevicesConfig(NamedConfigs):
    """Named sets of vGPU devices, in one text under the key `config.yaml`."""

    default: Annotated[LabelValue, Own("vgpuDeviceManager.config.default")] = own("vgpuDeviceManager.config.default")
    """Set that nodes without the label `nvidia.com/vgpu.config` get. Absent or empty: default."""


class VgpuDeviceManager(Operand):
    """The manager that creates vGPU devices on a node."""

    config: VgpuDevicesConfig = section()
    """Named sets of devices; without a name, those that come with the release."""


class VfioManager(Operand):
    """The manager that binds GPUs to vfio-pci, for passthrough."""

    driverManager: DriverManager = section()
    """The init container that unloads an old driver first."""


class SandboxDevicePlugin(Operand):
    """The device plugin for virtual machines of KubeVirt."""


class KataSandboxDevicePlugin(Operand):
    """The device plugin for Kata containers."""


class KataArtifacts(Section):
    """Where the guest kernel and image of a Kata runtime class come from."""

    url: ImageReference
    """Reference of the image that holds them."""
    pullSecret: ObjectName | None = None
    """Secret with credentials for its registry. Absent or empty: none."""


class KataRuntimeClass(Section):
    """A RuntimeClass of the Kata manager."""

    name: DnsSubdomain
    """Name of the RuntimeClass."""
    nodeSelector: Labels = mapping()
    """Labels of the nodes that it may run on. Absent: any."""
    artifacts: KataArtifacts | None = None
    """Guest kernel and image. Absent: none."""


class KataManagerConfig(Section):
    """Runtime classes of the Kata manager."""

    artifactsDir: Annotated[HostPath, Own("kataManager.config.artifactsDir")] = own("kataManager.config.artifactsDir")
    """Folder on the node for kernels and images. Absent or empty: /opt/nvidia-gpu-operator/artifacts/runtimeclasses."""
    runtimeClasses: list[KataRuntimeClass] = items()
    """The runtime classes. Absent: none."""


class KataManager(Operand):
    """The Kata manager. Deprecated: since v26.3 `kataSandboxDevicePlugin` and Kata's own installation replace it."""

    config: KataManagerConfig = section()
    """Its runtime classes."""


class CcManager(Operand):
    """The manager of confidential computing, in mode kata only."""

    defaultMode: Literal["on", "off", "devtools"] | None = None
    """Confidential-computing mode of GPUs on nodes without the label `nvidia.com/cc.mode`. Absent: the default of the
    release, on."""
