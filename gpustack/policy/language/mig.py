"""`mig` and `migManager`: cutting GPUs into MIG instances."""

from __future__ import annotations

from typing import Literal

from .base import Section, section
from .device_plugin import NamedConfigs
from .operand import Operand


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
    """The MIG manager, which brings each node to the layout that its label names."""

    config: MigConfig = section()
    """Named layouts; without a name, those that come with the release."""
    gpuClientsConfig: NamedConfigs = section()
    """Programs on the node that are stopped while the layout changes, under the key `clients.yaml`."""
