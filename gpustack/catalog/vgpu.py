"""vGPU types: the sets of devices that come with a release, and the types that a GPU can have.

data/vgpu/default-vgpu-devices-config.yaml is at once the text of a ConfigMap (`texts`) and the data here.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpustack.catalog import texts
from gpustack.catalog.gpus import Product

DEFAULT = "default"
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
