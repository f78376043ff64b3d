"""What virtual machines ask for: the resource names of GPUs and vGPU types, as KubeVirt's device plugin forms them.

KubeVirt permits a device by its PCI id or vGPU type and hands it out under a resource name. A name that the plugin does
not form leaves virtual machines pending, with nothing to tell why (bug-reports.md B57).
"""

import re
from collections.abc import Mapping

from gpustack.catalog import _data
from gpustack.catalog.gpus import VENDOR, Product

DOMAIN = "nvidia.com"
GRAPHICS = "GFX"
"""Ending of vGPU types on MIG instances with graphics. Drivers whose types don't end so leave it out, and the vGPU
device manager with them (NVIDIA/vgpu-device-manager v0.5.0)."""


def pci_selector(device: str) -> str:
    """How KubeVirt writes the PCI id DEVICE ("2236") of an NVIDIA GPU: "10DE:2236"."""
    return f"{VENDOR}:{device.upper()}"


def pci_resource(device: str) -> str:
    """The resource name of the GPU with PCI id DEVICE, bound to vfio-pci."""
    return f"{DOMAIN}/{_data.load('kubevirt')['pci'].get(device.upper(), device.lower())}"


def known(device: str) -> bool:
    """Whether the plugin's list has PCI id DEVICE, as far as the catalogue knows."""
    return device.upper() in _data.load("kubevirt")["pci"]


def vgpu_name(vgpu_type: str, product: Product | None, names: Mapping[str, str]) -> str:
    """How the driver of PRODUCT writes VGPU_TYPE ("A10-24Q"): "NVIDIA A10-24Q". NAMES, by type, win."""
    if vgpu_type in names:
        return names[vgpu_type]
    known = _data.load("kubevirt")["vgpu"]
    prefix = known["families"]["default"]
    if product is not None:
        prefix = known["products"].get(product.name) or known["families"].get(product.family, prefix)
    return f"{prefix} {vgpu_type.removesuffix(GRAPHICS)}"


def vgpu_resource(name: str) -> str:
    """The resource name of the vGPU type that the driver calls NAME: blanks become "_"."""
    return f"{DOMAIN}/{re.sub(r'[ ]+', '_', name)}"
