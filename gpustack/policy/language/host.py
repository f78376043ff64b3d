"""What is about the node or about the operator itself: paths, `toolkit`, CDI, Pod Security, `operator`, GDS, GDRCopy,
node status."""

from __future__ import annotations

from typing import Annotated

from .base import Own, Section, mapping, own, section
from .dcgm import ServiceMonitor
from .operand import ImageSource, Operand, SideModule
from .types import Annotations, HostPath, Labels, ObjectName, Text


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
    """Whether an NRI plugin injects GPUs, without RuntimeClasses and without a change to the runtime's files. Absent:
    false."""


class Psa(Section):
    """Pod Security admission."""

    enabled: bool | None = None
    """Whether the namespace is labelled for privileged pods; needed where the cluster enforces a stricter level.
    Absent: false."""


class Psp(Section):
    """Pod Security policies, which Kubernetes 1.25 removed."""

    enabled: bool | None = None
    """Without effect. Absent: not set."""


class OperatorMetrics(Section):
    """Metrics of the operator's own pod."""

    serviceMonitor: ServiceMonitor = section()
    """How Prometheus finds them."""


class Operator(Section):
    """Settings of the operator. Those of its own pod mean nothing here: there is no such pod."""

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
    """Metrics of the operator's own pod, which is not rendered."""


class Gds(SideModule):
    """GPUDirect Storage: the kernel module nvidia-fs, built in the driver's pod. `args` has no effect."""


class GdrCopy(SideModule):
    """GDRCopy: the kernel module gdrdrv, built in the driver's pod. `args` has no effect."""


class NodeStatusExporter(Operand):
    """The exporter of a node's validation state for Prometheus, on port 8000."""
