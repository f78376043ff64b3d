"""`nodePools[].host`: what is set up on a pool's nodes themselves, below Kubernetes.

Solves: nouveau, the IOMMU, huge pages and services of the driver stand in one file for each system that nodes run, and
in nobody's review. Here they are said once, and what a system does with that is rendered, printed or refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, model_validator

from .base import Section, items, mapping
from .forms import form, refuse_as
from .types import AtLeast1, DnsLabel, Text

SECRET = {"auth", "identitytoken", "password", "token"}
"""Keys of containerd's configuration with what nobody may read (containerd, configuration of registries)."""


def _keys(said: Any) -> set[str]:
    below = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return set(said if isinstance(said, dict) else ()).union(*map(_keys, below))


def _toml(text: str) -> str:
    import tomllib  # 10 ms, which only a policy with a drop-in pays

    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refuse_as("drop_in", "toml", problem=str(error)) from None
    if not said:
        raise refuse_as("drop_in", "empty")
    if "imports" in said:
        raise refuse_as("drop_in", "imports")
    if secret := sorted(SECRET & _keys(said)):
        raise refuse_as("drop_in", "secret", key=secret[0])
    return text if text.endswith("\n") else f"{text}\n"


class NodeHost(Section):
    """What is set up on the nodes of a pool before Kubernetes starts there."""

    blockNouveau: bool = False
    """Whether the kernel's own driver for NVIDIA's GPUs is kept from loading. Absent: false."""
    iommu: Literal["intel", "amd"] | None = None
    """Turns on the IOMMU of processors of this vendor, in pass-through mode for the host. Absent: as it is."""
    vfio: list[Annotated[str, form("pci_id")]] = items()
    """Devices that vfio-pci takes at boot, as `lspci -nn` prints them: 10de:2330. Absent: none; `vfioManager` binds
    GPUs while the node runs."""
    hugePages: dict[Literal["2Mi", "1Gi"], AtLeast1] = mapping()
    """How many large pages of memory are set aside at boot, by their size. Absent: none."""
    fabricManager: bool = False
    """Whether the service nvidia-fabricmanager of the node's own driver is on. Absent: false."""
    maskImex: bool = False
    """Whether the service nvidia-imex is kept from starting: with compute domains the DRA driver runs it. Absent:
    false."""
    containerdDropIn: Annotated[Text, AfterValidator(_toml)] | None = None
    """A part of containerd's configuration, as TOML. Absent: none."""
    pinKernel: bool = False
    """Whether the packages of the pool's `kernel` are held. Absent: false."""
    machineConfigPool: DnsLabel | None = None
    """On OpenShift, the MachineConfigPool of the nodes: its MachineConfig is rendered, and all its nodes reboot.
    Absent: no MachineConfig is rendered; `gpustack nodes` prints it."""

    @model_validator(mode="after")
    def _says_something(self) -> NodeHost:
        if self.machineConfigPool and not self.model_dump(exclude={"machineConfigPool"}, exclude_defaults=True):
            raise refuse_as("node_host", "nothing")
        return self
