"""Inputs of the container toolkit."""

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand


class ToolkitInputs(OperandInputs):
    """Runtime, install folder, CDI and NRI are in `common`: other components depend on them too. What the toolkit is
    told of them is in environment.py.
    """


def from_cluster(cluster: Cluster) -> ToolkitInputs | None:
    """None where the nodes bring the toolkit. It takes no arguments, whatever the policy says (operator.md 5.2)."""
    spec = cluster.spec
    section = spec.toolkit
    if not section.enabled:
        return None
    return ToolkitInputs(**operand(spec, section, "toolkit") | {"args": ()})
