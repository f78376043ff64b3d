"""Inputs of GPU feature discovery."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from ..parts.common_inputs import OperandInputs, operand
from .device_plugin_inputs import PluginConfig, plugin_config


class GfdInputs(OperandInputs):
    """`mig_strategy` and `config` as for the device plugin: GFD labels what the plugin advertises."""

    mig_strategy: str = ""
    config: PluginConfig | None = None


def from_cluster(cluster: Cluster) -> GfdInputs | None:
    """The inputs for CLUSTER, or None where GFD is off."""
    spec = cluster.spec
    section = spec.gfd
    if not section.enabled:
        return None
    return GfdInputs(**operand(spec, section, "gfd"), mig_strategy=spec.mig.strategy or "", config=plugin_config(spec))
