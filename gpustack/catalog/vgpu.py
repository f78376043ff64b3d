"""vGPU types: the sets of devices that come with a release, and the types that a GPU can have.

data/vgpu/default-vgpu-devices-config.yaml is at once the text of a ConfigMap (`texts`) and the data here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from gpustack.catalog import texts
from gpustack.catalog.gpus import Product

DEFAULT = "default"


@functools.cache
def default_config(release: str) -> Mapping[str, Any]:
    """The content of ConfigMap default-vgpu-devices-config in RELEASE, parsed; shared by all callers: read-only."""
    return parsed(texts.vgpu_devices_config(release))


def parsed(text: str) -> Mapping[str, Any]:
    """The sets of devices in TEXT by name; none where it is no such configuration."""
    import yaml

    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return {}
    sets = found.get("vgpu-configs") if isinstance(found, dict) else None
    return sets if isinstance(sets, dict) else {}


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
    """What vGPU types of PRODUCT begin with ("A100X" of A100X-20C), by the default set of RELEASE; empty where it
    doesn't know the board.
    """
    return frozenset(board(name) for name in types(default_config(release)[DEFAULT], product))


def board(vgpu_type: str) -> str:
    """The GPU that VGPU_TYPE is a part of: A100X of A100X-1-5CME."""
    return vgpu_type.partition("-")[0]
