"""`kubevirt`: which GPUs KubeVirt lets virtual machines use.

KubeVirt hands out no device that its configuration doesn't permit by PCI id or vGPU type. The node pools say which
GPUs serve virtual machines, so the list is made from them; what is written here comes on top.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from .base import Section, items, mapping
from .forms import absent, form
from .types import DnsLabel, DnsSubdomain

PCI_SELECTOR = form("pci_selector")
RESOURCE = form("resource_name")
VGPU_TYPE = form("vgpu_type")
VGPU_NAME = form("vgpu_name")
FEATURE_GATE = form("kubevirt_gate")
Target = Literal["kubevirt", "hyperconverged"]


class PermittedDevice(Section):
    """A device of the nodes that virtual machines may have."""

    resourceName: Annotated[str, RESOURCE]
    """Resource that virtual machines ask for, such as `nvidia.com/GA102GL_A10` or `nvidia.com/NVIDIA_A10-24Q`."""
    externalResourceProvider: bool = False
    """Whether a device plugin other than KubeVirt's own offers the resource. Absent: false."""


class PermittedPciDevice(PermittedDevice):
    """A PCI device that virtual machines may have as a whole."""

    selector: Annotated[str, PCI_SELECTOR]
    """Vendor and device id, such as `10DE:2236`."""


class PermittedMediatedDevice(PermittedDevice):
    """A type of mediated devices, such as a vGPU type."""

    name: Annotated[str, VGPU_NAME]
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
    featureGates: list[Annotated[str, FEATURE_GATE]] | None = None
    """All feature gates of KubeVirt: its list is replaced as one. HostDevices is added to it. Only with the target
    kubevirt. Absent: the list is left alone."""
    pciDevices: list[PermittedPciDevice] = items()
    """Further PCI devices; one that a pool has as well replaces the pool's. Absent: those of the pools."""
    mediatedDevices: list[PermittedMediatedDevice] = items()
    """Further types of mediated devices; one that a pool has too replaces the pool's. Absent: those of the pools."""
    vgpuNames: Annotated[dict[Annotated[str, VGPU_TYPE], Annotated[str, VGPU_NAME]], BeforeValidator(absent)] = (
        mapping()
    )
    """How the driver writes vGPU types, by type, where it is neither `NVIDIA` nor, up to Turing, `GRID` and the type.
    Absent: as said."""
