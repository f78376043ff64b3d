"""`gpuCluster`: GPUs by dynamic resource allocation instead of the device plugin (the operator's kind GPUCluster).

What it does not say of `daemonsets`, `dcgm`, `dcgmExporter` and `hostPaths` it takes from the policy's sections of the
same name, as the chart makes both custom resources of the same values (defaults.py).

`computeDomains` is nodes that share memory over NVLink, beside a device plugin that keeps the GPUs. The operator has
compute domains with `gpuCluster` only. Racks such as GB200 NVL72 are run the other way round too: pods ask the device
plugin for GPUs, as everywhere else in the fleet, and a ComputeDomain for the memory channel between their nodes. With
`gpuCluster` the section is refused, because there compute domains are `gpuCluster.draDriver.computeDomains`.
"""

from typing import Annotated

from pydantic import BeforeValidator

from .base import Own, Section, items, mapping, own, section
from .daemonsets import DaemonSets
from .dcgm import Dcgm, DcgmExporter
from .forms import absent, form
from .operand import EnvVar, ImageSource, ResourceRequirements
from .types import HostPath, Port

FeatureGates = Annotated[dict[Annotated[str, form("feature_gate")], bool], BeforeValidator(absent)]


class DraContainer(Section):
    """A container of the DRA driver."""

    env: list[EnvVar] = items()
    """Environment variables; they replace built-in ones of the same name. Absent: the built-in ones."""
    resources: ResourceRequirements | None = None
    """CPU and memory. Absent: none."""


class Healthcheck(Section):
    """The health check of a kubelet plugin."""

    enabled: bool = True
    """Whether the plugin answers health checks and the kubelet restarts it when it does not. Absent: true."""
    port: Port = 51515
    """TCP port of the check in the pod. Absent: 51515."""


class GpusHealthcheck(Healthcheck):
    """The health check of the plugin that allocates GPUs. Source of both ports: the DRA driver's chart."""

    port: Port = 51516
    """TCP port of the check in the pod. Absent: 51516."""


class KubeletPlugin(DraContainer):
    """The part of the DRA driver that runs on the nodes."""

    healthcheck: Healthcheck = section()


class GpusPlugin(KubeletPlugin):
    """The part of the DRA driver that allocates GPUs, on every node."""

    healthcheck: GpusHealthcheck = section()


class DraGpus(Section):
    """Allocation of GPUs."""

    kubeletPlugin: GpusPlugin = section()


class ComputeDomains(Section):
    """Groups of nodes that share memory over NVLink."""

    enabled: bool = True
    """Whether compute domains are offered. Absent: true."""
    controller: DraContainer = section()
    """The controller, one per cluster."""
    kubeletPlugin: KubeletPlugin = section()


class DraDriver(ImageSource):
    """NVIDIA's driver for dynamic resource allocation. Its pull policy and pull secrets also serve the validator."""

    featureGates: FeatureGates = mapping()
    """Features that are switched on or off, by name. Absent: the driver's own defaults."""
    gpus: DraGpus = section()
    computeDomains: ComputeDomains = section()


class DraHostPaths(Section):
    """Where things are on the nodes."""

    driverInstallDir: Annotated[HostPath, Own("hostPaths.driverInstallDir")] = own("hostPaths.driverInstallDir")
    """Root of the driver's files. Absent: as `hostPaths` says. Empty: /run/nvidia/driver."""
    kubeletRootDir: Annotated[HostPath, Own("hostPaths.kubeletRootDir")] = own("hostPaths.kubeletRootDir")
    """The kubelet's folder. Absent: as `hostPaths` says. Empty: /var/lib/kubelet."""


class GpuCluster(Section):
    """A cluster whose GPUs are allocated by DRA. Being there at all switches the device plugin's components off."""

    draDriver: DraDriver = section()
    daemonsets: DaemonSets = section()
    """What holds for the DaemonSets of all components. Each field that is absent is that of `daemonsets` beside
    `gpuCluster`. Update strategy and security context have no effect; the priority holds for the DRA driver."""
    dcgm: Dcgm = section()
    """The stand-alone DCGM host engine. Each field that is absent is that of `dcgm` beside `gpuCluster`."""
    dcgmExporter: DcgmExporter = section()
    """The exporter of GPU metrics. Each field that is absent is that of `dcgmExporter` beside `gpuCluster`."""
    hostPaths: DraHostPaths = section()


class ComputeDomainsBesideThePlugin(ImageSource):
    """Nodes that share memory over NVLink, by the DRA driver beside the device plugin, from Kubernetes 1.34."""

    enabled: bool = False
    """Whether compute domains are offered, on the nodes of the pools whose GPUs can have them. Absent: false."""
    featureGates: FeatureGates = mapping()
    """Features of the DRA driver that are switched on or off, by name. Absent: the driver's own defaults."""
    controller: DraContainer = section()
    """The controller, one per cluster."""
    kubeletPlugin: KubeletPlugin = section()
