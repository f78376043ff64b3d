"""Inputs of the sandbox validator."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ...cluster.workloads import Workload
from ..parts.common_inputs import OperandInputs, Pairs, operand, pairs


class SandboxValidatorInputs(OperandInputs):
    """`workload` is what nodes without a label serve; `cc_manager` says whether the mode of GPUs for confidential
    computing is checked."""

    workload: Workload = "container"
    cc_manager: bool = False
    vfio_env: Pairs = ()
    vgpu_manager_env: Pairs = ()
    vgpu_devices_env: Pairs = ()


def from_cluster(cluster: Cluster) -> SandboxValidatorInputs | None:
    """None where no node serves virtual machines."""
    spec = cluster.spec
    if not cluster.sandbox:
        return None
    section = spec.validator
    return SandboxValidatorInputs(
        **operand(spec, section, "validator"),
        workload=cluster.default_workload,
        cc_manager=bool(spec.ccManager.enabled),
        vfio_env=pairs(section.vfioPCI.env),
        vgpu_manager_env=pairs(section.vgpuManager.env),
        vgpu_devices_env=pairs(section.vgpuDevices.env),
    )
