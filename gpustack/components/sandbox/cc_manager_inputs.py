"""Inputs of the manager of confidential computing."""

from __future__ import annotations

from ...catalog.releases import release
from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand


class CcManagerInputs(OperandInputs):
    """`mode` is that of GPUs on nodes whose label nvidia.com/cc.mode says none: on, off, devtools or "" (not set)."""

    mode: str = ""


def from_cluster(cluster: Cluster) -> CcManagerInputs | None:
    """None where no node serves Kata containers; releases before v26.3 run it for all virtual machines."""
    spec = cluster.spec
    section = spec.ccManager
    for_all = not release(spec.release).traits.cc_manager_for_kata
    if not cluster.sandbox or not section.enabled or not (for_all or cluster.kata):
        return None
    return CcManagerInputs(**operand(spec, section, "ccManager"), mode=section.defaultMode or "")
