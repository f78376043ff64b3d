"""vGPU types, and what virtual machines ask for: the sets of devices that come with a release, the types that a GPU can
have, and the resource names of GPUs and vGPUs as KubeVirt's device plugin forms them.

KubeVirt permits a device by its PCI id or vGPU type and hands it out under a resource name. A name that the plugin does
not form leaves virtual machines pending, with nothing to tell why (bug-reports.md B57).

data/vgpu/default-vgpu-devices-config.yaml is at once the text of a ConfigMap (`texts`) and the data here.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpustack.catalog import _data, texts
from gpustack.catalog.gpus import VENDOR, Product

DEFAULT = "default"
DOMAIN = "nvidia.com"
GRAPHICS = "GFX"
"""Ending of vGPU types on MIG instances with graphics. Drivers whose types don't end so leave it out, and the vGPU
device manager with them (NVIDIA/vgpu-device-manager v0.5.0)."""
CONFIG_MAP = "default-vgpu-devices-config"
"""The ConfigMap with the sets of vGPU devices that come with a release."""


class Sets(Mapping[str, Any]):
    """Sets of devices by name, each parsed when somebody asks for it: all of a release take 90 ms."""

    def __init__(self, texts_by_name: Mapping[str, str]) -> None:
        self._texts = texts_by_name

    def __getitem__(self, name: str) -> Any:
        return _load(self._texts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@functools.cache
def default_config(release: str) -> Sets:
    """The sets in ConfigMap default-vgpu-devices-config of RELEASE; shared by all callers: read-only. A set is one line
    of the text, or a name and a line per element."""
    sets: dict[str, str] = {}
    name = ""
    for line in texts.vgpu_devices_config(release).partition("vgpu-configs:\n")[2].splitlines():
        if line.startswith("  - "):
            sets[name] += line[2:] + "\n"
        elif not line.lstrip().startswith("#"):
            name, _, rest = line.strip().partition(":")
            sets[name] = rest.strip()
    return Sets(sets)


def parsed(text: str) -> Mapping[str, Any]:
    """The sets of devices in TEXT by name; none where it is not such a configuration."""
    content = _load(text)
    sets = content.get("vgpu-configs") if isinstance(content, dict) else None
    return sets if isinstance(sets, dict) else {}


@functools.lru_cache(maxsize=1024)
def _load(text: str) -> Any:
    """TEXT as data, None where it is not YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return None


def types(elements: Iterable[Mapping[str, Any]], product: Product | None) -> list[str]:
    """The vGPU types that the ELEMENTS of a set make on PRODUCT; none where they depend on one that is unknown."""
    elements = list(elements)
    if product is None and any("device-filter" in element for element in elements):
        return []
    fitting = [element for element in elements if product is None or fits(element, product)]
    return list(dict.fromkeys(name for element in fitting for name in element.get("vgpu-devices") or {}))


def fits(element: Mapping[str, Any], product: Product) -> bool:
    """Whether ELEMENT of a set is for PRODUCT: by PCI id, or for all."""
    filters = element.get("device-filter")
    wanted = {filters.lower()} if isinstance(filters, str) else {str(item).lower() for item in filters or ()}
    return not wanted or any(pci.lower() in wanted for pci in product.device_filters)


def boards(product: Product, release: str) -> frozenset[str]:
    """What vGPU types of PRODUCT begin with ("A100X" of A100X-20C) in the default set of RELEASE; empty if unknown."""
    return frozenset(board(name) for name in types(default_config(release)[DEFAULT], product))


def board(vgpu_type: str) -> str:
    """The GPU that VGPU_TYPE is a part of: A100X of A100X-1-5CME."""
    return vgpu_type.partition("-")[0]


def pci_selector(device: str) -> str:
    """How KubeVirt writes the PCI id DEVICE ("2236") of an NVIDIA GPU: "10DE:2236"."""
    return f"{VENDOR}:{device.upper()}"


def pci_resource(device: str) -> str:
    """The resource name of the GPU with PCI id DEVICE, bound to vfio-pci."""
    return f"{DOMAIN}/{_data.load('kubevirt')['pci'].get(device.upper(), device.lower())}"


def listed(device: str) -> bool:
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
