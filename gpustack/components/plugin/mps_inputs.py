"""Inputs of the MPS control daemon: those of the device plugin that reach it (operator.md 5.2: args and env do not)."""

from __future__ import annotations

from ...cluster.resolve import Cluster
from . import device_plugin_inputs as device_plugin
from .device_plugin_inputs import DevicePluginInputs


class MpsInputs(DevicePluginInputs):
    """As the device plugin's, without what only the plugin itself reads."""


def from_cluster(cluster: Cluster) -> MpsInputs | None:
    """The inputs for CLUSTER, or None where the device plugin is off."""
    plugin = device_plugin.from_cluster(cluster)
    if plugin is None:
        return None
    return MpsInputs(**{**dict(plugin), "env": (), "args": (), "gds": False, "gdrcopy": False})
