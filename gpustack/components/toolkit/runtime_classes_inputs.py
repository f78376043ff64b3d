"""Inputs of the RuntimeClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts.common_inputs import Inputs

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster


class RuntimeClassesInputs(Inputs):
    """`name` is the default class; with `cdi` there are two more, one for each way of injecting a GPU."""

    name: str = "nvidia"
    cdi: bool = True


def from_cluster(cluster: Cluster) -> RuntimeClassesInputs | None:
    """None with the NRI plugin, which needs no RuntimeClass (operator.md 5.5)."""
    spec = cluster.spec
    if spec.cdi.nriPluginEnabled:
        return None
    return RuntimeClassesInputs(name=spec.operator.runtimeClass or "nvidia", cdi=bool(spec.cdi.enabled))
