"""`gpuCluster`: GPUs by dynamic resource allocation instead of the device plugin (the operator's kind GPUCluster)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from .base import Section, items, mapping, section
from .daemonsets import DaemonSets
from .dcgm import Dcgm, DcgmExporter
from .forms import absent
from .operand import EnvVar, ImageSource, ResourceRequirements
from .types import HostPath


class DraContainer(Section):
    """A container of the DRA driver."""

    env: list[EnvVar] = items()
    """Environment variables; they replace built-in ones of the same name. Absent: the built-in ones."""
    resources: ResourceRequirements | None = None
    """CPU and memory. Absent: the built-in ones."""


class Healthcheck(Section):
    """The health check of a kubelet plugin."""

    enabled: bool | None = None
    """Whether the plugin answers health checks. Absent: true."""
    port: int | None = None
    """TCP port of the check on the node. Absent: the plugin's own."""


class KubeletPlugin(DraContainer):
    """The part of the DRA driver that runs on every node."""

    healthcheck: Healthcheck = section()
    """Its health check."""


class DraGpus(Section):
    """Allocation of GPUs."""

    kubeletPlugin: KubeletPlugin = section()
    """The part that runs on every node."""


class ComputeDomains(Section):
    """Groups of nodes that share memory over NVLink."""

    enabled: bool | None = None
    """Whether compute domains are offered. Absent: true."""
    controller: DraContainer = section()
    """The controller, one per cluster."""
    kubeletPlugin: KubeletPlugin = section()
    """The part that runs on every node."""


class DraDriver(ImageSource):
    """NVIDIA's driver for dynamic resource allocation."""

    featureGates: Annotated[dict[str, bool], BeforeValidator(absent)] = mapping()
    """Features that are switched on or off, by name. Absent: the driver's own defaults."""
    gpus: DraGpus = section()
    """Allocation of GPUs."""
    computeDomains: ComputeDomains = section()
    """Groups of nodes that share memory over NVLink."""


class DraHostPaths(Section):
    """Where things are on the nodes."""

    driverInstallDir: HostPath | None = None
    """Root of the driver's files. Absent or empty: /run/nvidia/driver."""
    kubeletRootDir: HostPath | None = None
    """The kubelet's folder. Absent or empty: /var/lib/kubelet."""


class GpuCluster(Section):
    """A cluster whose GPUs are allocated by DRA. Being there at all switches the device plugin's components off."""

    draDriver: DraDriver = section()
    """The DRA driver."""
    daemonsets: DaemonSets = section()
    """What holds for the DaemonSets of all components."""
    dcgm: Dcgm = section()
    """The stand-alone DCGM host engine."""
    dcgmExporter: DcgmExporter = section()
    """The exporter of GPU metrics."""
    hostPaths: DraHostPaths = section()
    """Where things are on the nodes."""
