"""`sandboxWorkloads` and what serves it: GPUs for virtual machines (KubeVirt) and for Kata containers. `kubevirt`:
which of them KubeVirt lets virtual machines use.

KubeVirt hands out no device that its configuration doesn't permit by PCI id or vGPU type. The node pools say which GPUs
serve virtual machines, so the list is made from them; what is written there comes on top.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from .base import Own, Section, items, mapping, own, section
from .device_plugin import NamedConfigs
from .driver import ConfigMapRef
from .forms import absent, form
from .operand import DriverManager, Operand
from .types import DnsLabel, DnsSubdomain, HostPath, ImageReference, Labels, LabelValue, ObjectName


class SandboxWorkloads(Section):
    """Whether nodes may serve virtual machines or Kata containers instead of containers."""

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
    kernelModuleConfig: ConfigMapRef = section()
    """ConfigMap with parameters of the kernel modules."""


class VgpuDevicesConfig(NamedConfigs):
    """Named sets of vGPU devices, in one text under the key `config.yaml`; without a name, those of the release."""

    default: Annotated[LabelValue, Own("vgpuDeviceManager.config.default")] = own("vgpuDeviceManager.config.default")
    """Set that nodes without the label `nvidia.com/vgpu.config` get. Absent or empty: default."""


class VgpuDeviceManager(Operand):
    """The manager that creates vGPU devices on a node."""

    config: VgpuDevicesConfig = section()


class VfioManager(Operand):
    """The manager that binds GPUs to vfio-pci, for passthrough."""

    driverManager: DriverManager = section()


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


class CcManager(Operand):
    """The manager of confidential computing, in mode kata only."""

    defaultMode: Literal["on", "off", "devtools"] | None = None
    """Confidential-computing mode of GPUs on nodes without the label `nvidia.com/cc.mode`. Absent: the default of the
    release, on."""


Target = Literal["kubevirt", "hyperconverged"]
VgpuName = Annotated[str, form("vgpu_name")]


class PermittedDevice(Section):
    """A device of the nodes that virtual machines may have."""

    resourceName: Annotated[str, form("resource_name")]
    """Resource that virtual machines ask for, such as `nvidia.com/GA102GL_A10` or `nvidia.com/NVIDIA_A10-24Q`."""
    externalResourceProvider: bool = False
    """Whether a device plugin other than KubeVirt's own offers the resource. Absent: false."""


class PermittedPciDevice(PermittedDevice):
    """A PCI device that virtual machines may have as a whole."""

    selector: Annotated[str, form("pci_selector")]
    """Vendor and device id, such as `10DE:2236`."""


class PermittedMediatedDevice(PermittedDevice):
    """A type of mediated devices, such as a vGPU type."""

    name: VgpuName
    """Name of the type as the driver writes it, such as `NVIDIA A10-24Q`."""


class KubeVirt(Section):
    """What is added to the configuration of KubeVirt, or of the operator that writes it."""

    target: Target = "kubevirt"
    """Object that holds the configuration: KubeVirt's own, or that of the HyperConverged operator, which overwrites
    KubeVirt's. Absent: hyperconverged on OpenShift, else kubevirt."""
    name: DnsSubdomain = "kubevirt"
    """Name of that object. Absent: kubevirt, or kubevirt-hyperconverged."""
    namespace: DnsLabel = "kubevirt"
    """Namespace of that object. Absent: kubevirt, or kubevirt-hyperconverged, on OpenShift openshift-cnv."""
    featureGates: list[Annotated[str, form("kubevirt_gate")]] | None = None
    """All feature gates of KubeVirt: its list is replaced as one. HostDevices is added to it. Only with the target
    kubevirt. Absent: the list is left alone."""
    pciDevices: list[PermittedPciDevice] = items()
    """Further PCI devices; one that a pool has as well replaces the pool's. Absent: those of the pools."""
    mediatedDevices: list[PermittedMediatedDevice] = items()
    """Further types of mediated devices; one that a pool has too replaces the pool's. Absent: those of the pools."""
    vgpuNames: Annotated[dict[Annotated[str, form("vgpu_type")], VgpuName], BeforeValidator(absent)] = mapping()
    """How the driver writes vGPU types, by type, where it is neither `NVIDIA` nor, up to Turing, `GRID` and the type.
    Absent: as said."""
