"""Inputs of the stand-alone DCGM host engine."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand


class DcgmInputs(OperandInputs):
    """Nothing beyond what every operand has: `dcgm.hostPort` has no effect (operator.md 7.7)."""


def from_cluster(cluster: Cluster) -> DcgmInputs | None:
    """None where each exporter runs an engine of its own."""
    section = cluster.stack.dcgm
    if not section.enabled:
        return None
    return DcgmInputs(**operand(cluster.spec, section, cluster.at("dcgm")))
