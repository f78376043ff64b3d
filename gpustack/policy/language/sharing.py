"""`nodePools[].sharing`: who may use a GPU at the same time; one pod per GPU where nothing is said. `mig` and
`migManager`: how GPUs are cut into MIG instances, and these are offered.

Solves: sharing is three systems (time-slicing, MPS, MIG) with two files of text between them, and the wrong combination
is dropped without a word or stops the plugin. So the combinations that can't work are refused while reading.
"""

import functools
import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from .base import Section, items, section
from .device_plugin import NamedConfigs
from .forms import absent, refuse_as, refuse_at
from .operand import Operand
from .types import AtLeast0, AtLeast1, MigProfile, NodeText

MPS_CLIENTS = 48
"""The most clients of a GPU that MPS serves from compute capability 7.5 on; 16 on older ones (plugin-config.yaml)."""


def _shares(value: int, most: float = math.inf) -> int:
    if not 2 <= value <= most:
        raise refuse_as("replicas", "none" if value < 2 else "clients", most=most)
    return value


def _layout(value: dict[str, int]) -> dict[str, int]:
    if not value:
        raise refuse_as("mig_layout", "empty")
    return value


Replicas = Annotated[int, AfterValidator(_shares), Field(json_schema_extra={"minimum": 2})]
MpsReplicas = Annotated[
    int,
    AfterValidator(functools.partial(_shares, most=MPS_CLIENTS)),
    Field(json_schema_extra={"minimum": 2, "maximum": MPS_CLIENTS}),
]
Layout = Annotated[
    dict[MigProfile, AtLeast1],
    BeforeValidator(absent),
    AfterValidator(_layout),
    Field(json_schema_extra={"minProperties": 1}),
]
"""Profiles and how many instances of each."""


class TimeSlicing(Section):
    """Pods take turns on a GPU, with nothing to keep their memory apart."""

    replicas: Replicas
    """How many pods may share one GPU or MIG instance; 2 or more."""
    renameByDefault: bool = False
    """Whether shared GPUs are called `nvidia.com/gpu.shared`, so that nobody gets one by accident. Absent: false."""
    failRequestsGreaterThanOne: bool = False
    """Whether pods that ask for more than one share are refused; a second share is not a second GPU. Absent: false."""


class Mps(Section):
    """Pods run on a GPU side by side, each with an equal part of its memory and threads. Not on MIG instances."""

    replicas: MpsReplicas
    """How many pods may share one GPU; 2 to 48 (16 below compute capability 7.5)."""
    renameByDefault: bool = False
    """Whether shared GPUs are called `nvidia.com/gpu.shared`, so that nobody gets one by accident. Absent: false."""
    failRequestsGreaterThanOne: bool = True
    """Whether pods that ask for more than one share are refused; plugins before v0.20 always do. Absent: true."""


class MigDevices(Section):
    """Some GPUs of a node, and how they are cut."""

    indices: Annotated[list[AtLeast0], Field(min_length=1)]
    """Indices of the GPUs, from 0."""
    layout: Layout | None = None
    """Instances by profile, for each of these GPUs: `{3g.40gb: 2}`. Absent: the GPUs stay whole."""


class MigSharing(Section):
    """GPUs are cut into instances with memory and compute units of their own. Exactly one of the fields is set."""

    config: NodeText | None = None
    """Name of a layout in the MIG manager's configuration, such as `all-1g.10gb`. Absent: see the other two."""
    layout: Layout | None = None
    """Instances by profile, for every GPU of a node: `{3g.40gb: 1, 2g.20gb: 2}`. Absent: see the other two."""
    devices: list[MigDevices] = items()
    """A layout per group of GPUs, where a node's GPUs are cut differently. Absent: see the other two."""

    def model_post_init(self, _: Any) -> None:
        given = [name for name in ("config", "layout", "devices") if getattr(self, name)]
        if len(given) != 1:
            raise refuse_as("mig_sharing", "several" if given else "none", given=" and ".join(given))
        seen: set[int] = set()
        for row, group in enumerate(self.devices):
            for column, index in enumerate(group.indices):
                if index in seen:
                    place = ("devices", row, "indices", column)
                    raise refuse_at(place, refuse_as("mig_devices", "twice", index=index), index)
                seen.add(index)


class Sharing(Section):
    """How a pool's GPUs are shared. Nothing set: one pod per GPU."""

    timeSlicing: TimeSlicing | None = None
    """Pods take turns, on whole GPUs or on the MIG instances of `mig`. Absent: no time-slicing."""
    mps: Mps | None = None
    """Pods run side by side by MPS; alone, without the other two. Absent: no MPS."""
    mig: MigSharing | None = None
    """GPUs are cut into MIG instances. Absent: GPUs stay whole."""

    @property
    def exclusive(self) -> bool:
        """Whether every GPU belongs to one pod at a time."""
        return self.timeSlicing is None and self.mps is None and self.mig is None

    def model_post_init(self, _: Any) -> None:
        if self.mps and self.mig:
            raise refuse_as("sharing", "mps with mig")
        if self.mps and self.timeSlicing:
            raise refuse_as("sharing", "mps with timeSlicing")


class Mig(Section):
    """How MIG instances are offered."""

    strategy: Literal["none", "single", "mixed"] | None = None
    """Instances are not offered (none), are offered as `nvidia.com/gpu` where a node's are all alike (single), or each
    profile under its own name (mixed). Absent: the default of the release, single."""


class MigConfig(NamedConfigs):
    """Named MIG layouts, in one text under the key `config.yaml`. `nodePools[].sharing.mig` writes it for you."""

    default: Literal["all-disabled", ""] | None = None
    """Layout of nodes without the label `nvidia.com/mig.config`: `all-disabled`, or empty to leave them as they are.
    Absent: the default of the release, all-disabled."""


class MigManager(Operand):
    """The MIG manager, which cuts GPUs into instances: it brings each node to the layout that its label names."""

    config: MigConfig = section()
    """Named layouts; without a name, those that come with the release."""
    gpuClientsConfig: NamedConfigs = section()
    """Programs on the node that are stopped while the layout changes, under the key `clients.yaml`."""
