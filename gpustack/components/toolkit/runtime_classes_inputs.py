"""Inputs of the RuntimeClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..parts.common_inputs import Inputs

if TYPE_CHECKING:
    from ...cluster.resolve import Cluster


class RuntimeClassesInputs(Inputs):
    """`name` is the default class; with `cdi` there are two more, one for each way of injecting a GPU. Those in
    `brought` are somebody else's.
    """

    name: str = "nvidia"
    cdi: bool = True
    brought: tuple[str, ...] = ()


def from_cluster(cluster: Cluster) -> RuntimeClassesInputs | None:
    """None with the NRI plugin, which needs no RuntimeClass (operator.md 5.5)."""
    spec = cluster.spec
    if spec.cdi.nriPluginEnabled:
        return None
    brought = tuple(sorted({one.name for one in spec.references if one.kind == "RuntimeClass"}))
    return RuntimeClassesInputs(name=cluster.runtime_class, cdi=bool(spec.cdi.enabled), brought=brought)
