"""`validator`: the pods that prove a node's GPUs usable, and the waiting containers of all other pods."""

from __future__ import annotations

from .base import Section, items, section
from .operand import EnvVar, Workload


class Validation(Section):
    """One of the checks."""

    env: list[EnvVar] = items()
    """Environment variables of the check; they replace built-in ones of the same name. Absent: the built-in ones."""


class Validator(Workload):
    """The validator. Its image, pull secrets and resources also serve the waiting containers of other pods."""

    driver: Validation = section()
    """The check that a driver is loaded."""
    toolkit: Validation = section()
    """The check that containers get GPUs from the runtime."""
    cuda: Validation = section()
    """The check that a CUDA program runs."""
    plugin: Validation = section()
    """The check that the node offers GPUs to pods."""
    vfioPCI: Validation = section()
    """The check that GPUs are bound to vfio-pci, on nodes for passthrough."""
    vgpuManager: Validation = section()
    """The check that the vGPU manager runs, on nodes for vGPU."""
    vgpuDevices: Validation = section()
    """The check that vGPU devices exist, on nodes for vGPU."""
