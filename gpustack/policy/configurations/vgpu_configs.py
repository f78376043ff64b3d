"""The file of the vGPU device manager, read from the text of a ConfigMap: named sets of vGPU devices.

Solves: the manager refuses the whole file for one key that it doesn't know, and what it says about that stands in the
log of a pod. What it accepts is NVIDIA/vgpu-device-manager's api/spec/v1 and pkg/types.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import yaml

from gpustack.policy.configurations.embedded import Problem
from gpustack.policy.configurations.mig_configs import Filters

KEY, PROGRAM = "config.yaml", "the vGPU device manager"
ELEMENT = ("device-filter", "devices", "vgpu-devices")

_IN_TIME = re.compile(r"[A-Z0-9]+(?:-[a-zA-Z]+)*-(?:0|[1-9][0-9]*)[ABCQ]")
_BY_MIG = re.compile(r"[A-Z0-9]+-[1-9]-(?:0|[1-9][0-9]*)[ABCQ](?:ME|NOME|MEALL|GFX)?")


@functools.lru_cache(maxsize=64)
def read_vgpu_config(text: str) -> tuple[Problem, ...]:
    """What is wrong with TEXT, a config.yaml of the vGPU device manager."""
    reader = _Sets(PROGRAM)
    for name, (key, node) in reader.sets(text, "vgpu-configs", "set of devices", "sets").items():
        reader.label_value(name, key, "set of vGPU devices", "nvidia.com/vgpu.config")
        for item in reader.items(node, f"the set {name}"):
            reader.element(item)
    return tuple(reader.problems)


class _Sets(Filters):
    example = '"0x223610DE" is an A10'

    def element(self, node: Any) -> None:
        """What a set makes of some GPUs."""
        before = len(self.problems)
        pairs = self.mapping(node, "an item of a set", ELEMENT)
        for key, remedy in (
            ("devices", "add devices: all, or a list of indices"),
            ("vgpu-devices", "add vgpu-devices, such as {A10-24Q: 1}"),
        ):
            if len(self.problems) == before and key not in pairs:
                self.problem(node, f"{key} is missing", remedy)
        if "devices" in pairs:
            self.devices(pairs["devices"][1])
        if "device-filter" in pairs:
            self.filters(pairs["device-filter"][1], empty=True)
        if "vgpu-devices" in pairs:
            self.types(pairs["vgpu-devices"][1])

    def devices(self, node: Any) -> None:
        """Indices of GPUs, or all."""
        if isinstance(node, yaml.ScalarNode):
            if node.value != "all":
                self.problem(node, f"devices is {node.value!r}", "write all, or a list of indices such as [0, 1]")
            return
        for item in self.items(node, "devices", empty=True):
            self.integer(item, "the index of a GPU")

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
