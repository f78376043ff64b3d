"""The two files of the MIG manager and that of the vGPU device manager, read from the texts of ConfigMaps: named
layouts (config.yaml) and GPU clients (clients.yaml), named sets of vGPU devices.

Solves: whoever misspells a key in these files learns it from a node that stays pending, or from the log of a pod. What
the MIG manager accepts is in reconciler.md 3.4 and NVIDIA/mig-parted, api/spec/v1; what the other accepts is
NVIDIA/vgpu-device-manager's api/spec/v1 and pkg/types.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpustack.catalog import gpus
from gpustack.catalog.gpus import Product
from gpustack.catalog.mig import IllegalProfile, ProfileName
from gpustack.policy.configurations.embedded import START, Place, Problem, Reader, place_of

LAYOUTS_KEY, CLIENTS_KEY = "config.yaml", "clients.yaml"
"""The keys under which the manager looks for its files (operator.md 7.9)."""

PROGRAM, VERSION, VENDOR = "the MIG manager", "v1", 0x10DE
ELEMENT = ("device-filter", "devices", "mig-enabled", "mig-devices")

_FILTER = re.compile(r"0[xX]([0-9a-fA-F]{4})([0-9a-fA-F]{4})")
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+")


@dataclass(frozen=True, slots=True)
class Element:
    """What a named layout does to some GPUs of a node. `devices` is None for all, `filters` empty for any board.

    `layout` has no profile with a count of 0. `at` and `places` (by profile) say where the text has it."""

    devices: tuple[int, ...] | None
    enabled: bool
    layout: Mapping[str, int]
    filters: tuple[str, ...] = ()
    at: Place | None = None
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)

    def matches(self, product: Product | None) -> bool | None:
        """Whether the filters let GPUs of PRODUCT through; None where only the node can tell."""
        if not self.filters:
            return True
        return None if product is None else any(_lets_through(text, product) for text in self.filters)

    @property
    def effect(self) -> tuple[object, ...]:
        """What it does, wherever it was written."""
        return self.devices, self.enabled, tuple(sorted(self.layout.items())), tuple(sorted(self.filters))


@dataclass(frozen=True, slots=True)
class Layouts:
    """Named layouts, where each name stands, and what is wrong. An entry with a problem of its own has no elements."""

    entries: Mapping[str, tuple[Element, ...]]
    places: Mapping[str, Place] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@functools.lru_cache(maxsize=64)
def read_layouts(text: str) -> Layouts:
    """Read TEXT, a config.yaml of the MIG manager. Never raises: what is wrong is in `problems`."""
    reader = _Layouts(PROGRAM)
    named = reader.sets(text, "mig-configs", "layout", "layouts")
    entries: dict[str, tuple[Element, ...]] = {}
    for name, (key, node) in named.items():
        before = len(reader.problems)
        reader.label_value(name, key, "layout", "nvidia.com/mig.config")
        elements = [reader.element(item) for item in reader.items(node, f"the layout {name}")]
        if len(reader.problems) == before:
            entries[name] = tuple(element for element in elements if element is not None)
    places = {name: place_of(key) for name, (key, _) in named.items()}
    return Layouts(entries, places, tuple(reader.problems))


@functools.lru_cache(maxsize=64)
def read_clients(text: str) -> tuple[Problem, ...]:
    """What is wrong with TEXT, a clients.yaml of the MIG manager."""
    reader = Reader(PROGRAM)
    root = reader.document(text)
    if root is None:
        return tuple(reader.problems)
    ignored = "the MIG manager ignores keys that it doesn't know"
    top = reader.mapping(root, "the file", ("version", "systemd-services"), ignored)
    reader.version(top, VERSION, required=False)
    if "systemd-services" in top:
        for item in reader.items(top["systemd-services"][1], "systemd-services", empty=True):
            name = reader.text(item, "a service")
            if name is not None and not _UNIT.fullmatch(name):
                reader.problem(item, f"{name!r} is not a systemd unit", "write a unit, such as nvidia-dcgm.service")
    elif isinstance(root, yaml.MappingNode) and not reader.problems:  # what is missing may only be misspelt
        why = "no service is stopped while a layout changes, and the change fails where one holds a GPU"
        reader.problem(START, "systemd-services is missing", "add systemd-services, a list of units", why)
    return tuple(reader.problems)


@functools.cache
def of_release(release: str) -> Mapping[str, tuple[Element, ...]]:
    """The layouts of the ConfigMap that comes with RELEASE. UnknownRelease."""
    configs = gpus.default_mig_config(release)["mig-configs"]
    return {name: tuple(_element(item) for item in items) for name, items in configs.items()}


def _element(item: Mapping[str, Any]) -> Element:
    filters, devices = item.get("device-filter", ()), item["devices"]
    return Element(
        None if devices == "all" else tuple(devices),
        bool(item["mig-enabled"]),
        {name: count for name, count in item.get("mig-devices", {}).items() if count},
        (filters,) if isinstance(filters, str) else tuple(filters),
    )


def _lets_through(text: str, product: Product) -> bool:
    """Whether the filter TEXT is for PRODUCT. One for a subsystem is, where the product's are not known."""
    board, _, subsystem = text.partition(":")
    match, below = _FILTER.fullmatch(board), _FILTER.fullmatch(subsystem)
    if match is None or int(match[2], 16) != VENDOR or match[1].upper() not in product.pci_ids:
        return False
    return below is None or not product.subsystem_ids or below[1].upper() in product.subsystem_ids


class Boards(Reader):
    """Reads which GPUs a part of a file is for."""

    example = '"0x233010DE" is an H100'

    def filters(self, node: Any, *, empty: bool = False) -> tuple[str, ...]:
        """PCI ids of boards; only with EMPTY may a list have none."""
        nodes = self.items(node, "device-filter", empty=empty) if isinstance(node, yaml.SequenceNode) else [node]
        texts = [(item, text) for item in nodes if (text := self.text(item, "a device-filter")) is not None]
        for item, text in texts:
            if what := wrong_filter(text):
                why = f"{self.program} takes such a filter as one that lets nothing through"
                self.problem(item, what, f"write device id and vendor, in quotes: {self.example}", why)
        return tuple(text for _, text in texts)

    def indices(self, node: Any) -> Iterator[tuple[Any, int | None]]:
        """The items of `devices`, each with its index of a GPU; `all` has no items."""
        if not isinstance(node, yaml.ScalarNode):
            for item in self.items(node, "devices", empty=True):
                yield item, self.integer(item, "the index of a GPU")
        elif node.value != "all":
            self.problem(node, f"devices is {node.value!r}", "write all, or a list of indices such as [0, 1]")


class _Layouts(Boards):
    def element(self, node: Any) -> Element | None:
        before = len(self.problems)
        pairs = self.mapping(node, "an item of a layout", ELEMENT)
        complete = len(self.problems) == before  # what is missing may only be misspelt
        for key, remedy in (
            ("devices", "add devices: all, or a list of indices"),
            ("mig-enabled", "add mig-enabled: true, or false for GPUs that stay whole"),
        ):
            if complete and key not in pairs:
                self.problem(node, f"{key} is missing", remedy)
        enabled = self.boolean(pairs["mig-enabled"][1], "mig-enabled") if "mig-enabled" in pairs else None
        devices = self.devices(pairs["devices"][1]) if "devices" in pairs else None
        filters = self.filters(pairs["device-filter"][1]) if "device-filter" in pairs else ()
        layout, places = self.counts(pairs["mig-devices"][1]) if "mig-devices" in pairs else ({}, {})
        if complete and enabled and "mig-devices" not in pairs:
            remedy = "add mig-devices, such as {1g.10gb: 7}; {} for MIG without instances"
            self.problem(pairs["mig-enabled"][0], "mig-enabled: true without mig-devices", remedy)
        if enabled is False and layout:
            remedy = "set mig-enabled: true, or leave out mig-devices"
            self.problem(pairs["mig-devices"][0], "mig-devices beside mig-enabled: false", remedy)
        if len(self.problems) > before or enabled is None:
            return None
        return Element(devices, enabled, layout, filters, place_of(node), places)

    def devices(self, node: Any) -> tuple[int, ...] | None:
        """Indices of GPUs, or None for all."""
        numbers: list[int] = []
        for item, number in self.indices(node):
            if number is not None and number in numbers:
                self.problem(item, f"GPU {number} is listed twice", "delete one of the two", "it has one layout")
            elif number is not None:
                numbers.append(number)
        if isinstance(node, yaml.SequenceNode) and not node.value:
            self.problem(node, "devices lists no GPU", "write all, or a list of indices", "the item changes nothing")
        return None if isinstance(node, yaml.ScalarNode) else tuple(numbers)

    def counts(self, node: Any) -> tuple[dict[str, int], dict[str, Place]]:
        """Instances by profile, without those of count 0, and where the profiles stand."""
        counts: dict[str, int] = {}
        before = len(self.problems)
        pairs = self.mapping(node, "mig-devices")
        for name, (key, value) in pairs.items():
            try:
                ProfileName.parse(name)
            except IllegalProfile as error:
                self.problem(key, str(error), "write a profile as `gpustack mig list PRODUCT` prints it")
            counts[name] = self.integer(value, f"the number of {name}") or 0
        if counts and not any(counts.values()) and len(self.problems) == before:
            self.problem(node, "all counts are 0", "write mig-devices: {} for MIG without instances")
        places = {name: place_of(key) for name, (key, _) in pairs.items()}
        return {name: count for name, count in counts.items() if count}, places


def wrong_filter(text: str) -> str:
    """What is wrong with a device-filter, "" if nothing is."""
    if not all(_FILTER.fullmatch(part) for part in text.split(":", 1)):
        return f"{text!r} is not a PCI id of a GPU"
    board = _FILTER.fullmatch(text.partition(":")[0])
    if board is not None and int(board[2], 16) != VENDOR:
        swapped = int(board[1], 16) == VENDOR
        return f"{text!r} is not a GPU of NVIDIA" + (": the vendor comes last" if swapped else "")
    return ""


KEY, VGPU_PROGRAM = "config.yaml", "the vGPU device manager"
VGPU_ELEMENT = ("device-filter", "devices", "vgpu-devices")

_IN_TIME = re.compile(r"[A-Z0-9]+(?:-[a-zA-Z]+)*-(?:0|[1-9][0-9]*)[ABCQ]")
_BY_MIG = re.compile(r"[A-Z0-9]+-[1-9]-(?:0|[1-9][0-9]*)[ABCQ](?:ME|NOME|MEALL|GFX)?")


@functools.lru_cache(maxsize=64)
def read_vgpu_config(text: str) -> tuple[Problem, ...]:
    """What is wrong with TEXT, a config.yaml of the vGPU device manager."""
    reader = _Sets(VGPU_PROGRAM)
    for name, (key, node) in reader.sets(text, "vgpu-configs", "set of devices", "sets").items():
        reader.label_value(name, key, "set of vGPU devices", "nvidia.com/vgpu.config")
        for item in reader.items(node, f"the set {name}"):
            reader.element(item)
    return tuple(reader.problems)


class _Sets(Boards):
    example = '"0x223610DE" is an A10'

    def element(self, node: Any) -> None:
        """What a set makes of some GPUs."""
        before = len(self.problems)
        pairs = self.mapping(node, "an item of a set", VGPU_ELEMENT)
        for key, remedy in (
            ("devices", "add devices: all, or a list of indices"),
            ("vgpu-devices", "add vgpu-devices, such as {A10-24Q: 1}"),
        ):
            if len(self.problems) == before and key not in pairs:
                self.problem(node, f"{key} is missing", remedy)
        if "devices" in pairs:
            list(self.indices(pairs["devices"][1]))  # for what is wrong with them
        if "device-filter" in pairs:
            self.filters(pairs["device-filter"][1], empty=True)
        if "vgpu-devices" in pairs:
            self.types(pairs["vgpu-devices"][1])

    def types(self, node: Any) -> None:
        """Devices of a GPU, by their types."""
        kinds = set()
        for name, (key, value) in self.mapping(node, "vgpu-devices").items():
            if _IN_TIME.fullmatch(name) or _BY_MIG.fullmatch(name):
                kinds.add("in time" if _IN_TIME.fullmatch(name) else "by MIG")
            else:
                self.problem(key, f"{name} is not a type of vGPU", "write a type such as A10-24Q or A100-1-5C")
            if self.integer(value, f"the number of {name}") == 0:
                self.problem(value, f"the number of {name} is 0", "write 1 or more, or delete the line")
        if len(kinds) > 1:
            remedy = "put types of one kind into the set; A100-1-5C is one by MIG, A100-5C one in time"
            self.problem(node, "types that share a GPU in time beside types by MIG", remedy)
