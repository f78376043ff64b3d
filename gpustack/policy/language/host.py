"""What is about nodes or about the operator itself: paths, `toolkit`, CDI, Pod Security, `operator`, GDS, GDRCopy, node
status; and `nodePools[].host`, what is set up on a pool's nodes themselves, below Kubernetes.

The latter solves: nouveau, the IOMMU, huge pages and services of the driver stand in one file for each system that
nodes run, and in nobody's review. Here they are said once, and what a system does with that is rendered, printed or
refused.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from .base import Own, Section, items, mapping, own, section
from .dcgm import ServiceMonitor
from .forms import form, refuse_as
from .operand import ImageSource, Operand, SideModule
from .types import Annotations, AtLeast1, DnsLabel, HostPath, Labels, ObjectName, Text


class HostPaths(Section):
    """Where things are on the nodes."""

    rootFS: Annotated[HostPath, Own("hostPaths.rootFS")] = own("hostPaths.rootFS")
    """The node's root file system, as components see it. Absent or empty: /."""
    driverInstallDir: Annotated[HostPath, Own("hostPaths.driverInstallDir")] = own("hostPaths.driverInstallDir")
    """Root of the driver's files: another folder where the node image brings the driver. Absent or empty:
    /run/nvidia/driver."""
    kubeletRootDir: Annotated[HostPath, Own("hostPaths.kubeletRootDir")] = own("hostPaths.kubeletRootDir")
    """The kubelet's folder, for the pod resources that the exporter reads. Absent or empty: /var/lib/kubelet."""


class Toolkit(Operand):
    """The container toolkit. Its `env` also says where the runtime's files and sockets are."""

    installDir: Annotated[HostPath, Own("toolkit.installDir")] = own("toolkit.installDir")
    """Folder on the node that the toolkit is installed into. Absent or empty: /usr/local/nvidia."""


class Cdi(Section):
    """The container device interface: the runtime injects GPUs by name, not by environment variable."""

    enabled: bool | None = None
    """Whether CDI is used. Absent: the default of the release, true since v25.10."""
    default: bool | None = None
    """Without effect since v25.10. Absent: not set."""
    nriPluginEnabled: bool = False
    """Whether an NRI plugin injects GPUs, without RuntimeClasses or a change to the runtime's files. Absent: false."""


class Psa(Section):
    """Pod Security admission of the namespace."""

    enabled: bool | None = None
    """Whether the namespace is labelled for privileged pods; needed where the cluster enforces a stricter level.
    Absent: false."""


class Psp(Section):
    """Pod Security policies, which Kubernetes 1.25 removed."""

    enabled: bool | None = None
    """Without effect. Absent: not set."""


class OperatorMetrics(Section):
    """Metrics of the operator's own pod, which is not rendered."""

    serviceMonitor: ServiceMonitor = section()
    """How Prometheus finds them."""


class Operator(Section):
    """Settings of the operator that outlive it. Those of its own pod mean nothing here: there is no such pod."""

    runtimeClass: Annotated[ObjectName, Own("operator.runtimeClass")] = own("operator.runtimeClass")
    """Name of the RuntimeClass for pods that use GPUs. Absent or empty: nvidia."""
    use_ocp_driver_toolkit: bool = True
    """Whether the driver is built in OpenShift's driver toolkit, on OpenShift and where the toolkit's image is known.
    Absent: true."""
    defaultRuntime: Text | None = None
    """Without effect in every release: the runtime is that of the nodes. Absent: not set."""
    labels: Labels = mapping()
    """Labels of the operator's own pod, which is not rendered. Absent: none."""
    annotations: Annotations = mapping()
    """Annotations of the operator's own pod, which is not rendered. Absent: none."""
    initContainer: ImageSource = section()
    """Image that older releases used for init containers; without effect since v26.3."""
    metrics: OperatorMetrics = section()


class Gds(SideModule):
    """GPUDirect Storage: the kernel module nvidia-fs, built in the driver's pod. `args` has no effect."""


class GdrCopy(SideModule):
    """GDRCopy, quick copies between CPU and GPU memory: gdrdrv, built in the driver's pod. `args` has no effect."""


class NodeStatusExporter(Operand):
    """The exporter of a node's validation state for Prometheus, on port 8000."""


SECRET = {"auth", "identitytoken", "password", "token"}
"""Keys of containerd's configuration with what nobody may read (containerd, configuration of registries)."""


def _keys(said: Any) -> set[str]:
    below = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return set(said if isinstance(said, dict) else ()).union(*map(_keys, below))


def _toml(text: str) -> str:
    import tomllib  # 10 ms, which only a policy with a drop-in pays

    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refuse_as("drop_in", "toml", problem=str(error)) from None
    if not said:
        raise refuse_as("drop_in", "empty")
    if "imports" in said:
        raise refuse_as("drop_in", "imports")
    if secret := sorted(SECRET & _keys(said)):
        raise refuse_as("drop_in", "secret", key=secret[0])
    return text if text.endswith("\n") else f"{text}\n"


class NodeHost(Section):
    """What is set up on the nodes of a pool before Kubernetes starts there."""

    blockNouveau: bool = False
    """Whether the kernel's own driver for NVIDIA's GPUs is kept from loading. Absent: false."""
    iommu: Literal["intel", "amd"] | None = None
    """Turns on the IOMMU of processors of this vendor, in pass-through mode for the host. Absent: as it is."""
    vfio: list[Annotated[str, form("pci_id")]] = items()
    """Devices that vfio-pci takes at boot, as `lspci -nn` prints them: 10de:2330. Absent: none; `vfioManager` binds
    GPUs while the node runs."""
    hugePages: dict[Literal["2Mi", "1Gi"], AtLeast1] = mapping()
    """How many large pages of memory are set aside at boot, by their size. Absent: none."""
    fabricManager: bool = False
    """Whether the service nvidia-fabricmanager of the node's own driver is on. Absent: false."""
    maskImex: bool = False
    """Whether nvidia-imex is kept from starting, as with compute domains the DRA driver runs it. Absent: false."""
    containerdDropIn: Annotated[Text, AfterValidator(_toml)] | None = None
    """A part of containerd's configuration, as TOML. Absent: none."""
    pinKernel: bool = False
    """Whether the packages of the pool's `kernel` are held. Absent: false."""
    machineConfigPool: DnsLabel | None = None
    """On OpenShift, the MachineConfigPool of the nodes: its MachineConfig is rendered, and all its nodes reboot.
    Absent: no MachineConfig is rendered; `gpustack nodes` prints it."""

    def model_post_init(self, _: Any) -> None:
        if self.machineConfigPool and not self.model_dump(exclude={"machineConfigPool"}, exclude_defaults=True):
            raise refuse_as("node_host", "nothing")
